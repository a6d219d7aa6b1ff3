package bot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"ship/session"
)

// receiver is a platform whose webhooks say what is to become of them.
type receiver struct{}

func (receiver) Receive(_ context.Context, h http.Header, body []byte) (Received, error) {
	got := Received{Event: h.Get("Event"), Delivery: h.Get("Delivery"), Outcome: "accepted"}
	switch what, id, _ := strings.Cut(string(body), " "); what {
	case "forged":
		return Received{}, fmt.Errorf("test: %w", ErrForged)
	case "malformed":
		return got, fmt.Errorf("test: %w", ErrMalformed)
	case "away":
		return got, fmt.Errorf("test: %w: nobody there", ErrUnavailable)
	case "fail":
		return got, errors.New("disk on fire")
	case "panic":
		panic("receiver lost its head")
	case "ignore":
		got.Outcome = "not a command"
	case "nothing":
		got.Outcome = ""
	default:
		for key := range strings.FieldsSeq(id) {
			got.Deliveries = append(got.Deliveries, session.Delivery{Session: "gh.1.1", Keys: []string{key}})
		}
	}
	return got, nil
}

// inbox remembers keys, and can be away or slow.
type inbox struct {
	mu    sync.Mutex
	seen  map[string]bool
	err   error
	block chan struct{}
}

func (i *inbox) Append(ctx context.Context, d session.Delivery) (session.Receipt, error) {
	if i.block != nil {
		select {
		case <-i.block:
		case <-ctx.Done():
			return session.Receipt{}, ctx.Err()
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err != nil {
		return session.Receipt{}, i.err
	}
	if i.seen == nil {
		i.seen = map[string]bool{}
	}
	duplicate := i.seen[d.Keys[0]]
	i.seen[d.Keys[0]] = true
	return session.Receipt{Seq: int64(len(i.seen)), Duplicate: duplicate}, nil
}

// scrape reads what a Server shows at /metrics.
func scrape(h http.Handler) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

func post(h http.Handler, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/webhooks/test?token=hunter2", strings.NewReader(body))
	r.Header.Set("Event", "issues")
	r.Header.Set("Delivery", "d-1")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestIntake(t *testing.T) {
	t.Parallel()
	tests := []struct {
		body           string
		status         int
		say            string
		event, outcome string
	}{
		{"take a", 200, "accepted", "issues", "accepted"},
		{"take a", 200, "already have it", "issues", "duplicate"},
		{"take b b", 200, "accepted", "issues", "accepted"},
		{"ignore", 200, "nothing to do: not a command", "issues", "not a command"},
		{"nothing", 200, "nothing to do: ignored", "issues", "ignored"},
		{"forged", 401, "signature does not match", "none", "forged"},
		{"malformed", 400, "body is malformed", "issues", "malformed"},
		{"away", 503, "cannot take it now, send it again", "issues", "unavailable"},
		{"fail", 500, "internal error", "issues", "broken"},
		{"panic", 500, "internal error", "none", "broken"},
	}
	h := NewServer(Config{Inbox: &inbox{}, Receivers: map[string]Receiver{"test": receiver{}}}).Handler()
	counted := map[string]int{}
	for _, tt := range tests {
		w := post(h, tt.body)
		if w.Code != tt.status || w.Body.String() != tt.say+"\n" {
			t.Errorf("%s: %d %q, want %d %q", tt.body, w.Code, w.Body, tt.status, tt.say)
		}
		series := fmt.Sprintf("ship_deliveries_total{event=%q,outcome=%q,platform=\"test\"}", tt.event, tt.outcome)
		counted[series]++
		if line := fmt.Sprintf("%s %d\n", series, counted[series]); !strings.Contains(scrape(h), line) {
			t.Errorf("%s: not counted as %s", tt.body, line)
		}
	}
	for _, line := range []string{
		`ship_deliveries_in_flight{platform="test"} 0`, fmt.Sprintf(`ship_delivery_seconds_count{platform="test"} %d`, len(tests)),
	} {
		if !strings.Contains(scrape(h), line+"\n") {
			t.Errorf("no %s in\n%s", line, scrape(h))
		}
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	h := NewServer(Config{Receivers: map[string]Receiver{"test": receiver{}}}).Handler()
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/webhooks/test", strings.NewReader("take a")))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
			t.Errorf("%s: %d, Allow %q", method, w.Code, w.Header().Get("Allow"))
		}
	}
	for _, path := range []string{"/", "/webhooks/", "/webhooks/other", "/webhooks/test/x"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestInboxAway(t *testing.T) {
	t.Parallel()
	box := &inbox{err: errors.New("redis: connection refused")}
	h := NewServer(Config{Inbox: box, Receivers: map[string]Receiver{"test": receiver{}}}).Handler()
	w := post(h, "take a")
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "redis") {
		t.Errorf("%d, Retry-After %q, %q", w.Code, w.Header().Get("Retry-After"), w.Body)
	}
	box.err = nil
	if w := post(h, "take a"); w.Code != 200 || w.Body.String() != "accepted\n" {
		t.Errorf("when the inbox is back: %d %q", w.Code, w.Body)
	}
}

func TestInboxHangs(t *testing.T) {
	t.Parallel()
	c := Config{Inbox: &inbox{block: make(chan struct{})}, Receivers: map[string]Receiver{"test": receiver{}}}
	c.Append = 20 * time.Millisecond
	if w := post(NewServer(c).Handler(), "take a"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

// body fails the test when more than its limit is read.
type body struct {
	t    *testing.T
	left int
}

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.t.Error("too much is read")
		return 0, io.EOF
	}
	n := min(len(p), b.left)
	b.left -= n
	return n, nil
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	h := NewServer(Config{Inbox: &inbox{}, Receivers: map[string]Receiver{"test": receiver{}}}).Handler()
	announced := httptest.NewRequest(http.MethodPost, "/webhooks/test", &body{t: t})
	announced.ContentLength = maxWebhook + 1
	chunked := httptest.NewRequest(http.MethodPost, "/webhooks/test", &body{t: t, left: maxWebhook + 2})
	chunked.ContentLength = -1
	for what, r := range map[string]*http.Request{"announced": announced, "chunked": chunked} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d %q", what, w.Code, w.Body)
		}
	}
	largest := httptest.NewRequest(http.MethodPost, "/webhooks/test", io.LimitReader(&body{t: t, left: maxWebhook + 1}, maxWebhook))
	largest.ContentLength = maxWebhook
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, largest); w.Code != 200 {
		t.Errorf("the largest body: %d %q", w.Code, w.Body)
	}
}

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestLog(t *testing.T) {
	t.Parallel()
	var log lines
	h := NewServer(Config{
		Inbox: &inbox{}, Receivers: map[string]Receiver{"test": receiver{}},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}).Handler()
	sent := []string{"take sesame", "take sesame", "ignore", "forged", "malformed", "fail", "panic"}
	for _, b := range sent {
		post(h, b)
	}
	got := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(got) != len(sent)+1 { // a panic has a line of its own
		t.Errorf("%d lines for %d webhooks:\n%s", len(got), len(sent), log.String())
	}
	for _, line := range got {
		for _, key := range []string{"platform=test", "delivery=", "session="} {
			if !strings.Contains(line, key) {
				t.Errorf("no %s in %s", key, line)
			}
		}
		for _, secret := range []string{"hunter2", "sesame"} {
			if strings.Contains(line, secret) {
				t.Errorf("%q in %s", secret, line)
			}
		}
	}
	if !strings.Contains(got[0], "session=gh.1.1") || !strings.Contains(got[0], "delivery=d-1") {
		t.Errorf("what was accepted is logged as %s", got[0])
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"issue_comment": "issue_comment", "": "none", "x{}\n": "other", "other": "other"} {
		if got := knownEvent(name); got != want {
			t.Errorf("knownEvent(%q) = %q, want %q", name, got, want)
		}
	}
	w := newWords(2)
	for _, c := range [][2]string{{"a", "a"}, {"b", "b"}, {"c", "other"}, {"a", "a"}, {"c", "other"}} {
		if got := w.known(c[0]); got != c[1] {
			t.Errorf("known(%q) = %q, want %q", c[0], got, c[1])
		}
	}
}

