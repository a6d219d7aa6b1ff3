package turn

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ship/sandbox"
	"ship/sandbox/broker"
	"ship/sandbox/lifecycle"
	"ship/session"
)

// folder is a box without walls: /work is a temporary folder of this machine.
type folder struct {
	sandbox.Box
	dir  string
	outs map[string][]byte
	// run is the folder that stands for /run/ship; empty: dir does.
	run string
	// tight: what a process prints has to fit on the disk too.
	tight bool
}

func (f *folder) here(path string) string {
	return strings.NewReplacer(sandbox.WorkDir, f.dir, sandbox.RunDir, cmp.Or(f.run, f.dir)).Replace(path)
}

func (f *folder) Spawn(ctx context.Context, c sandbox.Command) (sandbox.Process, error) {
	if f.tight {
		if err := os.MkdirAll(filepath.Join(f.dir, "proc", c.Name), 0o755); err != nil {
			return sandbox.Process{}, err
		}
	}
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		args[i] = f.here(a)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Stdin = f.here(c.Dir), bytes.NewReader(c.Stdin)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.dir}
	for _, e := range c.Env {
		cmd.Env = append(cmd.Env, f.here(e))
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return sandbox.Process{}, err
	}
	if f.tight {
		out = f.kept(c.Name, out)
	}
	f.outs[c.Name] = out
	return sandbox.Process{Name: c.Name, ExitCode: cmd.ProcessState.ExitCode(), Output: c.Name, Size: int64(len(out))}, nil
}

func (f *folder) ReadFrom(_ context.Context, path string, off int64) ([]byte, error) {
	out, ok := f.outs[path]
	if !ok {
		var err error
		if out, err = os.ReadFile(f.here(path)); err != nil {
			return nil, err
		}
	}
	end := int64(len(out))
	return out[min(off, end):min(off+1<<20, end)], nil
}

// desk is a repository in a box and the remote that it was checked out from.
type desk struct {
	*repository
	t      *testing.T
	remote string
	start  string
}

// newDesk is a box in which the session's branch has just been checked out.
// Its remote has one commit on main.
func newDesk(t *testing.T) *desk {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	return newDeskAt(t, t.TempDir(), "")
}

// newDeskAt has the box's files in a folder that exists, or in none of its own.
func newDeskAt(t *testing.T, dir, work string) *desk {
	t.Helper()
	d := &desk{t: t, remote: filepath.Join(dir, "remote.git")}
	seed := filepath.Join(dir, "seed")
	d.sh(dir, "git init -q --bare -b main remote.git && git init -q -b main seed")
	d.sh(seed, "echo one > a && git add a && git commit -q -m one && git push -q "+d.remote+" main")
	box := &folder{dir: cmp.Or(work, filepath.Join(dir, "work")), outs: map[string][]byte{}}
	d.repository = &repository{box: box, name: "acme/widgets", base: "main", branch: "ship/x-gh-1-7", author: Identity{"ship", "ship@example.com"}, bounds: usualBounds()}
	repo := filepath.Join(box.dir, "repo")
	d.sh(dir, "mkdir -p "+repo)
	if _, err := d.init(t.Context()); err != nil {
		t.Fatal(err)
	}
	// No broker and no network here: git speaks with itself.
	d.sh(repo, "git config remote.origin.url 'ext::git %s "+d.remote+"' && git config protocol.ext.allow always")
	if _, err := d.fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.enter(t.Context(), true, false); err != nil {
		t.Fatal(err)
	}
	d.begin()
	return d
}

// sh is what the agent, or somebody else, does in a folder.
func (d *desk) sh(dir, script string) string {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), "sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("%s: %v: %s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// agent does something in the repository.
func (d *desk) agent(script string) string {
	d.t.Helper()
	return d.sh(d.box.(*folder).here(sandbox.RepoDir), script)
}

// begin is the beginning of another turn in the same box.
func (d *desk) begin() {
	d.t.Helper()
	d.start = d.agent("git rev-parse HEAD")
}

func (d *desk) mustPublish() session.Published {
	d.t.Helper()
	p, err := d.publish(d.t.Context(), d.start, "work")
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

// pushed is a file's content on the session's branch of the remote.
func (d *desk) pushed(file string) string {
	d.t.Helper()
	return d.sh(d.remote, "git show "+d.branch+":"+file+" 2>/dev/null || echo nothing")
}

func TestPublishTwiceIsOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.agent("echo two > b")
	first := d.mustPublish()
	if !first.Changed || first.Files != 1 || d.pushed("b") != "two" {
		t.Errorf("published %+v, %s", first, d.pushed("b"))
	}
	if again := d.mustPublish(); again != first {
		t.Errorf("then %+v, first %+v", again, first)
	}
}

func TestPublishNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if p := d.mustPublish(); p != (session.Published{}) {
		t.Errorf("published %+v", p)
	}
	d.agent("echo two > b")
	head := d.mustPublish().Head
	d.begin()
	if p := d.mustPublish(); p.Changed || p.Head != head {
		t.Errorf("published %+v", p)
	}
}

// TestPublishWhatAnEarlierTurnCouldNot: the push was refused, a person has put
// that right and said retry, and the agent finds nothing left to do.
func TestPublishWhatAnEarlierTurnCouldNot(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.sh(d.remote, "git config receive.maxInputSize 1")
	d.agent("echo two > b")
	if _, err := d.publish(t.Context(), d.start, "work"); err == nil {
		t.Fatal("it was refused")
	}
	d.sh(d.remote, "git config --unset receive.maxInputSize")
	d.begin()
	if p := d.mustPublish(); !p.Changed || p.Head == "" || p.Files != 1 || d.pushed("b") != "two" {
		t.Errorf("published %+v, %s", p, d.pushed("b"))
	}
}

// TestWarningsAreNotRead: git says something beside what it was asked for.
func TestWarningsAreNotRead(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.agent("git update-ref refs/heads/HEAD HEAD && echo two > b")
	if said := d.agent("git rev-parse HEAD 2>&1 >/dev/null"); !strings.Contains(said, "ambiguous") {
		t.Skipf("this git does not warn: %s", said)
	}
	p := d.mustPublish()
	if p.Head != d.sh(d.remote, "git rev-parse "+d.branch) || d.pushed("b") != "two" {
		t.Errorf("published %+v, %s", p, d.pushed("b"))
	}
}

func TestPublishFromWhereverTheAgentWentTo(t *testing.T) {
	t.Parallel()
	const work = "echo two > b && git add b && git commit -q -m two"
	for name, script := range map[string]string{
		"looked at the base":     work + " && git checkout -q -b main origin/main",
		"looked at a commit":     work + " && git checkout -q HEAD~1",
		"detached":               "git checkout -q --detach && " + work,
		"detached, uncommitted":  "git checkout -q --detach && echo two > b",
		"a branch of its own":    "git checkout -q -b mine && " + work,
		"renamed the branch":     "git branch -q -m mine && " + work,
		"on both":                work + " && git checkout -q -b mine origin/main && echo three > c",
		"in a stopped rebase":    work + " && echo x > a && git commit -q -am x && git checkout -q -b o HEAD~1 && echo y > a && git commit -q -am y && git checkout -q - && (git rebase o || true)",
		"a stale lock":           "echo two > b && touch -d '5 minutes ago' .git/index.lock",
		"in a finished merge":    "git checkout -q -b o && echo y > a && git commit -q -am y && git checkout -q - && echo x > a && echo two > b && git add b && git commit -q -am x && (git merge o || true) && echo z > a",
		"in an unfinished merge": "git checkout -q -b o && echo y > a && git commit -q -am y && git checkout -q - && echo x > a && echo two > b && git add b && git commit -q -am x && (git merge o || true)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.agent(script)
			p := d.mustPublish()
			if !p.Changed || d.pushed("b") != "two" {
				t.Errorf("published %+v, %s", p, d.pushed("b"))
			}
			if a := d.pushed("a"); strings.Contains(a, "<<<<") {
				t.Errorf("a conflict was published as if it were resolved:\n%s", a)
			}
			if name == "on both" && d.pushed("c") != "three" {
				t.Error("what was done on the other branch is lost")
			}
		})
	}
}

// TestPublishLeavesOthersWorkAlone: the agent looked at another branch of the
// remote and stayed there.
func TestPublishLeavesOthersWorkAlone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.agent("echo two > b && git add b && git commit -q -m two && git push -q origin HEAD:refs/heads/other && git fetch -q && git reset -q --hard origin/main && git checkout -q --detach origin/other")
	if p := d.mustPublish(); p.Changed {
		t.Errorf("published %+v", p)
	}
}

func TestPublishMergesWhatOthersPushed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.agent("echo two > b")
	d.mustPublish()
	d.begin()
	other := t.TempDir()
	d.sh(other, "git clone -q -b "+d.branch+" "+d.remote+" . && echo theirs > c && git add c && git commit -q -m theirs && git push -q origin HEAD")
	d.agent("echo three > b")
	p := d.mustPublish()
	if d.pushed("b") != "three" || d.pushed("c") != "theirs" || p.Head != d.sh(d.remote, "git rev-parse "+d.branch) {
		t.Errorf("published %+v: %s, %s", p, d.pushed("b"), d.pushed("c"))
	}
}

