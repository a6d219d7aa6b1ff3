package sandboxtest

import (
	"bytes"
	"errors"
	"io/fs"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ship/sandbox"
)

func spawnTwice(t *testing.T, s suite) {
	box := s.box(t)
	cmd := command("once", "echo x >> /work/starts; sleep 600")
	first := spawn(t, box, cmd)
	awaitText(t, box, "/work/starts", "x")
	if second := spawn(t, box, cmd); second.PID != first.PID || !second.Running {
		t.Errorf("Spawn returned %+v, then %+v", first, second)
	}
	if err := box.Kill(t.Context(), "once", 0); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	// Not even after it has ended.
	if third := spawn(t, box, cmd); third.PID != first.PID || third.Running {
		t.Errorf("after its end, Spawn returned %+v", third)
	}
	if out := shell(t, box, "count", "wc -l < /work/starts"); string(bytes.TrimSpace(out.Data)) != "1" {
		t.Errorf("it was started %s times", bytes.TrimSpace(out.Data))
	}
}

func spawnConcurrently(t *testing.T, s suite) {
	box := s.box(t)
	pids := make([]int, 8)
	var all sync.WaitGroup
	for i := range pids {
		all.Go(func() {
			p, err := box.Spawn(t.Context(), command("once", "echo x >> /work/starts"))
			if err != nil {
				t.Errorf("Spawn: %v", err)
			}
			pids[i] = p.PID
		})
	}
	all.Wait()
	if out := shell(t, box, "once", "unused"); out.PID != pids[0] {
		t.Errorf("the process is %d, the first Spawn said %d", out.PID, pids[0])
	}
	for _, pid := range pids {
		if pid != pids[0] {
			t.Errorf("several processes of one name: %v", pids)
		}
	}
	if out := shell(t, box, "count", "wc -l < /work/starts"); string(bytes.TrimSpace(out.Data)) != "1" {
		t.Errorf("it was started %s times", bytes.TrimSpace(out.Data))
	}
}

// spawnMissing: what never started leaves its name free.
func spawnMissing(t *testing.T, s suite) {
	box := s.box(t)
	_, err := box.Spawn(t.Context(), sandbox.Command{Name: "p", Args: []string{"no-such-program"}})
	wantErr(t, "a program that does not exist", err, fs.ErrNotExist)
	_, err = box.Spawn(t.Context(), sandbox.Command{Name: "p", Args: []string{"/bin/sh"}, Dir: "/work/nowhere"})
	wantErr(t, "a folder that does not exist", err, fs.ErrNotExist)
	if _, err = box.Spawn(t.Context(), sandbox.Command{Name: "p"}); err == nil {
		t.Error("a command without a program was started")
	}
	_, err = box.Process(t.Context(), "p")
	wantErr(t, "Process", err, sandbox.ErrGone)
	wantErr(t, "Kill", box.Kill(t.Context(), "p", 0), sandbox.ErrGone)
	if out := shell(t, box, "p", "exit 7"); out.ExitCode != 7 {
		t.Errorf("the name was not free: %+v", out)
	}
}

func spawnNames(t *testing.T, s suite) {
	box := s.box(t)
	for _, name := range []string{"", ".", "..", "a/b", "../x", "a b", "ä", "a\x00b", strings.Repeat("x", 300)} {
		if _, err := box.Spawn(t.Context(), command(name, "true")); err == nil {
			t.Errorf("a process of the name %q was started", name)
		}
	}
	for _, name := range []string{"a", "A-1_b.c", "...", "turn-01.agent"} {
		if out := shell(t, box, name, "true"); out.Name != name || out.ExitCode != 0 {
			t.Errorf("a process of the name %q: %+v", name, out.Process)
		}
	}
}

func spawnEnvironment(t *testing.T, s suite) {
	box := s.box(t)
	cmd := command("env", `echo "$HOME|$LANG|$GREETING|$TWICE"; test -n "$PATH" && test -d "$HOME" && test -w "$TMPDIR"`)
	cmd.Env = []string{"GREETING=a b=c\nd", "TWICE=1", "TWICE=2"}
	out, err := sandbox.Exec(t.Context(), box, cmd)
	if err != nil {
		t.Fatalf("Exec: %v", err)
	}
	home := strings.TrimSpace(string(shell(t, box, "home", "cd "+sandbox.HomeDir+" && pwd").Data))
	want := home + "|C.UTF-8|a b=c\nd|2\n"
	if string(out.Data) != want || out.ExitCode != 0 {
		t.Errorf("exit %d, output %q, want %q", out.ExitCode, out.Data, want)
	}
}

