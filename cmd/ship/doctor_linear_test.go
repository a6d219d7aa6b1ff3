package main

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"ship/bot"
	"ship/config"
	"ship/integrations/linear"
	"ship/integrations/linear/lineartest"
	"ship/session/memory"
)

// linearWard is a ward with a workspace of Linear, in perfect health.
type linearWard struct {
	*ward
	stand *lineartest.Server
}

func newLinearWard(t *testing.T) *linearWard {
	t.Helper()
	stand, err := lineartest.New(lineartest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stand.Close() })
	w := &linearWard{ward: newWard(t), stand: stand}
	w.settings.Linear = linear.Settings{
		ClientID: stand.ClientID(), ClientSecret: config.NewSecret(stand.ClientSecret()), WebhookSecret: config.NewSecrets(linearHookSecret),
		Grant: linear.GrantClient, APIURL: stand.APIURL(), TokenURL: stand.TokenURL(),
	}
	w.settings.Routes.Teams = map[string]string{"ENG": rigRepo}
	w.settings.Access.Permission, w.settings.Access.Unmatched = "write", "refuse"
	w.door.Store(linearFront(t, linearHookSecret))
	return w
}

// linearFront is ship's own front door for Linear, which knows one secret.
func linearFront(t *testing.T, secret string) http.HandlerFunc {
	t.Helper()
	vault := &memory.Vault{}
	inbox := memory.New()
	l, err := linear.New(linear.Config{
		Settings: linear.Settings{ClientID: "app", ClientSecret: config.NewSecret("x"), WebhookSecret: config.NewSecrets(secret)},
		Gate:     &bot.Gate{}, Vault: vault, Locker: vault, Quota: &memory.Quota{}, Inbox: inbox,
	})
	if err != nil {
		t.Fatal(err)
	}
	return bot.NewServer(bot.Config{
		Inbox: inbox, Receivers: map[string]bot.Receiver{"linear": l.Receiver}, Logger: slog.New(slog.DiscardHandler),
		Ready: func(context.Context) error { return nil },
	}).Handler().ServeHTTP
}

// codes has admins install the app.
func (w *linearWard) codes() {
	w.settings.Linear.Grant, w.settings.Linear.TokenKey = linear.GrantCode, config.NewSecrets(strings.Repeat("k", 40))
}

func (w *linearWard) token(status int, body string) {
	w.stand.Inject(lineartest.Fault{On: "token", Times: -1, Status: status, Body: body})
}

