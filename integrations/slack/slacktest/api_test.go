package slacktest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"ship/integrations/slack/slacktest"
)

// send calls a method with a form, without a client between.
func (c *client) send(method string, form url.Values) error {
	form.Set("token", c.BotToken())
	_, err := c.raw(method, "application/x-www-form-urlencoded", "", strings.NewReader(form.Encode()))
	return err
}

// raw posts to a method.
func (c *client) raw(method, kind, token string, body io.Reader) (http.Header, error) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.APIURL()+method, body)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer slack.SlackResponse
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		c.t.Fatal(err)
	}
	return resp.Header, answer.Err()
}

func TestArguments(t *testing.T) {
	t.Parallel()
	c := quick(t)
	const kind = "application/json; charset=utf-8"
	body := `{"channel":"` + c.eng + `","text":"hi","blocks":[{"type":"divider"}],"unfurl_links":false,"thread_ts":null}`
	header, err := c.raw("chat.postMessage", kind, c.BotToken(), strings.NewReader(body))
	if err != nil || len(c.Messages("eng")) != 1 || !strings.Contains(header.Get("X-OAuth-Scopes"), "chat:write") {
		t.Errorf("JSON: %v, %v, %+v", err, header, c.Messages("eng"))
	}
	for name, tt := range map[string]struct{ method, kind, token, body, want string }{
		"no token":       {"auth.test", kind, "", "{}", "not_authed"},
		"token in JSON":  {"auth.test", kind, "", `{"token":"` + c.BotToken() + `"}`, "not_authed"},
		"other token":    {"auth.test", kind, "xoxb-1", "{}", "invalid_auth"},
		"the app's":      {"auth.test", kind, c.AppToken(), "{}", "not_allowed_token_type"},
		"the bot's":      {"apps.connections.open", kind, c.BotToken(), "", "not_allowed_token_type"},
		"token in query": {"auth.test?token=" + c.BotToken(), kind, c.BotToken(), "{}", "invalid_auth"},
		"no JSON":        {"auth.test", kind, c.BotToken(), "{", "invalid_json"},
		"another kind":   {"auth.test", "text/plain", c.BotToken(), "", "invalid_post_type"},
		"no method":      {"chat.shout", kind, c.BotToken(), "{}", "unknown_method"},
	} {
		_, err := c.raw(tt.method, tt.kind, tt.token, strings.NewReader(tt.body))
		t.Log(name)
		c.fails(err, tt.want)
	}
	if err := c.send("auth.test", url.Values{"colour": {"red"}}); err != nil {
		t.Fatal(err)
	}
	want := []string{"no such method: chat.shout", "auth.test: there is no argument colour"}
	if diff := cmp.Diff(want, c.Violations()); diff != "" {
		t.Error(diff)
	}
}

func TestWhoAmI(t *testing.T) {
	t.Parallel()
	c := quick(t)
	got, err := c.AuthTestContext(t.Context())
	if err != nil || got.UserID != c.BotUserID() || got.TeamID != c.TeamID() || got.BotID == "" {
		t.Errorf("got %+v, %v", got, err)
	}
	c.SetScopes("users:read")
	_, _, err = c.PostMessageContext(t.Context(), c.eng, text("x"))
	var said slack.SlackErrorResponse
	if !errors.As(err, &said) || said.Err != "missing_scope" || said.Needed != "chat:write" || said.Provided != "users:read" {
		t.Errorf("got %v, needs %q, has %q", err, said.Needed, said.Provided)
	}
	if ds := c.RevokeToken(); len(ds) != 1 {
		t.Errorf("told %v", ds)
	}
	_, err = c.AuthTestContext(t.Context())
	c.fails(err, "token_revoked")
	if ds := c.Uninstall(); len(ds) != 2 {
		t.Errorf("told %v", ds)
	}
	_, err = c.AuthTestContext(t.Context())
	c.fails(err, "account_inactive")
	if _, err := slack.New(c.Reinstall(), slack.OptionAPIURL(c.APIURL())).AuthTestContext(t.Context()); err != nil {
		t.Error(err)
	}
	_, err = c.AuthTestContext(t.Context())
	c.fails(err, "invalid_auth")
}