func TestPublishDoesNotOverwriteOthers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.agent("echo two > b")
	d.mustPublish()
	d.begin()
	other := t.TempDir()
	d.sh(other, "git clone -q -b "+d.branch+" "+d.remote+" . && echo theirs > b && git commit -q -am theirs && git push -q origin HEAD")
	d.agent("echo three > b")
	if _, err := d.publish(t.Context(), d.start, "work"); !errors.Is(err, errConflict) {
		t.Errorf("published with %v", err)
	}
	if d.pushed("b") != "theirs" {
		t.Error("somebody's work was overwritten")
	}
}

func TestPublishAsksForAMergeToBeFinished(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.agent("echo 1 > c && git add c && git commit -q -m c && git checkout -q -b o && echo y > a && echo y > b && git add b && git commit -q -am y && git checkout -q - && echo x > a && git commit -q -am x && (git merge o || true) && echo more > b")
	if _, err := d.publish(t.Context(), d.start, "work"); !errors.Is(err, errUnfinished) {
		t.Errorf("published with %v", err)
	}
	if got := d.agent("cat b"); got != "more" {
		t.Errorf("what was changed besides is %q", got)
	}
}

// yard is a provider with one box.
type yard struct {
	sandbox.Provider
	box      *folder
	extended time.Time
}

func (y *yard) Attach(context.Context, string, time.Duration) (sandbox.Box, error) { return y.box, nil }

func (y *yard) Extend(_ context.Context, _ string, until time.Time) error {
	y.extended = until
	return nil
}

func (y *yard) Info(context.Context, string) (sandbox.Info, error) {
	return sandbox.Info{ID: "box", State: sandbox.Running, Expires: time.Now().Add(time.Minute)}, nil
}

// Write replaces a file as the guest does.
func (f *folder) Write(_ context.Context, path string, data []byte, mode fs.FileMode) error {
	temp := f.here(path) + ".new"
	if err := os.WriteFile(temp, data, mode); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return os.Rename(temp, f.here(path))
}

// newYard is a worker on a desk's box, and the job to publish what is in it.
func newYard(t *testing.T, d *desk) (*yard, *Worker, session.Job) {
	t.Helper()
	signer, err := broker.NewSigner(make([]byte, broker.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	y := &yard{box: d.box.(*folder)}
	w := New(Config{
		Boxes: y, Tokens: signer, Broker: newBooks(), Life: lifecycle.Default(), Log: slog.New(slog.DiscardHandler),
		Restore: func(context.Context, sandbox.Box) error { return nil },
		Message: func(session.State) string { return "work" }, Author: d.author,
	})
	s := session.State{
		ID: "gh.1.7", Repo: session.Repo{Name: d.name}, Base: d.base, Branch: d.branch, Box: "box",
		Life: &lifecycle.Box{ID: "box", State: lifecycle.Busy, Since: time.Now(), Born: time.Now(), Begun: time.Now()},
		Turn: &session.Turn{N: 1, Stage: session.Publishing, Start: d.start, Deadline: time.Now().Add(time.Hour)},
	}
	return y, w, session.Job{
		Now: time.Now, Effect: session.Effect{Kind: session.Publish}, State: s, Latest: func() session.State { return s },
	}
}

// TestWhatCouldNotBePushedIsKept: the person who is told what to put right needs
// some time for it.
func TestWhatCouldNotBePushedIsKept(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.agent("echo two > b")
	d.sh(d.remote, "git config receive.maxInputSize 1")
	y, w, job := newYard(t, d)
	if _, err := w.Perform(t.Context(), job); err == nil {
		t.Fatal("it was refused")
	}
	if left := time.Until(y.extended); left < w.Life.IdlePause+w.Life.Settle {
		t.Errorf("the box lives for another %s", left)
	}
}

func TestABranchThatNobodyCanPushToIsToldAtOnce(t *testing.T) {
	t.Parallel()
	_, w, job := newYard(t, newDesk(t))
	for _, branch := range []string{"-rf", "fix(x)", "a..b", "über"} {
		job.State.Branch = branch
		_, err := w.Perform(t.Context(), job)
		var p *session.Problem
		if !errors.As(err, &p) || p.Again || !strings.Contains(p.Say, "Rename") {
			t.Errorf("%s: %v", branch, err)
		}
	}
}
