package guest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ship/sandbox"
)

// gate is a broker as far as its egress proxy goes: it echoes what comes
// through a tunnel, and refuses one host.
func gate(w http.ResponseWriter, r *http.Request) {
	target := r.Header.Get("Ship-Target")
	if strings.HasPrefix(target, "evil") {
		http.Error(w, "ship: "+target+" is not\x07 allowed", http.StatusForbidden)
		return
	}
	if r.Header.Get("Upgrade") != "ship-egress" {
		_, _ = fmt.Fprint(w, r.Method, " ", r.URL, " ", target, " ", r.Header["Authorization"], " ", r.Header["Proxy-Authorization"])
		return
	}
	far, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	_, _ = fmt.Fprintf(far, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ship-egress\r\n\r\n%s %s %s\n",
		r.URL, target, r.Header.Get("Authorization"))
	_, _ = io.Copy(far, far)
}

// say sends a request to the bridge by hand, and returns the answer with the
// connection.
func (b *box) say(t *testing.T, request string) (*http.Response, *bufio.Reader, *net.TCPConn) {
	t.Helper()
	c, err := net.Dial("tcp", b.bridge)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	response, err := http.ReadResponse(r, &http.Request{Method: strings.Fields(request)[0]})
	if err != nil {
		t.Fatal(err)
	}
	return response, r, c.(*net.TCPConn)
}

func TestProxy(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "broker.sock")
	b := start(t, "-broker", "unix:"+socket)
	if response, _, _ := b.say(t, "CONNECT a.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n"); response.StatusCode != http.StatusBadGateway {
		t.Errorf("without a turn: %s", response.Status)
	}
	if err := b.Write(t.Context(), sandbox.TokenPath, []byte("t\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	broker(t, socket, gate)

	response, r, c := b.say(t, "CONNECT a.example.com:443 HTTP/1.1\r\nHost: other\r\nAuthorization: Basic x\r\nProxy-Authorization: Basic x\r\n\r\nearly ")
	if response.StatusCode != http.StatusOK {
		t.Fatalf("tunnel: %s", response.Status)
	}
	if _, err := io.WriteString(c, "and late"); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if want := "/broker/egress/tunnel a.example.com:443 Bearer t\nearly and late"; string(got) != want || err != nil {
		t.Errorf("through the tunnel: %q, %v, want %q", got, err, want)
	}

	response, _, _ = b.say(t, "CONNECT evil.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	if want := "403 ship: evil.example.com:443 is not? allowed"; response.Status != want {
		t.Errorf("a refusal: %q, want %q", response.Status, want)
	}
	for target, want := range map[string]string{
		"http://a.example.com/b%2Fc?d": "GET /broker/egress/http http://a.example.com/b%2Fc?d [Bearer t] []",
		"http://" + b.bridge + "/x":    "GET /x  [Bearer t] []",
	} {
		response, _, _ := b.say(t, "GET "+target+" HTTP/1.1\r\nHost: other\r\nProxy-Authorization: Basic x\r\nConnection: close\r\n\r\n")
		if got, err := io.ReadAll(response.Body); string(got) != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", target, got, err, want)
		}
	}
}
