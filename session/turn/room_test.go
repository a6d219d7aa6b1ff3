package turn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ship/sandbox"
	"ship/session"
)

// kept is what of a process's output fits into its file, as in a box whose files
// are all on one disk.
func (f *folder) kept(name string, out []byte) []byte {
	path := filepath.Join(f.dir, "proc", name, "output")
	_ = os.WriteFile(path, out, 0o600) // what does not fit is dropped
	data, _ := os.ReadFile(path)
	return data
}

// small is a desk whose box has a disk of its own of some MB, and a worker with
// the job to publish what is in it.
type small struct {
	*desk
	*Worker
	job session.Job
	log *bytes.Buffer
}

func newSmall(t *testing.T, kind string, megabytes int) *small {
	t.Helper()
	dir := t.TempDir()
	disk := filepath.Join(dir, "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	mount := fmt.Sprintf("mount -t tmpfs -o size=%dm none %s", megabytes, disk)
	if kind == "ext4" { // which has no room for a folder either when it is full
		mount = fmt.Sprintf("truncate -s %dM %s.img && mkfs.ext4 -q -m 0 %[2]s.img && mount -o loop %[2]s.img %[2]s", megabytes, disk)
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", mount).CombinedOutput(); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		// What was started there may not have ended yet.
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount the small disk: %v", err)
		}
	})
	s := &small{desk: newDeskAt(t, dir, disk), log: &bytes.Buffer{}}
	box := s.desk.box.(*folder)
	box.tight = true
	_, s.Worker, s.job = newYard(t, s.desk)
	s.Log = slog.New(slog.NewTextHandler(s.log, nil))
	s.keepRoom(t.Context(), box)
	return s
}

// systemElsewhere: what ship and processes write in the box is on another disk.
func (s *small) systemElsewhere() {
	s.t.Helper()
	box := s.box.(*folder)
	box.tight, box.run = false, s.t.TempDir()
}

// fill takes all the room that is left, but for what is reserved.
func (s *small) fill() {
	s.t.Helper()
	s.agent("head -c 1073741824 /dev/zero >../hog 2>/dev/null || true; head -c 100000 /dev/zero >>../hog 2>/dev/null || true")
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		err = os.WriteFile(s.box.(*folder).here(fmt.Sprintf("/work/hog%d", i)), []byte("x"), 0o600)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		s.t.Fatalf("there is room left: %v", err)
	}
}

func (s *small) perform() (session.Published, error) {
	s.t.Helper()
	done, err := s.Perform(s.t.Context(), s.job)
	if err != nil {
		return session.Published{}, err
	}
	return *done.Published, nil
}

func (s *small) reserved(r reserve) int64 {
	s.t.Helper()
	info, err := os.Stat(s.box.(*folder).here(r.path))
	if errors.Is(err, fs.ErrNotExist) {
		return -1
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return info.Size()
}

// onSmallDisks tries something on a disk of each kind.
func onSmallDisks(t *testing.T, megabytes int, try func(t *testing.T, s *small)) {
	for _, kind := range []string{"tmpfs", "ext4"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			try(t, newSmall(t, kind, megabytes))
		})
	}
}

// TestFullDiskIsPublished: with the room that was reserved, all of the work comes
// out of the box, which is not used again.
func TestFullDiskIsPublished(t *testing.T) {
	t.Parallel()
	onSmallDisks(t, 56, publishesAll)
}

func publishesAll(t *testing.T, s *small) {
	t.Helper()
	s.agent("echo two > b && git add b && git commit -q -m two && echo three > c && head -c 2000000 /dev/urandom > d")
	s.fill()
	first, err := s.perform()
	if err != nil || !first.Changed || first.Files != 3 || first.Left != "" {
		t.Fatalf("published %+v, %v\n%s", first, err, s.log)
	}
	if s.pushed("b") != "two" || s.pushed("c") != "three" {
		t.Errorf("pushed %s, %s", s.pushed("b"), s.pushed("c"))
	}
	if n := s.reserved(workReserve()); n != 0 {
		t.Errorf("%d bytes are still reserved", n)
	}
	if again, err := s.perform(); err != nil || again != first {
		t.Errorf("then published %+v, %v", again, err)
	}
	if marker, err := readMarker(t.Context(), s.box); err != nil || marker != 0 {
		t.Errorf("the next turn would have the box without room: %d, %v", marker, err)
	}
	if !strings.Contains(s.log.String(), "No space left on device") && !strings.Contains(s.log.String(), "no space left on device") {
		t.Errorf("the operator does not hear why:\n%s", s.log)
	}
}

