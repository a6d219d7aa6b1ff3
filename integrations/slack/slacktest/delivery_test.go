package slacktest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"ship/integrations/slack/slacktest"
)

// TestSignatures: slack-go takes what is delivered, and nothing older.
func TestSignatures(t *testing.T) {
	t.Parallel()
	c := quick(t)
	verify := func(d slacktest.Delivery) error {
		v, err := slack.NewSecretsVerifier(d.Header, c.SigningSecret())
		if err != nil {
			return err
		}
		if _, err := v.Write(d.Body); err != nil {
			t.Fatal(err)
		}
		return v.Ensure()
	}
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if verify(slacktest.Delivery{Header: r.Header, Body: body}) != nil {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer app.Close()
	_, ds := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "hello"})
	for name, d := range map[string]slacktest.Delivery{"event": ds[0], "command": c.Slash(slacktest.Command{By: "ada"})} {
		if got, err := c.Deliver(t.Context(), app.URL, d); err != nil || got.Status != http.StatusOK {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if verify(ds[0].Sign(c.SigningSecret(), time.Now().Add(-6*time.Minute))) == nil || verify(ds[0].Sign("other", time.Now())) == nil {
		t.Error("it must not be good")
	}
	// The example that Slack's documentation has.
	d := slacktest.Delivery{Header: http.Header{}, Body: []byte("token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c")}
	d = d.Sign("8f742231b10e8888abcd99yyyzzz85a5", time.Unix(1531420618, 0))
	if got := d.Header.Get("X-Slack-Signature"); got != "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503" {
		t.Errorf("signed %s", got)
	}
}

func TestInsist(t *testing.T) {
	t.Parallel()
	c := quick(t)
	var tried, good atomic.Int32
	good.Store(3)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := tried.Add(1)
		if want := map[int32]string{1: "", 2: "1", 3: "2"}[n]; n <= 3 && r.Header.Get("X-Slack-Retry-Num") != want {
			t.Errorf("try %d says %q", n, r.Header.Get("X-Slack-Retry-Num"))
		}
		if n < good.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer app.Close()
	_, ds := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "hello"})
	if got, err := c.Insist(t.Context(), app.URL, ds[0]); err != nil || got.Status != http.StatusOK || got.Attempts != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	good.Store(1000)
	for d, want := range map[string]int{"event": 4, "command": 1} {
		delivery := ds[0]
		if d == "command" {
			delivery = c.Slash(slacktest.Command{By: "ada"})
		}
		if got, _ := c.Insist(t.Context(), app.URL, delivery); got.Status != http.StatusServiceUnavailable || got.Attempts != want {
			t.Errorf("%s: %+v", d, got)
		}
	}
}

// TestCommandAnswers: what a command is answered with is shown.
func TestCommandAnswers(t *testing.T) {
	t.Parallel()
	c := quick(t)
	for body, whispers := range map[string]int{"": 0, "On it": 1, `{"text":"On it"}`: 1, `{"response_type":"in_channel","text":"On it"}`: 0} {
		app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		before := len(c.Whispers("ada"))
		if _, err := c.Deliver(t.Context(), app.URL, c.Slash(slacktest.Command{Channel: "eng", By: "ada"})); err != nil {
			t.Fatal(err)
		}
		app.Close()
		if got := len(c.Whispers("ada")) - before; got != whispers {
			t.Errorf("%q: %d whispers", body, got)
		}
	}
	if got := c.Messages("eng"); len(got) != 1 || got[0].Plain != "On it" {
		t.Errorf("in the channel: %+v", got)
	}
}
