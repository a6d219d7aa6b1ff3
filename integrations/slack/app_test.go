package slack

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"ship/config"
	"ship/integrations/slack/slacktest"
)

// TestNoRedirect: neither the token nor what is said follows a redirect.
func TestNoRedirect(t *testing.T) {
	t.Parallel()
	var told atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told.Add(1) }))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		f := quiet(t)
		away := slacktest.Fault{Status: status, Header: http.Header{"Location": {elsewhere.URL}}, Times: -1}
		for _, method := range []string{"chat.postMessage", "conversations.replies", "auth.test"} {
			away.On = method
			f.Inject(away)
		}
		if p := f.fails(f.saying("Hello")); !p.Again {
			t.Errorf("%d: %+v", status, p)
		}
		if p := f.fails(again(f.saying("Hello"))); !p.Again { // which reads first
			t.Errorf("%d: %+v", status, p)
		}
		away.On = "apps.connections.open"
		f.Inject(away)
		s, err := newSocket(socketConfig{
			AppToken: config.NewSecret(f.AppToken()), APIURL: f.APIURL(), Inbox: newInbox(), Transport: &http.Transport{DisableKeepAlives: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.connect(t.Context()); err == nil {
			t.Errorf("%d: connected", status)
		}
	}
	if told.Load() != 0 {
		t.Error("something left")
	}
}

// TestRetryAfter: whatever is said of how long to wait, it is waited for, and
// not for ever.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for after, want := range map[string]time.Duration{
		"30": 30 * time.Second, "3600": time.Hour, "99999": time.Hour, "9223372036854775807": time.Hour, "1000000000000": time.Hour,
		"-5": limitWait, "soon": limitWait, "1.5": limitWait, "99999999999999999999": limitWait,
	} {
		t.Run(after, func(t *testing.T) {
			t.Parallel()
			f := quiet(t)
			refuse := slacktest.Limited("chat.postMessage", 0)
			refuse.Header, refuse.Times = http.Header{"Retry-After": {after}}, -1
			f.Inject(refuse)
			p := f.fails(f.saying("Hello"))
			if !p.Again || p.After <= 0 || p.After > want {
				t.Errorf("%+v", p)
			}
			if n := f.Calls("chat.postMessage"); n > 2 {
				t.Errorf("%d calls", n)
			}
		})
	}
}
