package docker_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ship/sandbox"
	"ship/sandbox/docker"
	"ship/sandbox/docker/dockertest"
	"ship/sandbox/guest"
	"ship/sandbox/sandboxtest"
)

// The test binary is also the guest of the boxes, and what runs in them.
func TestMain(m *testing.M) {
	roles := map[string]func(args []string) int{
		"guest": func(args []string) int { return guest.Main(context.Background(), args) },
		"echo":  echo,
		"get":   get,
		"deny":  deny,
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

// patience bounds every wait for what only a fault keeps from coming.
const patience = 3 * time.Minute

// inBox is where the test binary lies in a box.
const inBox = "/opt/ship/ship"

// engine is what a test needs of one: the stand-in, or a real one.
type engine interface {
	Settings() docker.Settings
	Containers() []dockertest.Container
	End(id string)
	Freeze(id string) error
}

// standIn is an engine of ours, which can be told to fail.
type standIn struct{ *dockertest.Engine }

func (e standIn) Settings() docker.Settings { return settings(e.Host) }

// newEngine starts one that takes only closed containers.
func newEngine(t testing.TB) standIn {
	t.Helper()
	e := standIn{dockertest.New(t)}
	t.Cleanup(func() {
		for _, complaint := range e.Complaints() {
			t.Errorf("a container has %s", complaint)
		}
	})
	return e
}

func settings(host string) docker.Settings {
	return docker.Settings{Host: host, Image: dockertest.Image, Memory: 1 << 30, CPUs: 16, PIDs: 256}
}

// open returns a provider, in a folder of its own unless cfg says where.
func open(t testing.TB, e engine, cfg docker.Config) *docker.Provider {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Host == "" {
		cfg.Settings = e.Settings()
	}
	p, err := docker.New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return p
}

func spec(t *testing.T) sandbox.Spec {
	t.Helper()
	return sandbox.Spec{Key: t.Name(), Generation: 1, TTL: time.Hour}
}

func create(t *testing.T, p *docker.Provider) sandbox.Info {
	t.Helper()
	info, err := p.Create(t.Context(), spec(t))
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	return info
}

func attach(t *testing.T, p *docker.Provider, id string) sandbox.Box {
	t.Helper()
	box, err := p.Attach(t.Context(), id, time.Minute)
	if err != nil {
		t.Fatalf("Attach: %v", err)
	}
	return box
}

func run(t *testing.T, box sandbox.Box, name string, args ...string) sandbox.Output {
	t.Helper()
	out, err := sandbox.Exec(t.Context(), box, sandbox.Command{Name: name, Args: args})
	if err != nil {
		t.Fatalf("Exec(%s): %v", name, err)
	}
	return out
}

func shell(t *testing.T, box sandbox.Box, name, script string) string {
	t.Helper()
	return strings.TrimSpace(string(run(t, box, name, "/bin/sh", "-c", script).Data))
}

func TestProvider(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	// Longer than what a unix socket's address may hold.
	dir := filepath.Join(t.TempDir(), "a-folder-with-a-long-name-as-there-are-in-the-wild", "and-yet-another-one")
	sandboxtest.Run(t, sandboxtest.Factory{
		Open: func(t *testing.T) sandbox.Provider { return open(t, e, docker.Config{Dir: dir}) },
		Echo: func(port int) []string { return []string{inBox, "echo", fmt.Sprint(port)} },
	})
	if left := e.Containers(); len(left) > 0 {
		t.Errorf("containers are left: %+v", left)
	}
}
