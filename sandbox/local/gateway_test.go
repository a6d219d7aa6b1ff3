package local_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ship/sandbox"
	"ship/sandbox/local"
	"ship/sandbox/sandboxtest"
)

// gateway makes a box, starts a process in it, says so, and waits for its own
// end.
func gateway(args []string) int {
	ctx := context.Background()
	p, err := local.New(local.Config{Dir: args[0]})
	if err != nil {
		return fail(err)
	}
	info, err := p.Create(ctx, sandbox.Spec{Key: args[1], Generation: 1, TTL: time.Hour})
	if err != nil {
		return fail(err)
	}
	box, err := p.Attach(ctx, info.ID, 0)
	if err != nil {
		return fail(err)
	}
	cmd := sandbox.Command{Name: "agent", Args: []string{"/bin/sh", "-c", "echo up; until test -e /work/go; do sleep 0.05; done; echo on; sleep 600"}}
	process, err := box.Spawn(ctx, cmd)
	if err != nil {
		return fail(err)
	}
	fmt.Println(info.ID, process.PID)
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	return 0
}

// TestSurvival: the process that made a box is killed with its whole group; the
// box goes on and is found again.
func TestSurvival(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	dir := t.TempDir()
	id, pid := killedGateway(t, dir)

	p := open(t, local.Config{Dir: dir})
	info, box := create(t, p)
	if info.ID != id {
		t.Fatalf("another box was made: %s instead of %s", info.ID, id)
	}
	agent, err := box.Process(t.Context(), "agent")
	if err != nil || agent.PID != pid || !agent.Running {
		t.Fatalf("the process is %+v, %v", agent, err)
	}
	if err := box.Write(t.Context(), "/work/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	await(t, "the process goes on", func() bool {
		data, err := box.ReadFrom(t.Context(), agent.Output, 0)
		return err == nil && string(data) == "up\non\n"
	})
	if err := p.Destroy(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	awaitNone(t, dir)
	left, err := filepath.Glob(filepath.Join(dir, "*-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("still there: %v, %v", left, err)
	}
}

// awaitNone waits until no process has text on its command line: bubblewrap
// itself ends a moment after the box.
func awaitNone(t *testing.T, text string) {
	t.Helper()
	await(t, "all processes of "+text+" end", func() bool {
		return exec.Command("pgrep", "-f", text).Run() != nil
	})
}

// killedGateway returns the box and the process that a killed gateway left.
func killedGateway(t *testing.T, dir string) (id string, pid int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "gateway", dir, t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // It was killed.
	if _, err := fmt.Sscan(line, &id, &pid); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return id, pid
}

// TestLeftovers: what crashes left in the folder goes, and nothing else.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := open(t, local.Config{Dir: dir})
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o444); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const id = "0123456789abcdef-abcdefghi"
	gone := []string{
		write(id+"0/work/file", "x"),
		write(id+"1/box.json", "{"),
		write(id+"2/box.json", `{"id":"`+id+`2","process":{"pid":1,"start":1,"boot":"x"}}`),
		write(".gone-"+id+"3-ABCDEF/work/deep/file", "x"),
	}
	kept := []string{write("notes/file", "x"), write("README", "x")}
	if err := os.Chmod(filepath.Join(dir, id+"0", "work"), 0o500); err != nil {
		t.Fatal(err)
	}
	infos, err := p.List(t.Context(), nil)
	if err != nil || len(infos) != 0 {
		t.Errorf("List: %v, %v", infos, err)
	}
	for _, path := range gone {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	for _, path := range kept {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s has gone: %v", path, err)
		}
	}
}

