package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	api "github.com/slack-go/slack"

	"ship/config"
)

// limit is how long a test waits for what has to come.
const limit = 30 * time.Second

// exchange stands in for Slack's end of Socket Mode.
type exchange struct {
	http *httptest.Server
	// conns are the connections that were made, and asked how often one was
	// asked for.
	conns chan *websocket.Conn
	mu    sync.Mutex
	asked int
	// say is what the next askers are told in place of an address.
	say []string
}

func newExchange(t *testing.T) *exchange {
	t.Helper()
	x := &exchange{conns: make(chan *websocket.Conn, 100)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/apps.connections.open", x.open)
	mux.HandleFunc("/link", func(w http.ResponseWriter, r *http.Request) {
		up := websocket.Upgrader{}
		if conn, err := up.Upgrade(w, r, nil); err == nil {
			x.conns <- conn
		}
	})
	x.http = httptest.NewServer(mux)
	t.Cleanup(x.http.Close)
	return x
}

func (x *exchange) open(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.asked++
	switch {
	case r.Header.Get("Authorization") != "Bearer xapp-1":
		fmt.Fprint(w, `{"ok":false,"error":"not_authed"}`)
	case len(x.say) > 0:
		fmt.Fprint(w, x.say[0])
		x.say = x.say[1:]
	default:
		fmt.Fprintf(w, `{"ok":true,"url":"ws%s/link?ticket=hunter2"}`, strings.TrimPrefix(x.http.URL, "http"))
	}
}

func (x *exchange) times() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.asked
}

// conn is the next connection that is made. It is greeted.
func (x *exchange) conn(t *testing.T) *websocket.Conn {
	t.Helper()
	select {
	case c := <-x.conns:
		t.Cleanup(func() { _ = c.Close() })
		send(t, c, object{"type": "hello", "num_connections": 1})
		return c
	case <-time.After(limit):
		t.Fatal("no connection was made")
		return nil
	}
}

func send(t *testing.T, c *websocket.Conn, o object) {
	t.Helper()
	if err := c.WriteJSON(o); err != nil {
		t.Fatal(err)
	}
}

// acked reads the next acknowledgement.
func acked(t *testing.T, c *websocket.Conn) map[string]any {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(limit))
	var got map[string]any
	if err := c.ReadJSON(&got); err != nil {
		t.Fatal(err)
	}
	return got
}

func envelopes(kind, id string, payload object) object {
	return object{"type": kind, "envelope_id": id, "payload": payload}
}

type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) add(event, outcome string, _ time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, event+": "+outcome)
}

func (h *heard) list() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.all...)
}

