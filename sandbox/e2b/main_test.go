package e2b_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ship/config"
	"ship/sandbox"
	"ship/sandbox/e2b"
	"ship/sandbox/e2b/e2btest"
	"ship/sandbox/guest"
	"ship/sandbox/sandboxtest"
)

// The test binary is also the daemon of the boxes, the guest in them, and a
// server for it to reach.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		// Not os.Exit, at which the race detector would sleep for a second.
		switch os.Args[1] {
		case e2btest.Role:
			syscall.Exit(e2btest.Inside())
		case "guest":
			syscall.Exit(guest.Main(context.Background(), os.Args[2:]))
		case "echo":
			syscall.Exit(echo(os.Args[2]))
		}
	}
	if err := sandboxtest.Overlap(); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// echo sends back what is sent to a port.
func echo(port string) int {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return 1
		}
		go func() {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}()
	}
}

// world is a stand-in with what all gateways on it share.
type world struct {
	*e2btest.Server
	vault *e2btest.Vault
}

func newWorld(t testing.TB, o e2btest.Options) *world {
	t.Helper()
	w := &world{Server: e2btest.New(t, o), vault: &e2btest.Vault{}}
	t.Cleanup(func() {
		for _, violation := range w.Violations() {
			t.Errorf("violation: %s", violation)
		}
	})
	return w
}

var testKey = []byte("0123456789abcdef0123456789abcdef")

// open returns a provider as another gateway would have it.
func (w *world) open(t testing.TB, changes ...func(*e2b.Config)) *e2b.Provider {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	cfg := e2b.Config{
		Settings:  e2b.Settings{APIKey: config.NewSecret(e2btest.Key), APIURL: w.URL, Template: e2btest.Template, User: e2btest.User},
		PublicURL: e2btest.AllowedURL, Key: testKey, Vault: w.vault, SandboxURL: w.SandboxURL, Transport: transport,
	}
	for _, change := range changes {
		change(&cfg)
	}
	p, err := e2b.New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return p
}

func spec(t *testing.T) sandbox.Spec {
	t.Helper()
	return sandbox.Spec{Key: t.Name(), Generation: 1, TTL: 5 * time.Minute}
}

func create(t *testing.T, p *e2b.Provider) sandbox.Info {
	t.Helper()
	info, err := p.Create(t.Context(), spec(t))
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	return info
}

func attach(t *testing.T, p *e2b.Provider, id string) sandbox.Box {
	t.Helper()
	box, err := p.Attach(t.Context(), id, time.Minute)
	if err != nil {
		t.Fatalf("Attach: %v", err)
	}
	return box
}

func shell(t *testing.T, box sandbox.Box, name, text string) sandbox.Output {
	t.Helper()
	out, err := sandbox.Exec(t.Context(), box, sandbox.Command{Name: name, Args: []string{"/bin/sh", "-c", text}})
	if err != nil {
		t.Fatalf("Exec(%s): %v", name, err)
	}
	return out
}

func TestProvider(t *testing.T) {
	w := newWorld(t, e2btest.Options{PageSize: 1, Ship: true})
	sandboxtest.Run(t, sandboxtest.Factory{
		Open: func(t *testing.T) sandbox.Provider { return w.open(t) },
		Echo: func(port int) []string { return []string{"/sbin-envd", "echo", fmt.Sprint(port)} },
	})
}
