package guest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"ship/sandbox"
	"ship/sandbox/guest"
)

// overTCP starts a guest that serves whoever shows its secret.
func overTCP(t *testing.T) (b *box, address string) {
	t.Helper()
	address = freeAddress(t)
	b = command(t, "-listen", "tcp:"+address)
	b.cmd.Env = append(b.cmd.Env, guest.SecretVariable+"=open sesame")
	return begin(t, b), address
}

func client(address string, route guest.Route) *guest.Client {
	route.Dial = func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	return guest.NewClient(route)
}

func TestSecret(t *testing.T) {
	t.Parallel()
	_, address := overTCP(t)
	if id, err := client(address, guest.Route{Secret: "open sesame"}).Health(t.Context()); err != nil || id != "b1" {
		t.Errorf("with the secret: %q, %v", id, err)
	}
	for _, secret := range []string{"", "open", "open sesame!"} {
		stranger := client(address, guest.Route{Secret: secret})
		_, health := stranger.Health(t.Context())
		_, spawn := stranger.Spawn(t.Context(), script("x", "true"))
		_, dial := stranger.Dial(t.Context(), 1)
		for _, err := range []error{health, spawn, dial, stranger.Write(t.Context(), "/work/x", nil, 0o600)} {
			if !errors.Is(err, sandbox.ErrAuth) {
				t.Errorf("with %q: %v", secret, err)
			}
		}
	}
}

// TestSecretIsNotInherited: no process of the box finds it in its environment.
func TestSecretIsNotInherited(t *testing.T) {
	t.Parallel()
	_, address := overTCP(t)
	c := client(address, guest.Route{Secret: "open sesame"})
	out, err := sandbox.Exec(t.Context(), c, script("env", "env; tr '\\0' '\\n' < /proc/$PPID/cmdline"))
	if err != nil || bytes.Contains(out.Data, []byte("sesame")) || !bytes.Contains(out.Data, []byte("-listen")) {
		t.Errorf("a process sees %s, %v", out.Data, err)
	}
}

func TestTCPNeedsSecret(t *testing.T) {
	t.Parallel()
	b := command(t, "-listen", "tcp:"+freeAddress(t))
	b.cmd.Stdin = strings.NewReader("x")
	if err := b.cmd.Run(); err == nil || !strings.Contains(b.stderr.String(), guest.SecretVariable) {
		t.Errorf("without a secret: %v, %s", err, b.stderr)
	}
}

// TestDialFramed: a connection goes both ways within a WebSocket.
func TestDialFramed(t *testing.T) {
	t.Parallel()
	_, address := overTCP(t)
	c := client(address, guest.Route{Secret: "open sesame", Framed: true})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = io.Copy(conn, conn)
		_ = conn.Close()
	}()
	conn, err := c.Dial(t.Context(), listener.Addr().(*net.TCPAddr).Port)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	sent := bytes.Repeat([]byte("there and back"), 30<<10)
	go func() {
		_, _ = conn.Write(sent)
		_ = conn.(interface{ CloseWrite() error }).CloseWrite()
	}()
	if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("of %d bytes %d came back, %v", len(sent), len(got), err)
	}
}

// TestExplain: what is not the guest's own answer is for the route to explain.
func TestExplain(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, `{"code":502,"message":"no such box"}`)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() { _ = server.Close(); <-served }()
	c := client(listener.Addr().String(), guest.Route{Explain: func(status int, _ http.Header, body []byte) error {
		if status != http.StatusBadGateway || !bytes.Contains(body, []byte("no such box")) {
			t.Errorf("asked about %d %s", status, body)
		}
		return sandbox.ErrGone
	}})
	if _, err := c.Health(t.Context()); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("Health: %v", err)
	}
	if _, err := c.Dial(t.Context(), 1); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("Dial: %v", err)
	}
	if _, err := client(listener.Addr().String(), guest.Route{}).Health(t.Context()); !errors.Is(err, sandbox.ErrTransient) {
		t.Errorf("without an explanation: %v", err)
	}
}