// plug runs a socket until the test, or what it returns, ends it.
func plug(t *testing.T, x *exchange, in *inbox, change func(*Socket)) (unplug func(), h *heard) {
	t.Helper()
	h = &heard{}
	s, err := newSocket(socketConfig{
		AppToken: config.NewSecret("xapp-1"), APIURL: x.http.URL + "/api", Connections: 1, Inbox: in, Heard: h.add,
		Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.backoff = func(int) time.Duration { return time.Millisecond }
	if change != nil {
		change(s)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	unplug = sync.OnceFunc(func() {
		cancel(nil)
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("run: %v", err)
			}
		case <-time.After(limit):
			t.Error("does not end")
		}
	})
	t.Cleanup(unplug)
	return unplug, h
}

func TestSocketTakesEnvelopes(t *testing.T) {
	t.Parallel()
	x, in := newExchange(t), newInbox()
	_, h := plug(t, x, in, nil)
	c := x.conn(t)
	command := object{"team_id": team, "channel_id": ch, "user_id": ada, "command": "/ship", "text": "fix it", "trigger_id": "1.2.x"}
	for _, tt := range []struct {
		send  object
		want  map[string]any
		heard string
	}{
		{envelopes("events_api", "e1", happens(calls("fix it"))), map[string]any{"envelope_id": "e1"}, "app_mention: accepted"},
		{envelopes("events_api", "e2", happens(calls("fix it"))), map[string]any{"envelope_id": "e2"}, "app_mention: duplicate"},
		{envelopes("interactive", "e3", press(object{"action_id": "ship_stop"})), map[string]any{"envelope_id": "e3"}, "block_actions: accepted"},
		{envelopes("slash_commands", "e4", command).with(object{"accepts_response_payload": true}),
			map[string]any{"envelope_id": "e4", "payload": map[string]any{"text": sayThread}}, "slash_command: accepted"},
		{envelopes("slash_commands", "e5", command), map[string]any{"envelope_id": "e5"}, "slash_command: duplicate"},
		{envelopes("events_api", "e6", happens(object{"type": "comet_seen"})), map[string]any{"envelope_id": "e6"}, "other: ignored event"},
		{envelopes("comets", "e7", nil), map[string]any{"envelope_id": "e7"}, "other: ignored event"},
		{object{"type": "events_api", "envelope_id": "e8"}, map[string]any{"envelope_id": "e8"}, ": malformed"},
		{object{"type": "slash_commands", "envelope_id": "e9", "payload": "text"}, map[string]any{"envelope_id": "e9"}, "slash_command: unusable"},
	} {
		send(t, c, tt.send)
		if diff := cmp.Diff(tt.want, acked(t, c)); diff != "" {
			t.Error(diff)
		}
		all := h.list()
		if got := all[len(all)-1]; got != tt.heard {
			t.Errorf("heard %q, want %q", got, tt.heard)
		}
	}
	if n := len(in.all()); n != 3 {
		t.Errorf("%d deliveries", n)
	}
}

// TestSocketAcknowledgesWhatIsKept: and nothing else, so that it comes again.
func TestSocketAcknowledgesWhatIsKept(t *testing.T) {
	t.Parallel()
	x, in := newExchange(t), newInbox()
	_, _ = plug(t, x, in, nil)
	c := x.conn(t)
	in.fail(errors.New("away"))
	send(t, c, envelopes("events_api", "e1", happens(calls("fix it"))))
	<-in.came
	in.fail(nil)
	if err := c.WriteMessage(websocket.TextMessage, []byte("{")); err != nil { // no frame, and no end
		t.Fatal(err)
	}
	send(t, c, envelopes("events_api", "e2", happens(calls("fix it"))))
	if got := acked(t, c); got["envelope_id"] != "e2" {
		t.Errorf("acknowledged %v", got)
	}
	if n := len(in.all()); n != 1 {
		t.Errorf("%d deliveries", n)
	}
}

// TestSocketIsReplaced: the next connection is there before the last one goes,
// and until then both are served.
func TestSocketIsReplaced(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"warning", "refresh_requested", "something new"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			x, in := newExchange(t), newInbox()
			_, _ = plug(t, x, in, nil)
			old := x.conn(t)
			send(t, old, object{"type": "disconnect", "reason": reason})
			send(t, old, object{"type": "disconnect", "reason": reason})
			fresh := x.conn(t)
			for id, c := range map[string]*websocket.Conn{"e1": old, "e2": fresh} {
				send(t, c, envelopes("events_api", id, happens(calls("fix it")).with(object{"event_id": id})))
				if got := acked(t, c); got["envelope_id"] != id {
					t.Errorf("acknowledged %v, want %s", got, id)
				}
			}
			_ = old.Close()
			send(t, fresh, envelopes("events_api", "e3", happens(calls("fix it"))))
			acked(t, fresh)
			if n := x.times(); n != 2 {
				t.Errorf("asked for %d connections", n)
			}
		})
	}
}

func TestSocketComesBack(t *testing.T) {
	t.Parallel()
	x, in := newExchange(t), newInbox()
	x.say = []string{`{"ok":false,"error":"internal_error"}`, `no json`, `{"ok":true,"url":"http://hunter2"}`, `{"ok":true,"url":"ws://127.0.0.1:1/"}`}
	_, _ = plug(t, x, in, nil)
	first := x.conn(t)
	_ = first.Close()
	second := x.conn(t)
	send(t, second, envelopes("events_api", "e1", happens(calls("fix it"))))
	acked(t, second)
	if n := x.times(); n != 6 {
		t.Errorf("asked for %d connections", n)
	}
}

// TestSocketLeavesTheSilent: a connection over which nothing comes is dead.
func TestSocketLeavesTheSilent(t *testing.T) {
	t.Parallel()
	x, in := newExchange(t), newInbox()
	_, _ = plug(t, x, in, func(s *Socket) { s.silence = 50 * time.Millisecond })
	x.conn(t)
	x.conn(t)
}

// TestSocketStaysWithPings: one over which nothing comes but pings is not.
func TestSocketStaysWithPings(t *testing.T) {
	t.Parallel()
	x, in := newExchange(t), newInbox()
	_, _ = plug(t, x, in, func(s *Socket) { s.silence = 3 * time.Second })
	c := x.conn(t)
	pongs := make(chan struct{}, 1)
	c.SetPongHandler(func(string) error { pongs <- struct{}{}; return nil })
	go func() { _, _, _ = c.ReadMessage() }() // until the cleanup
	for began := time.Now(); time.Since(began) < 4*time.Second; {
		if err := c.WriteControl(websocket.PingMessage, nil, time.Now().Add(limit)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-pongs:
		case <-time.After(limit):
			t.Fatal("no pong")
		}
		<-time.After(250 * time.Millisecond) // far less than the silence
	}
	if n := x.times(); n != 1 {
		t.Errorf("asked for %d connections", n)
	}
}