// TestDoctorsFindingsOfLinear: each thing that can be wrong, and the line that
// says so.
func TestDoctorsFindingsOfLinear(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		check, name string
		change      func(*linearWard)
		// want are parts of what is said: the first is the beginning.
		want []string
	}{
		{"linear.app", "good", func(*linearWard) {}, []string{"ok ", "ship, in the workspace ", "linear.app/acme"}},
		{"linear.app", "not set up", func(w *linearWard) { w.settings.Linear = linear.Settings{} }, []string{""}},
		{"linear.app", "wrong secret", func(w *linearWard) { w.stand.RotateSecret() }, []string{"fail", "(401)", "compare linear.client_id and linear.client_secret"}},
		{"linear.app", "no client credentials", func(w *linearWard) { w.token(400, `{"error":"unauthorized_client"}`) }, []string{"fail", "turn on Client credentials"}},
		{"linear.app", "down", func(w *linearWard) { w.token(503, "") }, []string{"fail", "linear answers 503"}},
		{"linear.app", "not there", func(w *linearWard) { w.settings.Linear.TokenURL = "http://127.0.0.1:1/oauth/token" }, []string{"fail", "linear cannot be reached"}},
		{"linear.app", "no viewer", func(w *linearWard) {
			w.stand.Inject(lineartest.Failing("ReadViewer", 401, "AUTHENTICATION_ERROR", "no"))
		}, []string{"fail", "linear answered 401 AUTHENTICATION_ERROR"}},
		{"linear.app", "a person", func(w *linearWard) {
			w.stand.Inject(lineartest.Fault{On: "ReadViewer", Status: 200, Body: `{"data":{"viewer":{"id":"a","name":"Ada","displayName":"ada","app":false},"organization":{"id":"o","name":"Acme","urlKey":"acme"}}}`})
		}, []string{"fail", "for a person, ada"}},
		{"linear.app", "installed by admins", (*linearWard).codes, []string{"ok ", "Linear knows the app"}},
		{"linear.app", "installed by admins, wrong secret", func(w *linearWard) { w.codes(); w.stand.RotateSecret() }, []string{"fail", "(401)"}},

		{"linear.scopes", "good", func(*linearWard) {}, []string{"ok ", "app:assignable, app:mentionable, read, write"}},
		{"linear.scopes", "too few", func(w *linearWard) {
			w.token(200, `{"access_token":"`+w.stand.Token()+`","scope":"read,write"}`)
		}, []string{"fail", "lacks app:assignable, app:mentionable"}},
		{"linear.scopes", "not said", func(w *linearWard) { w.token(200, `{"access_token":"`+w.stand.Token()+`"}`) }, []string{"warn", "does not say"}},
		{"linear.scopes", "no app", func(w *linearWard) { w.stand.RotateSecret() }, []string{"skip", "because linear.app failed"}},
		{"linear.scopes", "installed by admins", (*linearWard).codes, []string{"ok ", "admin agrees"}},

		{"linear.limits", "good", func(*linearWard) {}, []string{"ok ", "requests: 49", "of 5000 are left", "\nok ", "complexity: "}},
		{"linear.limits", "nearly used up", func(w *linearWard) { w.stand.Spend(4900, 0) }, []string{"warn", "who else uses this app", "\nok "}},
		{"linear.limits", "used up", func(w *linearWard) {
			w.stand.Inject(lineartest.Failing("ReadRateLimits", 400, "RATELIMITED", "no"))
		}, []string{"warn", "RATELIMITED"}},

		{"linear.address", "public", func(w *linearWard) { w.settings.PublicURL = "https://ship.example.com" }, []string{"ok ", "lead to https://ship.example.com/webhooks/linear"}},
		{"linear.address", "not set", func(w *linearWard) { w.settings.PublicURL = "" }, []string{"fail", "public_url is not set"}},
		{"linear.address", "not public", func(*linearWard) {}, []string{"warn", "does not begin with https"}},

		{"linear.repositories", "good", func(*linearWard) {}, []string{"ok ", rigRepo + ", from its branch main"}},
		{"linear.repositories", "not there", func(w *linearWard) { w.settings.Routes.Default = "acme/nothing" }, []string{"fail", "acme/nothing: I cannot see", "\nok "}},
		{"linear.repositories", "the same twice", func(w *linearWard) { w.settings.Routes.Labels = map[string]string{"w": "ACME/widgets"} }, []string{"ok "}},
		{"linear.repositories", "none", func(w *linearWard) { w.settings.Routes.Teams = nil }, []string{"warn", "none is named"}},
		{"linear.repositories", "no host", func(w *linearWard) { w.settings.GitHub.APIURL = "http://127.0.0.1:1" }, []string{"skip", "because github.app failed"}},

		{"linear.people", "none", func(*linearWard) {}, []string{"ok ", "nobody is named"}},
		{"linear.people", "by address and id", func(w *linearWard) {
			w.settings.Access.People = map[string]string{"ada@acme.example": "mona", "6f0f1a52-0000-4000-8000-000000000001": "grace"}
		}, []string{"ok ", "2 accounts named"}},
		{"linear.people", "by name", func(w *linearWard) { w.settings.Access.People = map[string]string{"Ada": "mona"} }, []string{"warn", "Ada is neither", "\nok "}},
		{"linear.people", "everybody", func(w *linearWard) { w.settings.Access.Unmatched = "allow" }, []string{"warn", "everybody", "\nok "}},

		{"linear.ping", "good", func(*linearWard) {}, []string{"ok ", "/webhooks/linear accepts a signed ping"}},
		{"linear.ping", "other secret", func(w *linearWard) { w.door.Store(linearFront(w.t, "another secret")) }, []string{"fail", "refuses the signature (401)", "linear.webhook_secret"}},
		{"linear.ping", "second secret unknown", func(w *linearWard) {
			w.settings.Linear.WebhookSecret = config.NewSecrets(linearHookSecret, "a newer secret")
		}, []string{"fail", "refuses the signature (401)"}},
		{"linear.ping", "no secret", func(w *linearWard) { w.settings.Linear.WebhookSecret = nil }, []string{"fail", "no webhook secret", "→ ship setup linear"}},
		{"linear.ping", "a ship without Linear", func(w *linearWard) { w.door.Store(w.front(rigSecret)) }, []string{"fail", "is not there (404)"}},
		{"linear.ping", "a stranger", func(w *linearWard) {
			w.door.Store(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		}, []string{"fail", "it is not ship"}},
		{"linear.ping", "public_url leads nowhere", func(w *linearWard) { w.settings.PublicURL = "http://127.0.0.1:1" }, []string{"fail", "cannot be reached"}},
		{"linear.ping", "not running, not public", func(w *linearWard) { w.settings.PublicURL = ""; w.ship.Close() }, []string{"warn", "nothing was sent"}},
	} {
		t.Run(c.check+" "+c.name, func(t *testing.T) {
			t.Parallel()
			w := newLinearWard(t)
			secrets := []string{w.stand.ClientSecret(), linearHookSecret, strings.Repeat("k", 40), "lin_oauth_"}
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
			for _, secret := range secrets {
				if strings.Contains(said, secret) {
					t.Errorf("a secret was printed:\n%s", said)
				}
			}
		})
	}
}
