package standin_test

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
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"ship/bot/standin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a stand-in that says what it was sent. What is asked of it is the
// path.
type echo struct {
	*testing.T
	standin.Faults
	*httptest.Server
	client *http.Client
	done   atomic.Int32
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	e := &echo{T: t, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	e.Server = httptest.NewServer(standin.Handler(http.HandlerFunc(e.serve)))
	t.Cleanup(e.Server.Close)
	return e
}

func (e *echo) serve(w http.ResponseWriter, r *http.Request) {
	if e.Strike(w, r, strings.TrimPrefix(r.URL.Path, "/")) {
		return
	}
	e.done.Add(1)
	if r.URL.Path == "/taken" {
		e.take(w)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		e.Error(err)
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(body)
}

// take answers by itself on the connection, as a WebSocket does.
func (e *echo) take(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "HTTP/1.1 299 Taken\r\nContent-Length: 0\r\n\r\n")
}

// got is what a client sees.
type got struct {
	Status int
	Body   string
	Type   string
	Lost   bool
}

func (e *echo) ask(ctx context.Context, what, body string) (got, error) {
	e.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL+"/"+what, strings.NewReader(body))
	if err != nil {
		e.Fatal(err)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return got{Lost: true}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return got{Status: resp.StatusCode, Body: string(b), Type: resp.Header.Get("Content-Type"), Lost: err != nil}, err
}

// see demands what the client of one request sees, and how many were done.
func (e *echo) see(what string, want got, done int32) {
	e.Helper()
	seen, _ := e.ask(e.Context(), what, "hello") // that it was lost is in seen
	want.Type, seen.Type = "", ""
	if diff := cmp.Diff(want, seen); diff != "" || e.done.Load() != done {
		e.Errorf("%s: %d done, %s", what, e.done.Load(), diff)
	}
}

var (
	well = got{Status: http.StatusCreated, Body: "hello"}
	lost = got{Lost: true}
)

func TestOrder(t *testing.T) {
	t.Parallel()
	e := newEcho(t)
	bad := func(status int) got { return got{Status: status} }
	e.Inject(standin.Fault{On: "a", Skip: 1, Times: 2, Status: 500})
	e.Inject(standin.Fault{On: "a", Status: 502})
	e.Inject(standin.Fault{Skip: 4, Status: 503})
	for i, want := range []got{bad(502), bad(500), bad(500), well, well, well, well, bad(503), well} {
		// Those that are skipped or struck by another do not count for the third.
		seen, err := e.ask(t.Context(), "a", "hello")
		if seen.Type = ""; err != nil || seen != want {
			t.Errorf("request %d: %+v, %v", i, seen, err)
		}
	}
	e.Inject(standin.Fault{On: "b", Times: -1, Status: 504})
	before := e.done.Load()
	e.see("b", bad(504), before)
	e.see("b", bad(504), before)
	e.see("a", well, before+1)
	e.ClearFaults()
	e.see("b", well, before+2)
	if a, b, none := e.Calls("a"), e.Calls("b"), e.Calls("c"); a != 10 || b != 3 || none != 0 {
		t.Errorf("called %d, %d and %d times", a, b, none)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	e := newEcho(t)
	e.Inject(standin.Fault{Status: 429, Header: http.Header{"Retry-After": {"7"}}, Body: `{"slow":true}`})
	resp, err := http.DefaultClient.Get(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	body, err := io.ReadAll(resp.Body)
	kind, after := resp.Header.Get("Content-Type"), resp.Header.Get("Retry-After")
	if err != nil || string(body) != `{"slow":true}` || kind != "application/json; charset=utf-8" || after != "7" || resp.StatusCode != 429 {
		t.Errorf("%d, %q, %q, %q, %v", resp.StatusCode, kind, after, body, err)
	}
}

func TestLost(t *testing.T) {
	t.Parallel()
	e := newEcho(t)
	e.Inject(standin.Fault{Lost: true})
	e.see("a", lost, 1)
	e.see("a", well, 2)
	e.see("taken", got{Status: 299}, 3)
	e.Inject(standin.Fault{On: "taken", Lost: true})
	e.see("taken", lost, 4)
}

// TestHang: a request that hangs ends when its client leaves, and when the
// server is closed.
func TestHang(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(e *echo, leave context.CancelCauseFunc) error{
		"client leaves": func(_ *echo, leave context.CancelCauseFunc) error { leave(nil); return nil },
		"server closes": func(e *echo, _ context.CancelCauseFunc) error { return e.Config.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEcho(t)
			ctx, leave := context.WithCancelCause(t.Context())
			defer leave(nil)
			over := make(chan struct{})
			e.Inject(standin.Fault{Hang: true, Do: func(r *http.Request) {
				context.AfterFunc(r.Context(), func() { close(over) })
				if err := end(e, leave); err != nil {
					t.Error(err)
				}
			}})
			if seen, err := e.ask(ctx, "a", "hello"); err == nil || e.done.Load() != 0 {
				t.Errorf("saw %+v, %d done", seen, e.done.Load())
			}
			<-over
		})
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	e := newEcho(t)
	var saw []string
	e.Watch(func(what string, body []byte) { saw = append(saw, fmt.Sprintf("%s %s %d", what, body, e.done.Load())) })
	e.Inject(standin.Fault{On: "a", Status: http.StatusBadGateway})
	e.see("a", got{Status: http.StatusBadGateway}, 0)
	e.see("b", well, 1)
	if diff := cmp.Diff([]string{"a hello 0", "b hello 0"}, saw); diff != "" {
		t.Errorf("what was watched (-want +got):\n%s", diff)
	}
}

// TestDoReads: what Do reads is there for the handler still.
func TestDoReads(t *testing.T) {
	t.Parallel()
	e := newEcho(t)
	var read []byte
	e.Inject(standin.Fault{Do: func(r *http.Request) {
		var err error
		if read, err = io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
	}})
	e.see("a", well, 1)
	if string(read) != "hello" {
		t.Errorf("read %q", read)
	}
}

// TestWhole: nothing is asked for, and nothing strikes, until the request has
// arrived to its end.
func TestWhole(t *testing.T) {
	t.Parallel()
	e := newEcho(t)
	e.Inject(standin.Fault{On: "a", Status: 500, Do: func(*http.Request) {
		if e.Calls("a") != 1 {
			t.Errorf("Do is called with %d requests there", e.Calls("a"))
		}
	}})
	for _, whole := range []bool{false, true} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(e.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel")
		if whole {
			fmt.Fprint(conn, "lo")
		} else if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		_ = conn.Close()
		struck := err == nil && resp.StatusCode == 500
		if err == nil {
			_ = resp.Body.Close()
		}
		if struck != whole || (err == nil) != whole || (e.Calls("a") == 1) != whole || e.done.Load() != 0 {
			t.Errorf("whole: %t: struck: %t after %d calls, %v", whole, struck, e.Calls("a"), err)
		}
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	var n standin.Notes
	if v := n.Violations(); v != nil {
		t.Errorf("violations %q", v)
	}
	n.Note("no such route: %s", "/x")
	first := n.Violations()
	n.Note("worse: %v", errors.New("oops"))
	first[0] = "mine"
	if diff := cmp.Diff([]string{"no such route: /x", "worse: oops"}, n.Violations()); diff != "" {
		t.Error(diff)
	}
}