// TestSocketFinishes: what was read when the end came is kept and acknowledged.
func TestSocketFinishes(t *testing.T) {
	t.Parallel()
	x, in := newExchange(t), newInbox()
	in.mu.Lock() // nothing can be kept for now
	unplug, _ := plug(t, x, in, nil)
	c := x.conn(t)
	send(t, c, envelopes("events_api", "e1", happens(calls("fix it"))))
	pinged := make(chan struct{})
	c.SetPongHandler(func(string) error { close(pinged); return nil })
	if err := c.WriteControl(websocket.PingMessage, nil, time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		got map[string]any
		err error
	}
	answers := make(chan answer, 2)
	go func() {
		for range 2 {
			var a answer
			a.err = c.ReadJSON(&a.got)
			answers <- a
		}
	}()
	<-pinged // so the envelope before it was read
	ended := make(chan struct{})
	go func() { defer close(ended); unplug() }()
	in.mu.Unlock()
	<-ended
	if a := <-answers; a.err != nil || a.got["envelope_id"] != "e1" {
		t.Errorf("acknowledged %v, %v", a.got, a.err)
	}
	if a := <-answers; !websocket.IsCloseError(a.err, websocket.CloseNormalClosure) {
		t.Errorf("ended with %v", a.err)
	}
	if n := len(in.all()); n != 1 {
		t.Errorf("%d deliveries", n)
	}
}

func TestSocketKeepsSeveral(t *testing.T) {
	t.Parallel()
	x, in := newExchange(t), newInbox()
	_, _ = plug(t, x, in, func(s *Socket) { s.cfg.Connections = 3 })
	for id := range 3 {
		c := x.conn(t)
		send(t, c, envelopes("events_api", "e", happens(calls("fix it")).with(object{"event_id": fmt.Sprint("Ev", id)})))
		acked(t, c)
	}
	if n := len(in.all()); n != 1 { // one message, whichever way it came
		t.Errorf("%d deliveries", n)
	}
}

func TestPauses(t *testing.T) {
	t.Parallel()
	s := &Socket{backoff: backoff}
	refused := func(code string) error { return fmt.Errorf("ask: %w", api.SlackErrorResponse{Err: code}) }
	for name, tt := range map[string]struct {
		failures int
		err      error
		min, max time.Duration
	}{
		"replaced":           {0, nil, 0, 0},
		"replaced too often": {3, nil, 3 * time.Second, 5 * time.Second},
		"lost after a while": {0, errors.New("eof"), 750 * time.Millisecond, 1250 * time.Millisecond},
		"first":              {1, errors.New("eof"), 750 * time.Millisecond, 1250 * time.Millisecond},
		"fifth":              {5, errors.New("eof"), 12 * time.Second, 20 * time.Second},
		"very many":          {1 << 30, errors.New("eof"), 225 * time.Second, 375 * time.Second},
		"wrong token":        {1, refused("invalid_auth"), 225 * time.Second, 375 * time.Second},
		"switched off":       {1, fmt.Errorf("link_disabled: %w", errUnwanted), 225 * time.Second, 375 * time.Second},
		"their fault":        {1, refused("internal_error"), 750 * time.Millisecond, 1250 * time.Millisecond},
		"too fast":           {1, &api.RateLimitedError{RetryAfter: time.Hour}, time.Hour, time.Hour},
	} {
		if got := s.pause(tt.failures, tt.err); got < tt.min || got > tt.max {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestUnwantedLines(t *testing.T) {
	t.Parallel()
	for reason, unwelcome := range map[string]bool{"link_disabled": true, "too_many_websockets": true} {
		l := newLine(&Socket{}, nil)
		if err := l.leave(reason); errors.Is(err, errUnwanted) != unwelcome || l.left() {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

func TestSocketNeedsTokenAndInbox(t *testing.T) {
	t.Parallel()
	for _, c := range []socketConfig{{Inbox: newInbox()}, {AppToken: config.NewSecret("xapp-1")}} {
		if _, err := newSocket(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	s, err := newSocket(socketConfig{Inbox: newInbox(), AppToken: config.NewSecret("xapp-1")})
	if err != nil || s.plain || s.cfg.Connections != 2 || s.cfg.APIURL != DefaultAPIURL {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestSocketExamples: the collection's envelopes are all taken.
func TestSocketExamples(t *testing.T) {
	t.Parallel()
	raw := example(t, "socket-mode.envelopes.json")
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	x, in := newExchange(t), newInbox()
	_, _ = plug(t, x, in, nil)
	c := x.conn(t)
	waiting := 0
	for _, message := range all {
		f, err := decode[frame](message)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.WriteMessage(websocket.TextMessage, message); err != nil {
			t.Fatal(err)
		}
		if f.ID != "" {
			waiting++
		}
	}
	for range waiting {
		acked(t, c)
	}
	x.conn(t) // it was told to disconnect
}
