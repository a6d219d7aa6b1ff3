package turn

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"ship/sandbox"
	"ship/sandbox/lifecycle"
	"ship/sandbox/preview"
	"ship/session"
)

// window is a box with one file, and a server if there is one.
type window struct {
	sandbox.Box
	file    string
	address string
}

func (w *window) ReadFrom(context.Context, string, int64) ([]byte, error) {
	if w.file == "" {
		return nil, fs.ErrNotExist
	}
	return []byte(w.file), nil
}

func (w *window) Dial(ctx context.Context, _ int) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", w.address)
}

// plainLinks sign nothing.
type plainLinks struct{}

func (plainLinks) URL(t preview.Target, _, until time.Time) (string, error) {
	return fmt.Sprintf("https://preview.example.net/%s/%d/%d", t.Box, t.Port, until.Unix()), nil
}

func newExhibit(box sandbox.Box, before *session.Preview) (e *exhibit, told *[]session.Preview) {
	told = &[]session.Preview{}
	w := New(Config{Previews: plainLinks{}, Life: lifecycle.Default(), Log: slog.New(slog.DiscardHandler)})
	job := session.Job{Now: time.Now, State: session.State{ID: "gh.1.7", Box: "b", Preview: before}}
	return &exhibit{worker: w, job: job, box: box, tell: func(p session.Preview) { *told = append(*told, p) }}, told
}

// TestAPreviewIsToldOnceItAnswers: not before, once, and again when it is over.
func TestAPreviewIsToldOnceItAnswers(t *testing.T) {
	t.Parallel()
	status := http.StatusInternalServerError
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(server.Close)
	box := &window{address: server.Listener.Addr().String()}
	e, told := newExhibit(box, nil)
	now := time.Now()
	look := func(what string, want int) {
		t.Helper()
		e.look(t.Context(), now)
		if len(*told) != want {
			t.Fatalf("%s: told %+v", what, *told)
		}
	}
	look("without a file", 0)
	box.file = "3000\n"
	look("while it fails", 0)
	status = http.StatusNotFound
	look("when it answers", 1)
	if p := (*told)[0]; p.Port != 3000 || p.URL == "" || p.Until.Sub(now) > time.Hour+time.Second || p.Since.IsZero() {
		t.Errorf("%+v", p)
	}
	look("as before", 1)
	now = now.Add(31 * time.Minute)
	look("when half of the link's time is over", 2)
	if a, b := (*told)[0], (*told)[1]; !b.Until.After(a.Until) || !b.Since.Equal(a.Since) {
		t.Errorf("%+v, then %+v", a, b)
	}
	box.file = "\n"
	look("when the agent has ended it", 3)
	if p := (*told)[2]; p != (session.Preview{}) {
		t.Errorf("%+v", p)
	}
	look("as before", 3)
}

// TestAPreviewThatDoesNotAnswer: it is given up after a while, and what an
// earlier turn told of it is taken back.
func TestAPreviewThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	box := &window{file: "3000", address: server.Listener.Addr().String()}
	for _, before := range []*session.Preview{nil, {Port: 3000}} {
		e, told := newExhibit(box, before)
		now := time.Now()
		for _, wait := range []time.Duration{0, previewWaits - time.Second} {
			if e.look(t.Context(), now.Add(wait)); len(*told) != 0 {
				t.Fatalf("after %s: %+v", wait, *told)
			}
		}
		for range 2 {
			e.look(t.Context(), now.Add(previewWaits))
		}
		if got := len(*told) == 1; got != (before != nil) {
			t.Errorf("before %v: told %+v", before, *told)
		}
	}
}

// TestTheLastLookWaits: a server that was named just before the end of a turn
// is not forgotten.
func TestTheLastLookWaits(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < 3 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(server.Close)
	e, _ := newExhibit(&window{file: "5173", address: server.Listener.Addr().String()}, nil)
	e.settle(t.Context())
	if e.told == nil || e.told.Port != 5173 {
		t.Errorf("%+v", e.told)
	}
}

func FuzzPortIn(f *testing.F) {
	for _, seed := range []string{"", "3000", " 3000\n", "4010", "80", "0x1000", "99999999999999999999", "3000 3001"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		port := portIn(text)
		if port == 0 {
			return
		}
		if !preview.Allowed(port) || !bytes.Contains(text, fmt.Append(nil, port)) {
			t.Errorf("%q: %d", text, port)
		}
	})
}
