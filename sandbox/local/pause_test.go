package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ship/sandbox"
	"ship/sandbox/local"
)

// processesOf are those of this machine whose command line names a folder.
func processesOf(t *testing.T, dir string) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), dir) {
			found = append(found, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}

// TestPausedBoxIsOnlyAFolder: nothing runs for it, so that it takes no memory, and
// a handle of before finds nobody. It wakes with its files and without its
// processes, also when many want it at once.
func TestPausedBoxIsOnlyAFolder(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	dir := t.TempDir()
	p := open(t, local.Config{Dir: dir})
	info, box := create(t, p)
	shell(t, box, "leave", "mkdir -p /work/a && echo kept > /work/a/b && chmod a-w /work/a")
	if _, err := box.Spawn(t.Context(), sandbox.Command{Name: "daemon", Args: []string{"sleep", "600"}}); err != nil {
		t.Fatal(err)
	}
	if len(processesOf(t, dir)) == 0 {
		t.Fatal("a box that runs has no processes")
	}
	if err := p.Pause(t.Context(), info.ID); err != nil {
		t.Fatalf("Pause: %v", err)
	}
	if left := processesOf(t, dir); len(left) > 0 {
		t.Errorf("a paused box has processes: %q", left)
	}
	if _, err := box.Process(t.Context(), "daemon"); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("a handle of before: %v", err)
	}
	if _, err := p.Peek(t.Context(), info.ID); !errors.Is(err, sandbox.ErrBusy) {
		t.Errorf("Peek: %v", err)
	}
	if again, err := p.Create(t.Context(), sandbox.Spec{Key: t.Name(), Generation: 2, TTL: time.Minute}); err != nil || again.ID != info.ID || again.State != sandbox.Paused {
		t.Errorf("Create found %+v, %v", again, err)
	}
	wakeAtOnce(t, p, info.ID)
	woken, err := p.Attach(t.Context(), info.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := woken.Process(t.Context(), "daemon"); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("a process of before: %v", err)
	}
	if out := shell(t, woken, "leave", "cat /work/a/b"); string(out.Data) != "kept\n" {
		t.Errorf("the file holds %q", out.Data)
	}
}

// wakeAtOnce attaches several times at once; only one guest may come of it.
func wakeAtOnce(t *testing.T, p *local.Provider, id string) {
	t.Helper()
	var all sync.WaitGroup
	pids := make([]string, 4)
	for i := range pids {
		all.Go(func() {
			box, err := p.Attach(t.Context(), id, time.Minute)
			if err != nil {
				t.Errorf("Attach: %v", err)
				return
			}
			out, err := sandbox.Exec(t.Context(), box, sandbox.Command{Name: "who", Args: []string{"readlink", "/proc/self/ns/pid"}})
			if err != nil {
				t.Errorf("Exec: %v", err)
			}
			pids[i] = string(out.Data)
		})
	}
	all.Wait()
	for _, pid := range pids {
		if pid != pids[0] || pid == "" {
			t.Errorf("several guests: %q", pids)
		}
	}
}

// TestPauseCutShort: ship was killed when it had noted the pause and not ended
// the processes yet. The box counts as paused, and whoever wakes it ends them.
func TestPauseCutShort(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	dir := t.TempDir()
	p := open(t, local.Config{Dir: dir})
	info, box := create(t, p)
	shell(t, box, "leave", "echo kept > /work/file")
	if _, err := box.Spawn(t.Context(), sandbox.Command{Name: "daemon", Args: []string{"sleep", "600"}}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, info.ID, "box.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	noted := strings.Replace(string(text), "{", `{"paused":true,`, 1)
	if err := os.WriteFile(path, []byte(noted), 0o600); err != nil {
		t.Fatal(err)
	}
	if now, err := p.Info(t.Context(), info.ID); err != nil || now.State != sandbox.Paused {
		t.Fatalf("Info says %+v, %v", now, err)
	}
	woken, err := p.Attach(t.Context(), info.ID, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := woken.Process(t.Context(), "daemon"); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("a process of before: %v", err)
	}
	if out := shell(t, woken, "look", "cat /work/file"); string(out.Data) != "kept\n" {
		t.Errorf("the file holds %q", out.Data)
	}
}

// TestWakeFails: a box that cannot be woken now stays what it was.
func TestWakeFails(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	dir := t.TempDir()
	p := open(t, local.Config{Dir: dir})
	info, box := create(t, p)
	shell(t, box, "leave", "echo kept > /work/file")
	if err := p.Pause(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
	broken := open(t, local.Config{Dir: dir, Binds: []local.Bind{{Host: "/no/such/program", Box: "/opt/ship/tool"}}})
	if err := broken.Check(t.Context()); err == nil {
		t.Fatal("a program that is not there is shown in boxes")
	}
	if _, err := broken.Attach(t.Context(), info.ID, time.Minute); err == nil {
		t.Error("it woke")
	}
	if now, err := p.Info(t.Context(), info.ID); err != nil || now.State != sandbox.Paused {
		t.Errorf("Info says %+v, %v", now, err)
	}
	woken, err := p.Attach(t.Context(), info.ID, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if out := shell(t, woken, "look", "cat /work/file"); string(out.Data) != "kept\n" {
		t.Errorf("the file holds %q", out.Data)
	}
}

// TestNonePaused: without isolation a paused box leaves its place to another, and
// wakes when that is free again.
func TestNonePaused(t *testing.T) {
	t.Parallel()
	p := open(t, local.Config{Isolation: local.None})
	p.SetBridge("127.0.0.1:0")
	first, _ := create(t, p)
	if err := p.Pause(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	second, err := p.Create(t.Context(), sandbox.Spec{Key: "second", Generation: 1, TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Attach(t.Context(), first.ID, time.Minute); !errors.Is(err, sandbox.ErrQuota) {
		t.Errorf("both run: %v", err)
	}
	if err := p.Destroy(t.Context(), second.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Attach(t.Context(), first.ID, time.Minute); err != nil {
		t.Error(err)
	}
}