// TestFullDiskLeavesTheRest: what the agent committed is pushed even if what it
// did not commit does not fit into the room that was reserved, and people hear it.
func TestFullDiskLeavesTheRest(t *testing.T) {
	t.Parallel()
	onSmallDisks(t, 10, publishesPart)
}

func publishesPart(t *testing.T, s *small) {
	t.Helper()
	s.agent("echo two > b && git add b && git commit -q -m two && echo three > c && head -c 3000000 /dev/urandom > d")
	s.fill()
	first, err := s.perform()
	if err != nil || !first.Changed || first.Files != 1 {
		t.Fatalf("published %+v, %v\n%s", first, err, s.log)
	}
	for _, words := range []string{"no room left on the box's disk", "only what the agent had committed, and the rest is in the box only", "`/ship delete "} {
		if !strings.Contains(first.Left, words) {
			t.Errorf("people hear %q, without %q", first.Left, words)
		}
	}
	if s.pushed("b") != "two" || s.pushed("c") != "nothing" {
		t.Errorf("pushed %s, %s", s.pushed("b"), s.pushed("c"))
	}
	if again, err := s.perform(); err != nil || again != first {
		t.Errorf("then published %+v, %v\n%s", again, err, s.log)
	}
	if got := s.agent("cat c"); got != "three" {
		t.Errorf("what could not be pushed is %q", got)
	}
	if marker, err := readMarker(t.Context(), s.box); err != nil || marker != 1 {
		t.Errorf("the box that has the rest would be replaced: %d, %v", marker, err)
	}

	s.agent("rm ../hog* d") // what the person was told to ask for
	s.keepRoom(t.Context(), s.box)
	if p, err := s.perform(); err != nil || p.Left != "" || s.pushed("c") != "three" {
		t.Errorf("published %+v, %v, %s", p, err, s.pushed("c"))
	}
	if n := s.reserved(lastReserve()); n != lastReserve().size {
		t.Errorf("%d bytes are reserved", n)
	}
}

// TestFullDiskNothingCommitted: there is nothing to push, and the person hears
// that it is so.
func TestFullDiskNothingCommitted(t *testing.T) {
	t.Parallel()
	s := newSmall(t, "tmpfs", 10)
	s.agent("echo three > c && head -c 3000000 /dev/urandom > d")
	s.fill()
	_, err := s.perform()
	var p *session.Problem
	if !errors.As(err, &p) || p.Again || !strings.Contains(p.Say, "no room left on the box's disk, so I could not push") {
		t.Errorf("it ended with %v", err)
	}
}

// TestFullDiskWithoutReserve: nothing can be given up, since the agent deleted
// it. What processes print is elsewhere, as in a box whose system is.
func TestFullDiskWithoutReserve(t *testing.T) {
	t.Parallel()
	const work = "echo two > b && git add b && git commit -q -m two"
	for name, script := range map[string]string{
		"on the branch":       work,
		"detached":            "git checkout -q --detach && " + work,
		"a branch of its own": "git checkout -q -b mine && " + work,
		"renamed":             "git branch -q -m mine && " + work,
		"looked at the base":  work + " && git checkout -q -b main origin/main",
		"in a merge":          work + " && git checkout -q -b o HEAD~1 && echo y > a && git commit -q -am y && git checkout -q - && echo x > a && git commit -q -am x && (git merge o || true)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSmall(t, "tmpfs", 8)
			s.systemElsewhere()
			if n := s.reserved(workReserve()); n != -1 {
				t.Fatalf("%d bytes are reserved of 8 MB", n)
			}
			s.agent("rm -f ../.ship-reserve* && " + script + " && echo three > c && head -c 100000 /dev/urandom > d")
			s.fill()
			p, err := s.perform()
			if err != nil || !p.Changed || p.Left == "" || s.pushed("b") != "two" || s.pushed("c") != "nothing" {
				t.Errorf("published %+v, %v: %s, %s\n%s", p, err, s.pushed("b"), s.pushed("c"), s.log)
			}
			if again, err := s.perform(); err != nil || again != p {
				t.Errorf("then published %+v, %v", again, err)
			}
		})
	}
}