func TestLimits(t *testing.T) {
	t.Parallel()
	c := newClient(t, slacktest.Options{Limits: slacktest.Limits{
		PerMinute: map[string]int{"reactions.add": 2}, ChannelBurst: 2,
	}})
	ctx := t.Context()
	ts := c.post(text("one"))
	c.post(text("two"))
	_, _, err := c.PostMessageContext(ctx, c.eng, text("three"))
	c.limited(err, time.Second)
	other := c.CreateChannel(slacktest.Channel{Name: "other"})
	if _, _, err := c.PostMessageContext(ctx, other, text("elsewhere")); err != nil {
		t.Error(err)
	}
	c.Advance(2 * time.Second)
	c.post(text("three"))

	if err := c.update(ts, text("one, changed")); err != nil {
		t.Fatal(err)
	}
	c.Advance(time.Second)
	c.limited(c.update(ts, text("one, again")), 2*time.Second)
	c.Advance(2 * time.Second)
	if err := c.update(ts, text("one, again")); err != nil {
		t.Error(err)
	}

	on := slack.NewRefToMessage(c.eng, ts)
	for _, name := range []string{"eyes", "tada"} {
		if err := c.AddReactionContext(ctx, name, on); err != nil {
			t.Fatal(err)
		}
	}
	c.Advance(20 * time.Second)
	c.limited(c.AddReactionContext(ctx, "fire", on), 40*time.Second)
	c.Advance(40 * time.Second)
	if err := c.AddReactionContext(ctx, "fire", on); err != nil {
		t.Error(err)
	}
	c.Spend("reactions.add", 5)
	c.limited(c.AddReactionContext(ctx, "rocket", on), time.Minute)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	c := quick(t)
	const name = "chat.postMessage"
	say := func(ctx context.Context) error {
		_, _, err := c.PostMessageContext(ctx, c.eng, text("x"))
		return err
	}
	count := func() int { return len(c.Messages("eng")) }

	c.Inject(slacktest.Fault{On: name, Status: 502, Body: "bad gateway", Skip: 1, Times: 2})
	var failed []bool
	for range 4 {
		failed = append(failed, say(t.Context()) != nil)
	}
	if diff := cmp.Diff([]bool{false, true, true, false}, failed); diff != "" || c.Calls(name) != 4 || count() != 2 {
		t.Errorf("failed: %s, %d calls, %d done", diff, c.Calls(name), count())
	}
	c.Inject(slacktest.Fault{On: name, Lost: true})
	if err := say(t.Context()); err == nil || count() != 3 {
		t.Errorf("%v, %d done", err, count())
	}
	c.Inject(slacktest.Failing(name, "internal_error"))
	c.fails(say(t.Context()), "internal_error")
	c.Inject(slacktest.Limited(name, 1500*time.Millisecond))
	c.limited(say(t.Context()), 2*time.Second)

	c.Inject(slacktest.Fault{On: name, Hang: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := say(ctx); !errors.Is(err, context.DeadlineExceeded) || count() != 3 {
		t.Errorf("%v, %d done", err, count())
	}
	seen := false
	c.Inject(slacktest.Fault{Times: -1, Do: func(*http.Request) { seen = true }, Status: 500})
	for range 2 {
		if say(t.Context()) == nil || !seen {
			t.Error("it must go on failing")
		}
	}
	c.ClearFaults()
	changed := c.Changed()
	if err := say(t.Context()); err != nil {
		t.Error(err)
	}
	<-changed
}

func TestFiles(t *testing.T) {
	t.Parallel()
	c := quick(t)
	id := c.Upload(slacktest.File{Name: "log.txt", MIME: "text/plain", By: "ada", Content: []byte("panic: oops")})
	_, _, _, err := c.GetFileInfoContext(t.Context(), id, 0, 0)
	c.fails(err, "file_not_found") // it was not shared yet
	_, ds := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "look", Files: []string{id}})
	if !bytes.Contains(ds[0].Body, []byte(`"subtype":"file_share"`)) {
		t.Errorf("told %s", ds[0].Body)
	}
	f, _, _, err := c.GetFileInfoContext(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := c.GetFileContext(t.Context(), f.URLPrivateDownload, &b); err != nil || b.String() != "panic: oops" {
		t.Errorf("got %q, %v", b.String(), err)
	}
	c.SetScopes()
	if err := c.GetFileContext(t.Context(), f.URLPrivateDownload, &b); err == nil || !strings.Contains(err.Error(), "sign-in") {
		t.Errorf("got %v", err)
	}
}
