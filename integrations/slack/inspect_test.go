package slack

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/config"
	"ship/integrations/slack/slacktest"
)

func newInspection(t *testing.T) (*slacktest.Server, Settings, *http.Transport) {
	t.Helper()
	s, err := slacktest.New(slacktest.Options{Limits: slacktest.NoLimits()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, Settings{
		BotToken: config.NewSecret(s.BotToken()), AppToken: config.NewSecret(s.AppToken()), APIURL: s.APIURL(),
	}, &http.Transport{DisableKeepAlives: true}
}

func TestInspector(t *testing.T) {
	t.Parallel()
	s, settings, transport := newInspection(t)
	i := NewInspector(settings, transport)
	h, err := i.Holder(t.Context())
	want := Holder{User: s.BotUserID(), Name: "ship", App: true, Team: s.TeamID(), Workspace: "Acme", Host: "acme.slack.com", Scopes: slacktest.DefaultScopes()}
	if diff := cmp.Diff(want, h); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	a, err := i.Account(t.Context(), h.User)
	if err != nil || a.Name != "ship" || a.Gone {
		t.Errorf("%+v, %v", a, err)
	}
	gone := s.AddPerson(slacktest.Person{Handle: "bob", Gone: true})
	if a, err := i.Account(t.Context(), gone); err != nil || !a.Gone {
		t.Errorf("%+v, %v", a, err)
	}
	if err := i.Socket(t.Context()); err != nil {
		t.Error(err)
	}
	if v := s.Violations(); v != nil {
		t.Errorf("not as Slack has it: %v", v)
	}
}

// TestInspectorIsRefused: each way, and none of them tells a secret.
func TestInspectorIsRefused(t *testing.T) {
	t.Parallel()
	const auth, open, who = "auth.test", "apps.connections.open", "users.info"
	answers := func(method string, status int, body string) func(*slacktest.Server, *Settings) {
		return func(s *slacktest.Server, _ *Settings) {
			s.Inject(slacktest.Fault{On: method, Times: -1, Status: status, Body: body})
		}
	}
	for name, c := range map[string]struct {
		change func(*slacktest.Server, *Settings)
		method string
		is     error
		says   string
	}{
		"another token": {func(_ *slacktest.Server, s *Settings) { s.BotToken = config.NewSecret("xoxb-hunter2") }, auth, ErrBotToken, "(invalid_auth)"},
		"no token":      {func(_ *slacktest.Server, s *Settings) { s.BotToken = config.Secret{} }, auth, ErrBotToken, "(not_authed)"},
		"removed":       {answers(auth, 200, `{"ok":false,"error":"account_inactive"}`), auth, ErrBotToken, "(account_inactive)"},
		"trouble":       {answers(auth, 200, `{"ok":false,"error":"internal_error"}`), auth, nil, "slack answered internal_error"},
		"no code":       {answers(auth, 200, `{"ok":false,"error":"hunter2 said it"}`), auth, nil, "slack refused the question"},
		"down":          {answers(auth, 503, "hunter2"), auth, nil, "slack answered 503"},
		"redirect":      {answers(auth, 302, "hunter2"), auth, nil, "slack answered 302"},
		"a page":        {answers(auth, 200, "<p>hunter2</p>"), auth, nil, "does not speak as Slack does"},
		"nobody there":  {func(_ *slacktest.Server, s *Settings) { s.APIURL = "http://127.0.0.1:1/api" }, auth, nil, "cannot be reached"},
		"too often": {func(s *slacktest.Server, _ *Settings) { s.Inject(slacktest.Limited(open, 30*time.Second)) }, open, nil,
			"again in 30s"},
		"another app token": {func(_ *slacktest.Server, s *Settings) { s.AppToken = config.NewSecret("xapp-hunter2") }, open, ErrAppToken, "(invalid_auth)"},
		"the bot's for it":  {func(_ *slacktest.Server, s *Settings) { s.AppToken = s.BotToken }, open, ErrAppToken, "(not_allowed_token_type)"},
		"no such scope":     {answers(open, 200, `{"ok":false,"error":"missing_scope","needed":"hunter2"}`), open, ErrScope, "lacks a scope"},
		"no users:read":     {func(s *slacktest.Server, _ *Settings) { s.SetScopes("chat:write") }, who, ErrScope, "lacks a scope"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, settings, transport := newInspection(t)
			c.change(s, &settings)
			i := NewInspector(settings, transport)
			var err error
			switch c.method {
			case auth:
				_, err = i.Holder(t.Context())
			case who:
				_, err = i.Account(t.Context(), s.BotUserID())
			default:
				err = i.Socket(t.Context())
			}
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestGranted: however the scopes are written.
func TestGranted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                         nil,
		"chat:write":               {"chat:write"},
		"users:read, chat:write,,": {"chat:write", "users:read"},
		"b,a,b":                    {"a", "b"},
	} {
		if diff := cmp.Diff(want, granted(http.Header{"X-Oauth-Scopes": {text}})); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}
