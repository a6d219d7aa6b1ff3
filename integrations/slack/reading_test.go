package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	api "github.com/slack-go/slack"

	"ship/config"
	"ship/integrations/slack/slacktest"
	"ship/session"
)

// reads is an app whose Slack is a handler.
func reads(t *testing.T, h http.HandlerFunc) *app {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return newApp(Config{
		Settings: Settings{BotToken: config.NewSecret("xoxb-mine"), APIURL: s.URL}, Quota: lavish{},
		Transport: &http.Transport{DisableKeepAlives: true},
	})
}

// atOnce makes a request at once.
func atOnce(ctx context.Context, _ string, request func(context.Context) error) error {
	return request(ctx)
}

// TestRefusalsOfReading: what Slack answers is the library's error that it would be there.
func TestRefusalsOfReading(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status            int
		after, body, want string
	}{
		{200, "", `{"ok":false,"error":"missing_scope","needed":"im:history","response_metadata":{"messages":["look"]}}`, "missing_scope (needed: im:history; look) " + fatePeople},
		{200, "", `{"ok":false,"error":"channel_not_found"}`, "channel_not_found " + fateGone},
		{429, "7", "", (&api.RateLimitedError{RetryAfter: 7 * time.Second}).Error() + " " + fatePasses},
		{429, "-7", "", (&api.RateLimitedError{RetryAfter: time.Minute}).Error() + " " + fateSlowly},
		{503, "", "<html>", api.StatusCodeError{Code: 503, Status: "503 Service Unavailable"}.Error() + " " + fatePasses},
		{200, "", `<html>`, errAnswer.Error() + " " + fatePasses},
		{200, "", `{"ok":false}`, errAnswer.Error() + " " + fatePasses},
		{200, "", `{"ok":true}`, errAnswer.Error() + " " + fatePasses},
		{200, "", `{"ok":true,"messages":{}}`, errAnswer.Error() + " " + fatePasses},
		{200, "", `{"ok":true,"messages":[]}`, ""},
	} {
		a := reads(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer xoxb-mine" || r.Method != http.MethodPost || r.FormValue("channel") != ch {
				t.Errorf("%s %v", r.Method, r.Header)
			}
			w.Header().Set("Retry-After", tt.after)
			w.WriteHeader(tt.status)
			fmt.Fprint(w, tt.body)
		})
		got, err := a.next(t.Context(), &stretch{channel: ch, size: 10}, atOnce)
		said := ""
		if err != nil {
			said = detailed(err).Error() + " " + fateOf(classify(err))
		}
		if said != tt.want || len(got) > 0 {
			t.Errorf("%d %s: %q, want %q", tt.status, tt.body, said, tt.want)
		}
	}
}

// TestLongPages: where people write more than fits into an answer, pages are
// smaller, and none is left out.
func TestLongPages(t *testing.T) {
	t.Parallel()
	const fits = 30
	var calls atomic.Int64
	a := reads(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		var size, from int
		fmt.Sscan(r.FormValue("limit"), &size)
		fmt.Sscan(r.FormValue("cursor"), &from)
		filler := ""
		if size > fits {
			filler = strings.Repeat(" ", maxAnswer)
		}
		fmt.Fprint(w, `{"ok":true,"response_metadata":{"next_cursor":"`, min(from+size, 100), `"},"messages":[`, filler)
		for n := from; n < min(from+size, 100); n++ {
			fmt.Fprintf(w, `{"ts":"%d.1"},`, n)
		}
		fmt.Fprint(w, `null]}`)
	})
	s := &stretch{channel: ch, root: rootTS, size: 200}
	var all []message
	for {
		got, err := a.next(t.Context(), s, atOnce)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got...)
		if s.cursor == "" {
			break
		}
	}
	if len(all) != 100 || all[99].TS != "99.1" || calls.Load() != 3+4+1 {
		t.Errorf("%d messages in %d calls", len(all), calls.Load())
	}
	a = reads(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat(" ", maxAnswer+1)) })
	if _, err := a.next(t.Context(), s, atOnce); !errors.Is(err, errLength) || !classify(err).Again {
		t.Errorf("what never fits: %v", err)
	}
}

