package guest_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ship/sandbox"
	"ship/sandbox/guest"
	"ship/sandbox/sandboxtest"
)

// The test binary is also the guest: a guest takes over its whole process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "guest" {
		// Not os.Exit, at which the race detector would sleep for a second.
		syscall.Exit(guest.Main(context.Background(), os.Args[2:]))
	}
	if err := sandboxtest.Overlap(); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// box is a guest without isolation.
type box struct {
	*guest.Client
	dir    string
	bridge string
	cmd    *exec.Cmd
	stderr *strings.Builder
}

func (b *box) file(name string) string { return filepath.Join(b.dir, name) }

// command is a guest that was not started yet.
func command(t *testing.T, args ...string) *box {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Longer than what a unix socket's address may hold.
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 20))
	b := &box{dir: dir, stderr: &strings.Builder{}}
	for _, name := range []string{"work", "run"} {
		if err := os.MkdirAll(b.file(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.bridge = freeAddress(t)
	args = append([]string{"guest", "-handshake", "-box", "b1", "-listen", "unix:" + b.file("sock"),
		"-work", b.file("work"), "-run", b.file("run"), "-bridge", b.bridge}, args...)
	b.cmd = exec.CommandContext(t.Context(), self, args...)
	b.cmd.Env = []string{"PATH=/usr/bin:/bin", "SECRET=do-not-tell"}
	b.cmd.Stderr = b.stderr
	b.Client = guest.NewClient(guest.Route{Dial: func(ctx context.Context) (net.Conn, error) {
		return guest.DialUnix(ctx, b.file("sock"))
	}})
	return b
}

// lastPort counts the ports that were handed out.
var lastPort atomic.Int64

// freeAddress is one that nobody listens on, with a port below those that the
// kernel gives to whoever asks for any.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 23000+(int64(os.Getpid())+lastPort.Add(1))%6000)
		if probe, err := net.Listen("tcp", address); err == nil {
			_ = probe.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// start starts a guest that is ended after the test.
func start(t *testing.T, args ...string) *box {
	t.Helper()
	return begin(t, command(t, args...))
}

func begin(t *testing.T, b *box) *box {
	t.Helper()
	stdin, err := b.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := b.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = b.cmd.Process.Signal(syscall.SIGTERM)
		_ = b.cmd.Wait()
	})
	if _, err := stdin.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the guest says %q, %v: %s", line, err, b.stderr)
	}
	return b
}

func script(name, text string) sandbox.Command {
	return sandbox.Command{Name: name, Args: []string{"/bin/sh", "-c", text}}
}

func (b *box) shell(t *testing.T, name, text string) sandbox.Output {
	t.Helper()
	out, err := sandbox.Exec(t.Context(), b, script(name, text))
	if err != nil {
		t.Fatalf("Exec(%s): %v", name, err)
	}
	return out
}

// patience bounds every wait for what only a fault keeps from coming.
const patience = 3 * time.Minute

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// ended returns how long a guest took to end, and its error.
func ended(t *testing.T, b *box) (time.Duration, error) {
	t.Helper()
	begin := time.Now()
	err := b.cmd.Wait()
	return time.Since(begin), err
}

func TestHandshake(t *testing.T) {
	t.Parallel()
	b := command(t)
	b.cmd.Stdin = strings.NewReader("")
	var said strings.Builder
	b.cmd.Stdout = &said
	if err := b.cmd.Run(); err == nil || said.Len() != 0 {
		t.Errorf("a guest that nobody knows started: %v, %q", err, &said)
	}
	if _, err := os.Stat(b.file("sock")); err == nil {
		t.Error("it made its socket")
	}
}

func TestMainRefuses(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-no-such-flag"}, {"-listen", "pigeon:x"}, {"-broker", "ftp://x"}, {"-broker", "x"},
		{"-work", "/no/such/folder"}, {"-run", "/no/such/folder"}, {"-listen", "fd:x"}, {"-bridge", "x"},
		{"-expires", "/no/such/file"},
	} {
		b := command(t, args...)
		b.cmd.Stdin = strings.NewReader("x")
		if err := b.cmd.Run(); err == nil || b.stderr.Len() == 0 {
			t.Errorf("%v: %v, %q", args, err, b.stderr)
		}
	}
}

func TestMainCheck(t *testing.T) {
	t.Parallel()
	if code := guest.Main(t.Context(), []string{"-check"}); code != 0 {
		t.Errorf("check: %d", code)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	b := start(t)
	if id, err := b.Health(t.Context()); err != nil || id != "b1" {
		t.Errorf("Health: %q, %v", id, err)
	}
}

// TestTerminate: SIGTERM ends all, also what does not want to, at once.
func TestTerminate(t *testing.T) {
	t.Parallel()
	b := start(t)
	p, err := b.Spawn(t.Context(), script("stubborn", `
		trap '' TERM
		setsid sh -c 'trap "" TERM; echo child $$; (sleep 500 & echo orphan $!); while :; do sleep 1; done' &
		echo parent $$; while :; do sleep 1; done`))
	if err != nil {
		t.Fatal(err)
	}
	var pids []string
	await(t, "all have started", func() bool {
		data, err := b.ReadFrom(t.Context(), p.Output, 0)
		pids = strings.Fields(string(data))
		return err == nil && len(pids) == 6
	})
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if took, err := ended(t, b); err != nil || took > patience {
		t.Errorf("the guest ended after %s: %v, %s", took, err, b.stderr)
	}
	for i := 1; i < len(pids); i += 2 {
		// One that is dead may wait for the machine's own first process.
		if text, err := os.ReadFile("/proc/" + pids[i] + "/stat"); err == nil && !strings.Contains(string(text), ") Z 1 ") {
			t.Errorf("%s lives: %s", pids[i-1], text)
		}
	}
}

// TestOrphans: nobody stays behind as a zombie.
func TestOrphans(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.shell(t, "parent", "for i in 1 2 3 4 5; do (true &) ; done")
	children := fmt.Sprintf("/proc/%d/task", b.cmd.Process.Pid)
	await(t, "all are reaped", func() bool {
		tasks, err := os.ReadDir(children)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			text, _ := os.ReadFile(filepath.Join(children, task.Name(), "children"))
			if len(text) > 0 {
				return false
			}
		}
		return true
	})
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "expires")
	set := func(at time.Time) {
		if err := os.WriteFile(path+".new", guest.FormatExpiry(at), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	// What is to happen before its time is what happens here first, for a measure.
	begin := time.Now()
	start(t)
	first := time.Now().Add(2*time.Second + 10*time.Since(begin))
	set(first)
	b := start(t, "-expires", path)
	last := first.Add(2 * time.Second)
	set(last)
	if _, err := b.Spawn(t.Context(), script("work", "sleep 500")); err != nil {
		t.Fatal(err)
	}
	if _, err := ended(t, b); err != nil {
		t.Errorf("the guest: %v, %s", err, b.stderr)
	}
	if late := time.Since(last); late < 0 || late > patience {
		t.Errorf("it ended %s after its time", late)
	}
}
