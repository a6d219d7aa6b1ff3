package local_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ship/sandbox"
	"ship/sandbox/guest"
	"ship/sandbox/local"
	"ship/sandbox/sandboxtest"
)

// The test binary is also what runs in the boxes, and the gateway that is
// killed.
func TestMain(m *testing.M) {
	roles := map[string]func(args []string) int{
		"guest":   func(args []string) int { return guest.Main(context.Background(), args) },
		"echo":    echo,
		"connect": connect,
		"get":     get,
		"web":     web,
		"gateway": gateway,
	}
	if len(os.Args) > 1 && roles[os.Args[1]] != nil {
		// Not os.Exit, at which the race detector would sleep for a second.
		syscall.Exit(roles[os.Args[1]](os.Args[2:]))
	}
	if err := sandboxtest.Overlap(); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// echo sends back what is sent to a port.
func echo(args []string) int {
	listener, err := net.Listen("tcp", "127.0.0.1:"+args[0])
	if err != nil {
		return fail(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return fail(err)
		}
		go func() {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}()
	}
}

// connect says why a connection cannot be had.
func connect(args []string) int {
	conn, err := net.DialTimeout(args[0], args[1], 5*time.Second)
	if err != nil {
		return fail(err)
	}
	fmt.Println("connected")
	_ = conn.Close()
	return 0
}

// get prints what an URL answers.
func get(args []string) int {
	response, err := http.Get(args[0])
	if err != nil {
		return fail(err)
	}
	fmt.Print(response.StatusCode, " ")
	if _, err := io.Copy(os.Stdout, response.Body); err != nil {
		return fail(err)
	}
	return 0
}

// web answers HTTP on a port with the path that it is asked for.
func web(args []string) int {
	return fail(http.ListenAndServe("127.0.0.1:"+args[0], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "in the box: ", r.URL.Path)
	})))
}

// inBox is where the test binary lies in a box.
const inBox = "/opt/ship/ship"

func needBubblewrap(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("bubblewrap is not installed")
	}
}

// open returns a provider, in a folder of its own unless cfg says where.
func open(t testing.TB, cfg local.Config) *local.Provider {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	p, err := local.New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return p
}

// create makes a box that is destroyed after the test.
func create(t *testing.T, p *local.Provider) (sandbox.Info, sandbox.Box) {
	t.Helper()
	info, err := p.Create(t.Context(), sandbox.Spec{Key: t.Name(), Generation: 1, TTL: time.Hour})
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	t.Cleanup(func() {
		if err := p.Destroy(context.WithoutCancel(t.Context()), info.ID); err != nil {
			t.Errorf("Destroy: %v", err)
		}
	})
	box, err := p.Attach(t.Context(), info.ID, 0)
	if err != nil {
		t.Fatalf("Attach: %v", err)
	}
	return info, box
}

func run(t *testing.T, box sandbox.Box, name string, args ...string) sandbox.Output {
	t.Helper()
	out, err := sandbox.Exec(t.Context(), box, sandbox.Command{Name: name, Args: args})
	if err != nil {
		t.Fatalf("Exec(%s): %v", name, err)
	}
	return out
}

func shell(t *testing.T, box sandbox.Box, name, script string) sandbox.Output {
	t.Helper()
	return run(t, box, name, "/bin/sh", "-c", script)
}

// patience bounds every wait for what only a fault keeps from coming.
const patience = 3 * time.Minute

// await polls until ok: what it waits for announces nothing.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func TestBubblewrap(t *testing.T) {
	t.Parallel()
	needBubblewrap(t)
	// Longer than what a unix socket's address may hold.
	dir := filepath.Join(t.TempDir(), "a-folder-with-a-long-name-as-there-are-in-the-wild", "and-yet-another-one")
	sandboxtest.Run(t, sandboxtest.Factory{
		Open: func(t *testing.T) sandbox.Provider { return open(t, local.Config{Dir: dir}) },
		Echo: func(port int) []string { return []string{inBox, "echo", fmt.Sprint(port)} },
	})
}

func TestNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.Run(t, sandboxtest.Factory{
		Open: func(t *testing.T) sandbox.Provider {
			p := open(t, local.Config{Dir: dir, Isolation: local.None})
			p.SetBridge("127.0.0.1:0")
			return p
		},
		Echo:   func(port int) []string { return []string{self, "echo", fmt.Sprint(port)} },
		Single: true,
	})
}

// TestNoneBinds: what is bound is found under its name in the box.
func TestNoneBinds(t *testing.T) {
	t.Parallel()
	tool := filepath.Join(t.TempDir(), "tool")
	sandboxtest.WriteProgram(t, tool, "#!/bin/sh\necho $1\n")
	p := open(t, local.Config{Isolation: local.None, Binds: []local.Bind{{Host: tool, Box: "/opt/ship/tool"}}})
	p.SetBridge("127.0.0.1:0")
	_, box := create(t, p)
	if out := run(t, box, "tool", "/opt/ship/tool", "/workshop"); string(out.Data) != "/workshop\n" {
		t.Errorf("exit %d, %q", out.ExitCode, out.Data)
	}
}

// TestUnprivileged runs the suite again as a user who may do nothing.
func TestUnprivileged(t *testing.T) {
	needBubblewrap(t)
	if os.Getuid() != 0 {
		t.Skip("the other tests are unprivileged already")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "ship-unprivileged-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.WriteProgram(t, filepath.Join(dir, "local.test"), string(binary))
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	pattern := "TestBubblewrap/contract/(create_twice|destroy|kill|dial|write|spawn_environment)|TestIsolation"
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "local.test"), "-test.run", pattern, "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{"TMPDIR=" + dir, "PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}