// TestForeignersRecovered: who wrote from another workspace is told by the
// message, whatever the message says of its own.
func TestForeignersRecovered(t *testing.T) {
	t.Parallel()
	l := &look{self: identity{team: team, user: us}}
	for _, tt := range []struct {
		raw  string
		room room
		want string
	}{
		{`{"user":"U1","team":"T0SHIP","user_team":"T2"}`, room{shared: true}, "T2/U1"},
		{`{"user":"U1","team":"T2"}`, room{shared: true}, "T2/U1"},
		{`{"user":"U1","team":"T2","user_team":"T0SHIP"}`, room{shared: true}, "U1"},
		{`{"user":"U1","team":"T0SHIP"}`, room{shared: true}, "U1"},
	} {
		m, err := decode[message]([]byte(tt.raw))
		if got := l.event(tt.room, m).person(); err != nil || got != (session.Person{Login: tt.want}) {
			t.Errorf("%s: %+v, %v", tt.raw, got, err)
		}
	}
}

// TestListedWithPoison: what Slack adds to channels is not looked at.
func TestListedWithPoison(t *testing.T) {
	t.Parallel()
	o := newOutage(t, slacktest.NoLimits())
	o.Inject(slacktest.Fault{On: "users.conversations", Status: http.StatusOK, Times: 4, Body: `{"ok":true,"channels":[
		7,{"id":8,"is_ext_shared":"?"},{"id":"` + o.ChannelID("eng") + `","latest":` + poison + `}]}`})
	o.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix it"})
	o.recovers(1, time.Hour)
}

// FuzzUnderstand: whatever one message is like, those beside it are read.
func FuzzUnderstand(f *testing.F) {
	for _, s := range []string{
		poison, `7`, `null`, `"x"`, `[]`, `{}`, `{"ts":"1.2"}`, `{"ts":3,"text":[]}`, `{"TS":"1.2","user":{"id":1}}`, `{"ts":"1.2","blocks":{"type":"actions"}}`,
		`{"ts":"1.2","blocks":[{"type":"section","text":{"type":"mrkdwn","text":"a"}}]}`, `{"ts":"1.2","size":1e400,"files":[{"size":1e400}]}`, `]},{`,
		`{"ts":"1.2","attachments":[{"is_share":true,"text":"&lt;a","files":[null,{"id":"F1"}]}],"reactions":[{"users":["U1"]},{"users":"U1"}]}`,
	} {
		f.Add([]byte(s))
	}
	good := message{TS: rootTS, User: "U1", Text: "fix it", ReplyUsers: []string{"U2"}, Blocks: json.RawMessage(`[{"type":"divider"}]`)}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if a, err := understand(raw); err == nil && !a.OK {
			t.Errorf("%+v", a)
		}
		if !json.Valid(raw) {
			return
		}
		a, err := understand([]byte(`{"ok":true,"messages":[` + string(raw) + `,{"ts":"` + rootTS + `","user":"U1","text":"fix it",
			"reply_users":["U2"],"blocks":[{"type":"divider"}]}],"response_metadata":{"next_cursor":"c"}}`))
		all := identified(a.Messages)
		if err != nil || len(all) == 0 || a.More.Cursor != "c" {
			t.Fatalf("%s: %+v, %v", raw, a, err)
		}
		if diff := cmp.Diff(good, all[len(all)-1]); diff != "" {
			t.Error(diff)
		}
		for _, m := range all {
			forwarded(m)
			if _, err := m.blocks(); err == nil && !json.Valid(m.Blocks) && len(m.Blocks) > 0 {
				t.Errorf("decoded %q", m.Blocks)
			}
		}
	})
}