func spawnFolder(t *testing.T, s suite) {
	box := s.box(t)
	pwd := func(name, dir string) string {
		t.Helper()
		cmd := command(name, "pwd -P")
		cmd.Dir = dir
		out, err := sandbox.Exec(t.Context(), box, cmd)
		if err != nil {
			t.Fatalf("Exec: %v", err)
		}
		return strings.TrimSpace(string(out.Data))
	}
	work := pwd("work", sandbox.WorkDir)
	if got := pwd("none", ""); got != work {
		t.Errorf("without a repository it starts in %s, want %s", got, work)
	}
	shell(t, box, "make", "mkdir -p "+sandbox.RepoDir+"/sub")
	if got := pwd("repo", ""); got != work+"/repo" {
		t.Errorf("with a repository it starts in %s", got)
	}
	if got := pwd("sub", sandbox.RepoDir+"/sub"); got != work+"/repo/sub" {
		t.Errorf("it starts in %s", got)
	}
}

func spawnStdin(t *testing.T, s suite) {
	box := s.box(t)
	input := bytes.Repeat([]byte("0123456789abcdef\n"), 64<<10)
	out, err := sandbox.Exec(t.Context(), box, sandbox.Command{Name: "big", Args: []string{"cat"}, Stdin: input})
	if err != nil {
		t.Fatalf("Exec: %v", err)
	}
	if !bytes.Equal(out.Data, input) {
		t.Errorf("of %d bytes of stdin %d came back", len(input), len(out.Data))
	}
	if out := shell(t, box, "empty", "cat; echo end"); string(out.Data) != "end\n" {
		t.Errorf("without stdin: %q", out.Data)
	}
}

func exits(t *testing.T, s suite) {
	box := s.box(t)
	for _, try := range []struct {
		name, script string
		code         int
		signal       string
	}{
		{"zero", "exit 0", 0, ""},
		{"three", "exit 3", 3, ""},
		{"max", "exit 255", 255, ""},
		{"term", "kill -TERM $$", -1, "SIGTERM"},
		{"kill", "kill -KILL $$", -1, "SIGKILL"},
		{"segv", "kill -SEGV $$", -1, "SIGSEGV"},
	} {
		out := shell(t, box, try.name, try.script)
		if out.Running || out.ExitCode != try.code || out.Signal != try.signal {
			t.Errorf("%s: %+v, want code %d, signal %q", try.script, out.Process, try.code, try.signal)
		}
	}
	p := spawn(t, box, command("running", "sleep 600"))
	if !p.Running || p.ExitCode != -1 || p.PID <= 0 || time.Since(p.Started).Abs() > patience {
		t.Errorf("a running process: %+v", p)
	}
}

func outputOffsets(t *testing.T, s suite) {
	box := s.box(t)
	p := spawn(t, box, command("talk", "echo one; until test -e /work/go; do sleep 0.05; done; echo two"))
	awaitText(t, box, p.Output, "one\n")
	data, err := box.ReadFrom(t.Context(), p.Output, 4)
	if err != nil || len(data) != 0 {
		t.Errorf("at its end the file yields %q, %v", data, err)
	}
	if err := box.Write(t.Context(), "/work/go", nil, 0o644); err != nil {
		t.Fatalf("Write: %v", err)
	}
	await(t, "it ends", func() bool {
		p, err := box.Process(t.Context(), "talk")
		return err == nil && !p.Running
	})
	// All output is there as soon as the process counts as ended.
	data, err = box.ReadFrom(t.Context(), p.Output, 4)
	if err != nil || string(data) != "two\n" {
		t.Errorf("the second half is %q, %v", data, err)
	}
	if p, _ = box.Process(t.Context(), "talk"); p.Size != int64(len("one\ntwo\n")) {
		t.Errorf("the size is %d", p.Size)
	}
}