// TestReusedPID: a number that now belongs to somebody else is not our box.
func TestReusedPID(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := open(t, local.Config{Dir: dir})
	innocent := exec.CommandContext(t.Context(), "sleep", "600")
	if err := innocent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = innocent.Process.Kill(); _ = innocent.Wait() }()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	const id = "0123456789abcdef-abcdefghij"
	record, err := json.Marshal(map[string]any{"id": id, "key": "k", "process": map[string]any{
		"pid": innocent.Process.Pid, "start": 12345, "boot": strings.TrimSpace(string(boot))}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, id), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, id, "box.json"), record, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Attach(t.Context(), id, time.Minute); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("Attach: %v", err)
	}
	if err := p.Destroy(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(innocent.Process.Pid, 0); err != nil {
		t.Errorf("an innocent process was ended: %v", err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]local.Config{
		"no folder":      {},
		"isolation":      {Dir: t.TempDir(), Isolation: "docker"},
		"relative bind":  {Dir: t.TempDir(), Binds: []local.Bind{{Host: "x", Box: "/opt/x"}}},
		"bind on /":      {Dir: t.TempDir(), Binds: []local.Bind{{Host: "/opt", Box: "/"}}},
		"bind on /work":  {Dir: t.TempDir(), Binds: []local.Bind{{Host: "/opt", Box: "/work/x"}}},
		"bind over /run": {Dir: t.TempDir(), Binds: []local.Bind{{Host: "/opt", Box: "/run"}}},
		"bind with dots": {Dir: t.TempDir(), Binds: []local.Bind{{Host: "/opt", Box: "/opt/../usr"}}},
	} {
		if _, err := local.New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestCheck: a machine that cannot isolate says what to do.
func TestCheck(t *testing.T) {
	for name, script := range map[string]string{
		"missing": "",
		"broken":  "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			if script != "" {
				sandboxtest.WriteProgram(t, filepath.Join(dir, "bwrap"), script)
			}
			p := open(t, local.Config{})
			err := p.Check(t.Context())
			if !errors.Is(err, sandbox.ErrIsolation) || !strings.Contains(err.Error(), "sandbox.local.isolation") {
				t.Errorf("Check: %v", err)
			}
			_, err = p.Create(t.Context(), sandbox.Spec{Key: "k", TTL: time.Minute})
			if !errors.Is(err, sandbox.ErrIsolation) {
				t.Errorf("Create: %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*-*")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestOldBubblewrap: one that cannot forbid user namespaces is used without,
// and that is said once.
func TestOldBubblewrap(t *testing.T) {
	needBubblewrap(t)
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	old := t.TempDir()
	script := "#!/bin/sh\ncase \"$*\" in *--disable-userns*) echo 'unknown option' >&2; exit 1;; esac\nexec " + bwrap + " \"$@\"\n"
	sandboxtest.WriteProgram(t, filepath.Join(old, "bwrap"), script)
	t.Setenv("PATH", old+":"+os.Getenv("PATH"))
	var said strings.Builder
	p := open(t, local.Config{Logger: slog.New(slog.NewTextHandler(&said, nil))})
	_, box := create(t, p)
	if err := p.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if out := shell(t, box, "p", "echo works"); string(out.Data) != "works\n" {
		t.Errorf("%q", out.Data)
	}
	if n := strings.Count(said.String(), "user namespaces"); n != 1 {
		t.Errorf("said %d times: %s", n, &said)
	}
}

// TestCreateFails: of a box that cannot be made, nothing is left, and the
// reason is told.
func TestCreateFails(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	dir := t.TempDir()
	script := filepath.Join(t.TempDir(), "guest")
	// Good enough for the check, and no guest after that.
	text := "#!/bin/sh\ncase \"$*\" in *-check*) exit 0;; esac\necho 'a plain reason' >&2\nexit 1\n"
	sandboxtest.WriteProgram(t, script, text)
	p := open(t, local.Config{Dir: dir, Guest: script})
	_, err := p.Create(t.Context(), sandbox.Spec{Key: "k", TTL: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "a plain reason") {
		t.Errorf("Create: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestCreateCancelled: so too when the caller loses patience.
func TestCreateCancelled(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	dir := t.TempDir()
	script := filepath.Join(t.TempDir(), "guest")
	text := "#!/bin/sh\ncase \"$*\" in *-check*) exit 0;; esac\ntrap 'exit 0' TERM\nsleep 600 & wait\n"
	sandboxtest.WriteProgram(t, script, text)
	p := open(t, local.Config{Dir: dir, Guest: script})
	if err := p.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("no patience")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, cause)
	defer cancel()
	_, err := p.Create(ctx, sandbox.Spec{Key: "k", TTL: time.Minute})
	if !errors.Is(err, cause) {
		t.Errorf("Create: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	awaitNone(t, dir)
}
