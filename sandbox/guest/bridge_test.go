package guest_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"ship/sandbox"
	"ship/sandbox/guest"
)

// broker serves on a unix socket until the test ends.
func broker(t *testing.T, path string, handler http.HandlerFunc) {
	t.Helper()
	listener, err := guest.ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
}

// request goes to the bridge of a box.
func (b *box) request(t *testing.T, method, path string, body io.Reader) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+b.bridge+path, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Basic aW1wb3N0b3I6")
	request.Header.Set("X-Model", "kept")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func (b *box) get(t *testing.T, path string) (int, string) {
	t.Helper()
	response := b.request(t, http.MethodGet, path, nil)
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestBridge(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "broker.sock")
	b := start(t, "-broker", "unix:"+socket)

	if code, text := b.get(t, "/x"); code != http.StatusBadGateway || strings.Count(text, "\n") != 1 {
		t.Errorf("without a token: %d %q", code, text)
	}
	if err := b.Write(t.Context(), sandbox.TokenPath, []byte("first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, text := b.get(t, "/x"); code != http.StatusBadGateway || strings.Count(text, "\n") != 1 {
		t.Errorf("without a broker: %d %q", code, text)
	}
	broker(t, socket, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = fmt.Fprint(w, r.Method, " ", r.URL, " ", r.Header["Authorization"], " ", r.Header["X-Model"], " ", r.Header["X-Forwarded-For"])
	})
	for _, token := range []string{"first", "second"} {
		if err := b.Write(t.Context(), sandbox.TokenPath, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		code, text := b.get(t, "/a%2Fb?c=d&e")
		if want := "GET /a%2Fb?c=d&e [Bearer " + token + "] [kept] []"; code != http.StatusTeapot || text != want {
			t.Errorf("%d %q, want %q", code, text, want)
		}
	}
}

// TestBridgeStreams: an event arrives when it is sent, not when the answer ends.
func TestBridgeStreams(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "broker.sock")
	b := start(t, "-broker", "unix:"+socket)
	if err := b.Write(t.Context(), sandbox.TokenPath, []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	next := make(chan struct{})
	broker(t, socket, func(w http.ResponseWriter, r *http.Request) {
		for i := range 3 {
			_, _ = fmt.Fprintf(w, "data: %d\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
			}
		}
	})
	lines := bufio.NewReader(b.request(t, http.MethodGet, "/", nil).Body)
	for i := range 3 {
		line, err := lines.ReadString('\n')
		if err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("line %d: %q, %v", i, line, err)
		}
		next <- struct{}{}
	}
}

// TestBridgeLarge: a pack passes through both ways without being held.
func TestBridgeLarge(t *testing.T) {
	t.Parallel()
	const size = 48 << 20
	socket := filepath.Join(t.TempDir(), "broker.sock")
	b := start(t, "-broker", "unix:"+socket)
	if err := b.Write(t.Context(), sandbox.TokenPath, []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	broker(t, socket, func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		if _, err := io.Copy(sum, r.Body); err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Sum", hexOf(sum))
		_, _ = io.Copy(w, pack(size))
	})
	want := sha256.New()
	if _, err := io.Copy(want, pack(size)); err != nil {
		t.Fatal(err)
	}
	response := b.request(t, http.MethodPost, "/git-receive-pack", pack(size))
	if got := response.Header.Get("X-Sum"); got != hexOf(want) {
		t.Errorf("what the broker got has the sum %s", got)
	}
	got := sha256.New()
	if n, err := io.Copy(got, response.Body); n != size || err != nil || hexOf(got) != hexOf(want) {
		t.Errorf("of %d bytes %d came back, %v", size, n, err)
	}
}

func hexOf(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)) }

// pack is a body of a known size and content: a block over and over, of a length
// that no buffer has.
func pack(size int64) io.Reader {
	block := make([]byte, 1<<16+7)
	_, _ = rand.NewChaCha8([32]byte{}).Read(block)
	return io.LimitReader(&loop{block: block}, size)
}

// loop is its block without end.
type loop struct {
	block []byte
	at    int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p, l.block[l.at:])
	l.at = (l.at + n) % len(l.block)
	return n, nil
}

// TestBridgeURL: where there is no socket, the broker has a URL.
func TestBridgeURL(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	b := start(t, "-broker", "http://"+address+"/broker")
	if err := b.Write(t.Context(), sandbox.TokenPath, []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Addr: address, ReadHeaderTimeout: patience,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprint(w, r.Host, " ", r.URL, " ", r.Header["Authorization"])
		})}
	served := make(chan error, 1)
	go func() { served <- server.ListenAndServe() }()
	defer func() { _ = server.Close(); <-served }()
	want := address + " /broker/model/x [Bearer t]"
	await(t, "the broker answers", func() bool {
		code, text := b.get(t, "/model/x")
		if code == http.StatusOK && text != want {
			t.Fatalf("%q, want %q", text, want)
		}
		return code == http.StatusOK
	})
}
