package bot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ship/session"
)

func TestProbes(t *testing.T) {
	t.Parallel()
	var away error
	s := NewServer(Config{Ready: func(context.Context) error { return away }})
	get := func(path string) int {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	if h, r := get("/healthz"), get("/readyz"); h != 200 || r != 200 {
		t.Errorf("well: health %d, ready %d", h, r)
	}
	away = errors.New("redis is away")
	if h, r := get("/healthz"), get("/readyz"); h != 200 || r != 503 {
		t.Errorf("without an inbox: health %d, ready %d", h, r)
	}
	away = nil
	s.draining.Store(true)
	if h, r := get("/healthz"), get("/readyz"); h != 200 || r != 503 {
		t.Errorf("draining: health %d, ready %d", h, r)
	}
}

func TestMounts(t *testing.T) {
	t.Parallel()
	s := NewServer(Config{Mounts: map[string]http.Handler{
		"/broker/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/broker/panic":
				panic("lost")
			case "/broker/half":
				_, _ = io.WriteString(w, "half")
				w.(http.Flusher).Flush()
				panic("lost")
			}
			_, _ = io.WriteString(w, r.URL.Path)
		}),
	}})
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	defer server.Client().CloseIdleConnections()
	get := func(path string) (int, string, error) {
		resp, err := server.Client().Get(server.URL + path)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b), err
	}
	if status, text, err := get("/broker/x"); status != 200 || text != "/broker/x" || err != nil {
		t.Errorf("%d %q %v", status, text, err)
	}
	if status, _, err := get("/broker/panic"); status != 500 || err != nil {
		t.Errorf("after a panic: %d %v", status, err)
	}
	if _, text, err := get("/broker/half"); err == nil {
		t.Errorf("half an answer %q looks whole", text)
	}
}

// running starts a Server on the loopback interface. stop ends it, and err
// waits for what Run returns.
type running struct {
	*Server
	addr string
	stop context.CancelCauseFunc
	done chan error
}

func serve(t *testing.T, c Config) *running {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	r := &running{Server: NewServer(c), addr: l.Addr().String(), stop: stop, done: make(chan error, 1)}
	go func() { r.done <- r.Run(ctx, l) }()
	t.Cleanup(func() { stop(nil) })
	return r
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestDrain(t *testing.T) {
	t.Parallel()
	box := &inbox{block: make(chan struct{})}
	r := serve(t, Config{
		Inbox: box, Receivers: map[string]Receiver{"test": receiver{}},
		Timeouts: Timeouts{Append: time.Minute, Linger: 50 * time.Millisecond},
	})
	conn := dial(t, r.addr)
	fmt.Fprint(conn, "POST /webhooks/test HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\ntake a")
	eventually(t, func() bool {
		return strings.Contains(scrape(r.Handler()), `ship_deliveries_in_flight{platform="test"} 1`)
	})
	r.stop(session.ErrShutdown)
	eventually(t, r.draining.Load)
	if resp, err := http.Get("http://" + r.addr + "/readyz"); err == nil { // it lingers: still there, but not ready
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("ready while draining: %d", resp.StatusCode)
		}
	}
	eventually(t, func() bool {
		late, err := net.Dial("tcp", r.addr)
		if err == nil {
			_ = late.Close()
		}
		return err != nil
	})
	close(box.block)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("the request that was running got %v, %v", resp, err)
	}
	_ = resp.Body.Close()
	if err := <-r.done; err != nil {
		t.Errorf("Run: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestGraceEnds(t *testing.T) {
	t.Parallel()
	begun, cause := make(chan struct{}), make(chan error, 1)
	r := serve(t, Config{
		Mounts: map[string]http.Handler{"/broker/": http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			close(begun)
			<-req.Context().Done()
			cause <- context.Cause(req.Context())
		})},
		Timeouts: Timeouts{Grace: 30 * time.Millisecond},
	})
	fmt.Fprint(dial(t, r.addr), "GET /broker/ HTTP/1.1\r\nHost: x\r\n\r\n")
	<-begun
	r.stop(session.ErrShutdown)
	if err := <-r.done; err == nil || !strings.Contains(err.Error(), "still ran") {
		t.Errorf("Run: %v", err)
	}
	<-cause
}

func TestSlowClients(t *testing.T) {
	t.Parallel()
	r := serve(t, Config{
		Inbox: &inbox{}, Receivers: map[string]Receiver{"test": receiver{}},
		Timeouts: Timeouts{Header: 2 * time.Second, Body: 2 * time.Second},
	})
	head := dial(t, r.addr)
	fmt.Fprint(head, "POST /webhooks/test HTTP/1.1\r\nHost:")
	if _, err := head.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a slow head: %v, want the end", err)
	}
	slow := dial(t, r.addr)
	fmt.Fprint(slow, "POST /webhooks/test HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\ntake")
	resp, err := http.ReadResponse(bufio.NewReader(slow), nil)
	if err != nil || resp.StatusCode != http.StatusRequestTimeout {
		t.Fatalf("a slow body: %v, %v", resp, err)
	}
	_ = resp.Body.Close()
	// The deadline of one webhook is not that of the next on the connection.
	again := dial(t, r.addr)
	in := bufio.NewReader(again)
	for i := range 3 {
		fmt.Fprintf(again, "POST /webhooks/test HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\ntake %d", i)
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("webhook %d of a connection: %v, %v", i, resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	r.stop(session.ErrShutdown)
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

func TestServeFails(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if err := NewServer(Config{}).Run(t.Context(), l); err == nil {
		t.Error("Run on a closed listener: nil")
	}
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came true")
		}
	}
}
