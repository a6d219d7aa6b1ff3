package slack

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ship/bot"
	"ship/session"
)

// inbox keeps what comes, once by any of its keys. It can be away.
type inbox struct {
	mu   sync.Mutex
	err  error
	keys map[string]bool
	got  []session.Delivery
	came chan struct{}
}

func newInbox() *inbox { return &inbox{keys: map[string]bool{}, came: make(chan struct{}, 100)} }

func (i *inbox) Append(ctx context.Context, d session.Delivery) (session.Receipt, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	defer func() { i.came <- struct{}{} }()
	if i.err != nil {
		return session.Receipt{}, i.err
	}
	duplicate := false
	for _, k := range d.Keys {
		duplicate = duplicate || i.keys[k]
		i.keys[k] = true
	}
	if !duplicate {
		i.got = append(i.got, d)
	}
	return session.Receipt{Duplicate: duplicate}, ctx.Err()
}

func (i *inbox) fail(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.err = err
}

func (i *inbox) all() []session.Delivery {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]session.Delivery(nil), i.got...)
}

// TestFrontDoor: what Slack gets to see, to the byte.
func TestFrontDoor(t *testing.T) {
	t.Parallel()
	in, registry := newInbox(), prometheus.NewRegistry()
	door := bot.NewServer(bot.Config{
		Inbox: in, Receivers: map[string]bot.Receiver{Platform: receiver(t)}, Metrics: bot.NewMetrics(registry),
	}).Handler()
	post := func(body []byte, late time.Duration) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/webhooks/slack", strings.NewReader(string(body)))
		r.Header = signed(secret, now.Add(-late), body)
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		return w
	}
	mention := happens(calls("fix it")).json(t)
	for _, tt := range []struct {
		name string
		body []byte
		late time.Duration
		code int
		want string
	}{
		{"challenge", object{"type": "url_verification", "challenge": "3eZb"}.json(t), 0, 200, "3eZb"},
		{"mention", mention, 0, 200, "accepted\n"},
		{"again", mention, time.Minute, 200, "already have it\n"},
		{"too late", mention, 6 * time.Minute, 401, "sent too long ago\n"},
		{"button", presses(t, press(object{"action_id": "ship_stop"})), 0, 200, ""},
		{"button again", presses(t, press(object{"action_id": "ship_stop"})), 0, 200, ""},
		{"slash", slash("fix it"), 0, 200, sayThread},
		{"slash help", slash("help"), 0, 200, sayUsage},
		{"malformed", []byte("{"), 0, 400, "body is malformed\n"},
	} {
		if w := post(tt.body, tt.late); w.Code != tt.code || w.Body.String() != tt.want {
			t.Errorf("%s: %d %q", tt.name, w.Code, w.Body)
		}
	}
	in.fail(context.DeadlineExceeded)
	if w := post(slash("again"), 0); w.Code != http.StatusServiceUnavailable || w.Body.String() == sayThread {
		t.Errorf("away: %d %q", w.Code, w.Body)
	}
	if n := len(in.all()); n != 3 {
		t.Errorf("%d deliveries", n)
	}
	w := httptest.NewRecorder()
	door.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if !strings.Contains(w.Body.String(), `ship_deliveries_total{event="none",outcome="too old",platform="slack"} 1`) {
		t.Error("what is too old is not counted as such")
	}
}
