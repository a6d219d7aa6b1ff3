package e2b

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"ship/config"
	"ship/sandbox"
	"ship/sandbox/e2b/e2btest"
)

// standIn is the daemon of a box of the stand-in.
func standIn(t *testing.T) (*envd, *e2btest.Server) {
	t.Helper()
	server := e2btest.New(t, e2btest.Options{})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	p, err := New(Config{
		Settings:  Settings{APIKey: config.NewSecret(e2btest.Key), APIURL: server.URL},
		PublicURL: e2btest.AllowedURL, Key: make([]byte, 32), Vault: &e2btest.Vault{}, SandboxURL: server.SandboxURL, Transport: transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.api.create(t.Context(), p.order(sandbox.Spec{Key: t.Name(), TTL: time.Minute}))
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.envd(m.ID, m.access)
	if err != nil {
		t.Fatal(err)
	}
	return e, server
}

// TestEnvd holds what we expect of E2B's daemon against the stand-in, and
// against a real one where there is one.
func TestEnvd(t *testing.T) {
	t.Run("stand-in", func(t *testing.T) {
		e, _ := standIn(t)
		expectEnvd(t, e)
	})
	t.Run("real", func(t *testing.T) {
		address := os.Getenv("SHIP_TEST_ENVD_URL")
		if address == "" {
			t.Skip("SHIP_TEST_ENVD_URL does not name a real envd, such as http://127.0.0.1:49983")
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		expectEnvd(t, &envd{http: &http.Client{Transport: transport}, door: door{url: u, header: http.Header{}}, token: os.Getenv("SHIP_TEST_ENVD_TOKEN")})
	})
}

func expectEnvd(t *testing.T, e *envd) {
	for text, want := range map[string]result{
		"echo out; echo err >&2; exit 3":       {exitCode: 3, stdout: []byte("out\n"), stderr: []byte("err\n")},
		"exit 0":                               {},
		"kill -9 $$":                           {exitCode: -1},
		"echo $GREETING; pwd":                  {stdout: []byte("hi\n/\n")},
		"sleep 5 >/dev/null 2>&1 & echo child": {stdout: []byte("child\n")},
	} {
		got, err := e.run(t.Context(), script{user: "root", text: text, env: map[string]string{"GREETING": "hi", "PATH": "/usr/bin:/bin"}})
		if err != nil || got.exitCode != want.exitCode || !bytes.Equal(got.stdout, want.stdout) || !bytes.Equal(got.stderr, want.stderr) || got.pid <= 0 {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if _, err := e.run(t.Context(), script{user: "nobody-of-that-name", text: "true"}); !errors.Is(err, sandbox.ErrAuth) {
		t.Errorf("an unknown user: %v", err)
	}
	const path = "/tmp/ship-envd-test/a b+c"
	data := bytes.Repeat([]byte{0, 1, '\r', '\n', '-', 0xff}, 200<<10)
	if err := e.upload(t.Context(), path, bytes.NewReader(data), int64(len(data))); err != nil {
		t.Fatalf("upload: %v", err)
	}
	got, err := e.run(t.Context(), script{user: "root", text: "wc -c < '" + path + "'; rm -r /tmp/ship-envd-test"})
	if err != nil || strings.TrimSpace(string(got.stdout)) != "1228800" {
		t.Errorf("what was uploaded: %+v, %v", got, err)
	}
}

// TestEnvdLetsGo: who loses patience leaves, and the process stays: no deadline
// was told. The pipes are how it says where it is, and is told to go on.
func TestEnvdLetsGo(t *testing.T) {
	t.Parallel()
	e, server := standIn(t)
	far, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	shell := func(text string) {
		t.Helper()
		if got, err := e.run(far, script{user: "root", text: text}); err != nil || got.exitCode != 0 {
			t.Fatalf("%s: %+v, %v", text, got, err)
		}
	}
	shell("mkfifo /tmp/begun /tmp/go /tmp/done")
	ctx, cancel := context.WithCancelCause(far)
	left := make(chan error, 1)
	go func() {
		_, err := e.run(ctx, script{user: "root", text: "echo > /tmp/begun; read x < /tmp/go; echo > /tmp/done"})
		left <- err
	}()
	shell("read x < /tmp/begun")
	cancel(errCut)
	if err := <-left; !errors.Is(err, errCut) {
		t.Errorf("run: %v", err)
	}
	shell("echo > /tmp/go; read x < /tmp/done")
	if bad := server.Violations(); len(bad) != 0 {
		t.Errorf("violations: %v", bad)
	}
}

// patience bounds what only a fault keeps from coming.
const patience = 3 * time.Minute

func TestEnvdToken(t *testing.T) {
	t.Parallel()
	e, _ := standIn(t)
	e.token = "wrong"
	_, err := e.run(t.Context(), script{user: "root", text: "true"})
	upload := e.upload(t.Context(), "/tmp/x", strings.NewReader(""), 0)
	if !errors.Is(err, sandbox.ErrAuth) || !errors.Is(upload, sandbox.ErrAuth) {
		t.Errorf("with a wrong token: %v, %v", err, upload)
	}
}

// TestDoor: one host for all boxes of the shared domain, one per port elsewhere.
func TestDoor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ domain, own, override, want string }{
		{"e2b.app", "", "", "https://sandbox.e2b.app"},
		{"e2b.app", "e2b.app", "", "https://sandbox.e2b.app"},
		{"e2b.app", "byoc.example.com", "", "https://4011-i1.byoc.example.com"},
		{"e2b.example.com", "", "", "https://4011-i1.e2b.example.com"},
		{"e2b.app", "", "http://127.0.0.1:1", "http://127.0.0.1:1"},
	} {
		p := &Provider{cfg: Config{Settings: Settings{Domain: c.domain}, SandboxURL: c.override}}
		d, err := p.door("i1", access{Domain: c.own, Traffic: "t"}, guestPort)
		if err != nil || d.url.String() != c.want {
			t.Errorf("%+v: %v, %v", c, d.url, err)
		}
		if d.header.Get("E2b-Sandbox-Id") != "i1" || d.header.Get("E2b-Sandbox-Port") != "4011" || d.header.Get("e2b-traffic-access-token") != "t" {
			t.Errorf("the header is %v", d.header)
		}
	}
}

// TestDialTLS: the way into a box is encrypted, and speaks no HTTP/2.
func TestDialTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Proto))
	}))
	server.EnableHTTP2, server.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := (door{url: u}).dial(t.Context(), nil); err == nil {
		_ = conn.Close()
		t.Error("a certificate that nobody knows was taken")
	}
	config := server.Client().Transport.(*http.Transport).TLSClientConfig
	conn, err := (door{url: u}).dial(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(conn); err != nil || !strings.Contains(answer.String(), "HTTP/1.1") {
		t.Errorf("%s, %v", &answer, err)
	}
}

func TestCheckProgram(t *testing.T) {
	t.Parallel()
	script := t.TempDir() + "/script"
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		script: "the guest's program", "/no/such/program": "no such file", "/bin/sh": "CGO_ENABLED=0",
	} {
		if err := CheckProgram(path); err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "x86-64") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
