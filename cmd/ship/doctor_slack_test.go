package main

import (
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/bot"
	"ship/config"
	"ship/integrations/slack"
	"ship/integrations/slack/slacktest"
	"ship/session/memory"
)

const slackSigning = "s1gning-secret-of-the-app"

// slackWard is a ward with a workspace of Slack, in perfect health.
type slackWard struct {
	*ward
	stand *slacktest.Server
}

func newSlackWard(t *testing.T) *slackWard {
	t.Helper()
	stand, err := slacktest.New(slacktest.Options{Limits: slacktest.NoLimits(), SigningSecret: slackSigning})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stand.Close() })
	w := &slackWard{ward: newWard(t), stand: stand}
	w.settings.Slack = slack.Settings{
		BotToken: config.NewSecret(stand.BotToken()), SigningSecret: config.NewSecrets(slackSigning), APIURL: stand.APIURL(),
	}
	w.settings.Routes.Channels = map[string]string{"eng": rigRepo}
	w.settings.Access.Permission, w.settings.Access.Unmatched = "write", "refuse"
	w.door.Store(slackFront(t, slackSigning))
	return w
}

// slackFront is ship's own front door for Slack, which knows one secret.
func slackFront(t *testing.T, secret string) http.HandlerFunc {
	t.Helper()
	receiver, err := slack.NewReceiver(slack.ReceiverConfig{Secrets: []string{secret}})
	if err != nil {
		t.Fatal(err)
	}
	return bot.NewServer(bot.Config{
		Inbox: memory.New(), Receivers: map[string]bot.Receiver{slack.Platform: receiver}, Logger: slog.New(slog.DiscardHandler),
	}).Handler().ServeHTTP
}

// sockets has ship fetch everything.
func (w *slackWard) sockets() {
	w.settings.Slack.AppToken, w.settings.Slack.SigningSecret = config.NewSecret(w.stand.AppToken()), nil
}

// without has the token lack some scopes.
func (w *slackWard) without(scopes ...string) {
	w.stand.SetScopes(slices.DeleteFunc(slacktest.DefaultScopes(), func(s string) bool { return slices.Contains(scopes, s) })...)
}

func (w *slackWard) answers(method, body string) {
	f := slacktest.Failing(method, "")
	f.Times, f.Body = -1, body
	w.stand.Inject(f)
}