// TestFullDiskIsInspected: a secret is not pushed for want of room either.
func TestFullDiskIsInspected(t *testing.T) {
	t.Parallel()
	s := newSmall(t, "tmpfs", 8)
	s.systemElsewhere()
	s.Secrets = []string{"sk-the-secret-of-somebody"}
	s.agent("echo sk-the-secret-of-somebody > b && git add b && git commit -q -m two && echo three > c && head -c 2000000 /dev/urandom > d && rm -f ../.ship-reserve*")
	s.fill()
	_, err := s.perform()
	if !errors.Is(err, errSecret) || s.pushed("b") != "nothing" {
		t.Errorf("it ended with %v, pushed %q", err, s.pushed("b"))
	}
}

// TestWhatWasDroppedIsNotNothing: a command whose output did not fit has not
// printed nothing.
func TestWhatWasDroppedIsNotNothing(t *testing.T) {
	t.Parallel()
	s := newSmall(t, "tmpfs", 8)
	s.agent("rm -f ../.ship-reserve*")
	s.fill()
	for _, args := range [][]string{{"rev-parse", "HEAD"}, {"rev-parse", "nowhere"}, {"status", "--porcelain"}} {
		if out, err := s.git(t.Context(), "", args...); !noRoom(err) || isGitError(err) || out != "" {
			t.Errorf("git %v: %q, %v", args, out, err)
		}
	}
}

// dripping is a box whose files are read in pieces, and end early.
type dripping struct {
	sandbox.Box
	text string
}

func (d dripping) ReadFrom(_ context.Context, _ string, off int64) ([]byte, error) {
	return []byte(d.text[off:min(off+5, int64(len(d.text)))]), nil
}

// TestReadToTheEnd: what is searched for secrets is all of it.
func TestReadToTheEnd(t *testing.T) {
	t.Parallel()
	for text, whole := range map[string]bool{
		"some output" + complete:                          true,
		"some output":                                     false,
		"some output" + complete[:len(complete)-1]:        false,
		"some output" + complete[:3] + complete[4:] + "x": false,
	} {
		r := &repository{box: dripping{text: text}, secrets: []string{"sk-the-secret"}}
		out := sandbox.Output{Process: sandbox.Process{Size: int64(len(text))}, Data: []byte(text[:2]), Truncated: true}
		if err := r.read(t.Context(), out); (err == nil) != whole || err != nil && !noRoom(err) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestNoRoomInGitsWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"fatal: unable to write loose object file: No space left on device":                   true,
		"fatal: sha1 file '/work/repo/.git/index.lock' write error. Out of diskspace":         true,
		"fatal: cannot update ref 'refs/heads/x': couldn't write '/work/repo/.git/HEAD.lock'": true,
		"remote: fatal: write error: No space left on device\nerror: remote unpack failed":    false,
		"fatal: unable to access: the server is away":                                         false,
	} {
		if got := noRoom(&gitError{Command: "x", Code: 128, Output: text}); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
	if noRoom(nil) {
		t.Error("nothing went wrong")
	}
}

// brimful is a cloud whose boxes have no room: the first not even for a token.
type brimful struct{ *cloud }

func (b brimful) Attach(ctx context.Context, id string, ttl time.Duration) (sandbox.Box, error) {
	m, err := b.find(id)
	if err != nil {
		return nil, err
	}
	return brim{m}, b.Extend(ctx, id, time.Now().Add(ttl))
}

type brim struct{ *machine }

func (b brim) Write(ctx context.Context, path string, data []byte, mode fs.FileMode) error {
	if b.info.ID == "box1" {
		return &fs.PathError{Op: "writing", Path: path, Err: syscall.ENOSPC}
	}
	return b.machine.Write(ctx, path, data, mode)
}

func (b brim) Spawn(context.Context, sandbox.Command) (sandbox.Process, error) {
	return sandbox.Process{}, fmt.Errorf("starting git: %w", syscall.ENOSPC)
}

// TestABoxWithoutRoomIsReplaced: nobody can make room in a box in which not even
// an agent can be started. A box that is new and has none is the operator's to
// mend.
func TestABoxWithoutRoomIsReplaced(t *testing.T) {
	inTime(t, func(t *testing.T, h *host) {
		h.turn(true)
		h.Boxes = brimful{h.cloud}
		_, err := h.prepareBox(t.Context(), h.job(session.Prepare))
		if !noRoom(err) {
			t.Fatalf("box1 has room: %v", err)
		}
		_, err = h.prepareAnother(t.Context(), h.job(session.Prepare), err)
		h.wants("made box1", "destroyed box1", "made box2")
		var p *session.Problem
		if !errors.As(err, &p) || p.Again || !strings.Contains(p.Say, "give boxes more room") || !noRoom(p.Err) {
			t.Errorf("it ended with %v", err)
		}
	})
}