// TestConcurrentBodies: no webhook sees the body of another.
func TestConcurrentBodies(t *testing.T) {
	t.Parallel()
	box := &inbox{}
	h := NewServer(Config{Inbox: box, Receivers: map[string]Receiver{"test": receiver{}}}).Handler()
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			if w := post(h, fmt.Sprintf("take %d", i)); w.Body.String() != "accepted\n" {
				t.Errorf("webhook %d: %d %q", i, w.Code, w.Body)
			}
		})
	}
	wg.Wait()
	if len(box.seen) != 200 {
		t.Errorf("%d of 200 arrived", len(box.seen))
	}
}

type nowhere struct{ h http.Header }

func (w nowhere) Header() http.Header         { return w.h }
func (w nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (w nowhere) WriteHeader(int)             {}

func (nowhere) SetReadDeadline(time.Time) error { return nil }

type always struct{ got Received }

func (a always) Receive(context.Context, http.Header, []byte) (Received, error) { return a.got, nil }

type nothing struct{}

func (nothing) Append(context.Context, session.Delivery) (session.Receipt, error) {
	return session.Receipt{Seq: 1}, nil
}

// BenchmarkHandler is the handler's own part of a webhook of 14 KB.
func BenchmarkHandler(b *testing.B) {
	rec := always{Received{Event: "issue_comment", Delivery: "d", Outcome: "accepted", Deliveries: []session.Delivery{{Session: "gh.1.1"}}}}
	h := NewServer(Config{Inbox: nothing{}, Receivers: map[string]Receiver{"test": rec}}).Handler()
	data := bytes.Repeat([]byte("x"), 14<<10)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	w := nowhere{http.Header{}}
	in := bytes.NewReader(data)
	r := httptest.NewRequest(http.MethodPost, "/webhooks/test", nil)
	r.ContentLength = int64(len(data))
	for b.Loop() {
		in.Reset(data)
		r.Body = io.NopCloser(in)
		clear(w.h)
		h.ServeHTTP(w, r)
	}
}