// TestDoctorsFindingsOfSlack: each thing that can be wrong, and the line that
// says so.
func TestDoctorsFindingsOfSlack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		check, name string
		change      func(*slackWard)
		// want are parts of what is said: the first is the beginning.
		want []string
	}{
		{"slack.app", "good", func(*slackWard) {}, []string{"ok ", "ship, in the workspace Acme, acme.slack.com"}},
		{"slack.app", "not set up", func(w *slackWard) { w.settings.Slack = slack.Settings{} }, []string{""}},
		{"slack.app", "another token", func(w *slackWard) { w.settings.Slack.BotToken = config.NewSecret("xoxb-another-one") }, []string{"fail", "does not accept the bot token (invalid_auth)", "→ copy slack.bot_token anew"}},
		{"slack.app", "removed", func(w *slackWard) { w.answers("auth.test", `{"ok":false,"error":"account_inactive"}`) }, []string{"fail", "(account_inactive)", "install it there again"}},
		{"slack.app", "a person", func(w *slackWard) {
			w.answers("auth.test", `{"ok":true,"user":"ada","team":"Acme","url":"https://acme.slack.com/","user_id":"U1","team_id":"T1"}`)
		}, []string{"fail", "for a person, ada", "→ ship setup slack"}},
		{"slack.app", "not there", func(w *slackWard) { w.settings.Slack.APIURL = "http://127.0.0.1:1/api" }, []string{"fail", "slack cannot be reached"}},

		{"slack.scopes", "good", func(*slackWard) {}, []string{"ok ", "all that are needed"}},
		{"slack.scopes", "some are lacking", func(w *slackWard) { w.without("files:read", "groups:history") }, []string{"warn", "without files:read, ship cannot look at files", "\nwarn", "without groups:history", "install the app again"}},
		{"slack.scopes", "too few", func(w *slackWard) { w.without("chat:write") }, []string{"fail", "without chat:write, ship cannot say anything"}},
		{"slack.scopes", "not said", func(w *slackWard) {
			w.answers("auth.test", `{"ok":true,"user":"ship","team":"Acme","bot_id":"B1","user_id":"`+w.stand.BotUserID()+`","team_id":"T1"}`)
		}, []string{"warn", "does not say"}},
		{"slack.scopes", "no app", func(w *slackWard) { w.settings.Slack.BotToken = config.NewSecret("xoxb-another-one") }, []string{"skip", "because slack.app failed"}},

		{"slack.account", "good", func(*slackWard) {}, []string{"ok ", "people can be looked up, ship itself"}},
		{"slack.account", "no scope", func(w *slackWard) { w.without("users:read") }, []string{"fail", "cannot look up who asks", "add users:read"}},
		{"slack.account", "deactivated", func(w *slackWard) {
			w.answers("users.info", `{"ok":true,"user":{"id":"U1","name":"ship","deleted":true}}`)
		}, []string{"fail", "the account of ship is deactivated"}},
		{"slack.account", "trouble", func(w *slackWard) { w.answers("users.info", `{"ok":false,"error":"internal_error"}`) }, []string{"fail", "slack answered internal_error"}},

		{"slack.socket", "good", (*slackWard).sockets, []string{"ok ", "Slack gives sockets"}},
		{"slack.socket", "not used", func(*slackWard) {}, []string{""}},
		{"slack.socket", "another token", func(w *slackWard) {
			w.sockets()
			w.settings.Slack.AppToken = config.NewSecret("xapp-another-one")
		}, []string{"fail", "no socket for the app-level token (invalid_auth)", "turn Socket Mode on"}},
		{"slack.socket", "too little", func(w *slackWard) {
			w.sockets()
			w.answers("apps.connections.open", `{"ok":false,"error":"missing_scope"}`)
		}, []string{"fail", "lacks the scope connections:write"}},
		{"slack.socket", "too often", func(w *slackWard) {
			w.sockets()
			w.stand.Inject(slacktest.Limited("apps.connections.open", time.Minute))
		}, []string{"fail", "asked too often", "try again in a minute"}},

		{"slack.address", "public", func(w *slackWard) { w.settings.PublicURL = "https://ship.example.com" }, []string{"ok ", "lead to https://ship.example.com/webhooks/slack"}},
		{"slack.address", "not set", func(w *slackWard) { w.settings.PublicURL = "" }, []string{"fail", "public_url is not set", "ship setup slack --socket"}},
		{"slack.address", "not public", func(*slackWard) {}, []string{"warn", "does not begin with https"}},
		{"slack.address", "sockets", (*slackWard).sockets, []string{""}},

		{"slack.repositories", "good", func(*slackWard) {}, []string{"ok ", rigRepo + ", from its branch main"}},
		{"slack.repositories", "not there", func(w *slackWard) { w.settings.Routes.Channels["ops"] = "acme/nothing" }, []string{"fail", "acme/nothing: I cannot see", "\nok "}},
		{"slack.repositories", "looked at for Linear", func(w *slackWard) { w.settings.Linear.ClientID = "app" }, []string{""}},
		{"slack.people", "none", func(*slackWard) {}, []string{"ok ", "nobody is named"}},
		{"slack.people", "by address and id", func(w *slackWard) {
			w.settings.Access.People = map[string]string{"ada@acme.example": "mona", "U012ABCDEF": "grace"}
		}, []string{"ok ", "2 accounts named"}},
		{"slack.people", "by handle", func(w *slackWard) { w.settings.Access.People = map[string]string{"ada": "mona"} }, []string{"warn", "ada is neither", "\nok "}},
		{"slack.people", "everybody", func(w *slackWard) { w.settings.Access.Unmatched = "allow" }, []string{"warn", "everybody", "\nok "}},

		{"slack.ping", "good", func(*slackWard) {}, []string{"ok ", "/webhooks/slack accepts a signed ping"}},
		{"slack.ping", "other secret", func(w *slackWard) { w.door.Store(slackFront(w.t, "another secret")) }, []string{"fail", "refuses the signature (401)", "slack.signing_secret"}},
		{"slack.ping", "second secret unknown", func(w *slackWard) {
			w.settings.Slack.SigningSecret = config.NewSecrets(slackSigning, "a newer secret")
		}, []string{"fail", "refuses the signature (401)"}},
		{"slack.ping", "no secret", func(w *slackWard) { w.settings.Slack.SigningSecret = nil }, []string{"fail", "no webhook secret", "→ ship setup slack"}},
		{"slack.ping", "a ship without Slack", func(w *slackWard) { w.door.Store(w.front(rigSecret)) }, []string{"fail", "is not there (404)"}},
		{"slack.ping", "a stranger", func(w *slackWard) {
			w.door.Store(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		}, []string{"fail", "it is not ship"}},
		{"slack.ping", "public_url leads nowhere", func(w *slackWard) { w.settings.PublicURL = "http://127.0.0.1:1" }, []string{"fail", "cannot be reached"}},
		{"slack.ping", "not running, not public", func(w *slackWard) { w.settings.PublicURL = ""; w.ship.Close() }, []string{"warn", "nothing was sent"}},
		{"slack.ping", "sockets", (*slackWard).sockets, []string{""}},
	} {
		t.Run(c.check+" "+c.name, func(t *testing.T) {
			t.Parallel()
			w := newSlackWard(t)
			c.change(w)
			said := w.said(c.check)
			if !strings.HasPrefix(said, c.want[0]) || c.want[0] == "" && said != "" {
				t.Errorf("it should begin with %q:\n%s", c.want[0], said)
			}
			for _, want := range c.want[1:] {
				if !strings.Contains(said, want) {
					t.Errorf("%q was not said:\n%s", want, said)
				}
			}
			for _, secret := range []string{w.stand.BotToken(), w.stand.AppToken(), slackSigning, "another-one"} {
				if strings.Contains(said, secret) {
					t.Errorf("a secret was printed:\n%s", said)
				}
			}
		})
	}
}

// TestSlackChecksAreExplained: each is in the documentation, and none that there
// is not.
func TestSlackChecksAreExplained(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/slack.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows, names []string
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` | "); ok && strings.HasPrefix(line, "| `slack.") {
			rows = append(rows, name)
		}
	}
	for _, c := range slackChecks() {
		names = append(names, c.name)
	}
	if diff := cmp.Diff(names, rows); diff != "" {
		t.Errorf("-checks +documentation:\n%s", diff)
	}
}