func outputOrder(t *testing.T, s suite) {
	box := s.box(t)
	out := shell(t, box, "both", "echo 1; echo 2 >&2; echo 3; echo 4 >&2")
	if string(out.Data) != "1\n2\n3\n4\n" {
		t.Errorf("stdout and stderr together: %q", out.Data)
	}
	const size = 3 << 20
	out = shell(t, box, "much", "head -c 3145728 /dev/zero | tr '\\0' x")
	if len(out.Data) != size || out.Size != size || out.Truncated {
		t.Errorf("of %d bytes there are %d, size %d", size, len(out.Data), out.Size)
	}
}

// outputBackground: a child that keeps stdout open does not keep the process
// from having ended, and what it prints later is kept.
func outputBackground(t *testing.T, s suite) {
	box := s.box(t)
	out := shell(t, box, "parent", "(until test -e /work/go; do sleep 0.05; done; echo late) & echo early")
	if string(out.Data) != "early\n" || out.ExitCode != 0 {
		t.Errorf("%+v, output %q", out.Process, out.Data)
	}
	if err := box.Write(t.Context(), "/work/go", nil, 0o644); err != nil {
		t.Fatalf("Write: %v", err)
	}
	awaitText(t, box, out.Output, "late\n")
}

func killGroup(t *testing.T, s suite) {
	box := s.box(t)
	// Where there is no isolation, the sleepers of others can be seen as well.
	whole := strconv.Itoa(1e6 + mathrand.IntN(1e6))
	// One child in the group, one grandchild, and one that has left for a
	// session of its own.
	p := spawn(t, box, command("tree", strings.ReplaceAll(`
		sh -c 'sh -c "echo a; exec sleep WHOLE1" & exec sleep WHOLE2' &
		setsid sh -c 'echo b; exec sleep WHOLE3' &
		exec sleep WHOLE4`, "WHOLE", whole)))
	awaitText(t, box, p.Output, "a\n")
	awaitText(t, box, p.Output, "b\n")
	if err := box.Kill(t.Context(), "tree", patience); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	out := shell(t, box, "look", `for f in /proc/[0-9]*/cmdline; do tr '\0' ' ' < $f 2>/dev/null; echo; done | grep '^sleep `+whole+`[1-4] '`)
	if out.ExitCode == 0 {
		t.Errorf("still there: %s", out.Data)
	}
	if p, err := box.Process(t.Context(), "tree"); err != nil || p.Running || p.Signal != "SIGTERM" {
		t.Errorf("after Kill: %+v, %v", p, err)
	}
}

func killGrace(t *testing.T, s suite) {
	box := s.box(t)
	spawn(t, box, command("polite", "trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.05; done"))
	spawn(t, box, command("stubborn", "trap '' TERM; echo up; while :; do sleep 0.05; done"))
	for _, name := range []string{"polite", "stubborn"} {
		p, err := box.Process(t.Context(), name)
		if err != nil {
			t.Fatalf("Process: %v", err)
		}
		awaitText(t, box, p.Output, "up")
	}
	if err := box.Kill(t.Context(), "polite", patience); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	if p, err := box.Process(t.Context(), "polite"); err != nil || p.ExitCode != 9 {
		t.Errorf("polite: %+v, %v", p, err)
	}
	const grace = 300 * time.Millisecond
	begin := time.Now()
	if err := box.Kill(t.Context(), "stubborn", grace); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	if took := time.Since(begin); took < grace {
		t.Errorf("no grace: %s", took)
	}
	if p, err := box.Process(t.Context(), "stubborn"); err != nil || p.Signal != "SIGKILL" {
		t.Errorf("stubborn: %+v, %v", p, err)
	}
}

func killEnded(t *testing.T, s suite) {
	box := s.box(t)
	shell(t, box, "short", "exit 4")
	for range 2 {
		if err := box.Kill(t.Context(), "short", time.Second); err != nil {
			t.Errorf("Kill: %v", err)
		}
	}
	if p, err := box.Process(t.Context(), "short"); err != nil || p.ExitCode != 4 {
		t.Errorf("%+v, %v", p, err)
	}
	if err := box.Kill(t.Context(), "never", 0); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("Kill of what never was: %v", err)
	}
}
