package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ship/bot"
	"ship/config"
	"ship/integrations/linear"
	"ship/integrations/linear/lineartest"
	"ship/session/memory"
)

const linearHookSecret = "lin_wh_s3cret-that-a-person-copied"

// linearDesk is a person who sets Linear up, and Linear.
type linearDesk struct {
	t     *testing.T
	stand *lineartest.Server
	o     linearSetup
	said  *syncBuffer
}

func newLinearDesk(t *testing.T) *linearDesk {
	t.Helper()
	stand, err := lineartest.New(lineartest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stand.Close() })
	d := &linearDesk{t: t, stand: stand, said: &syncBuffer{}}
	d.o = linearSetup{
		name: "ship", dir: t.TempDir(), grant: linear.GrantClient, publicURL: "https://ship.example.com",
		apiURL: stand.APIURL(), tokenURL: stand.TokenURL(), out: d.said,
	}
	return d
}

// types are the lines that the person types.
func (d *linearDesk) types() string {
	return fmt.Sprintf("%s\n  %s \n%s\n", d.stand.ClientID(), d.stand.ClientSecret(), linearHookSecret)
}

func (d *linearDesk) run(typed string) error {
	d.t.Helper()
	d.o.in = strings.NewReader(typed)
	err := setUpLinear(d.t.Context(), d.o)
	for _, secret := range []string{d.stand.ClientSecret(), linearHookSecret, "lin_oauth_"} {
		if strings.Contains(d.said.String()+fmt.Sprint(err), secret) {
			d.t.Errorf("a secret was shown: %v\n%s", err, d.said)
		}
	}
	return err
}

func (d *linearDesk) must(typed string) {
	d.t.Helper()
	if err := d.run(typed); err != nil {
		d.t.Fatal(err)
	}
}

func (d *linearDesk) path(name string) string { return filepath.Join(d.o.dir, name) }

func (d *linearDesk) write(name, text string, mode os.FileMode) {
	d.t.Helper()
	if err := os.WriteFile(d.path(name), []byte(text), mode); err != nil {
		d.t.Fatal(err)
	}
}

func (d *linearDesk) read(name string, mode os.FileMode) string {
	d.t.Helper()
	info, err := os.Stat(d.path(name))
	if err != nil {
		d.t.Fatal(err)
	}
	if info.Mode().Perm() != mode {
		d.t.Errorf("%s has mode %s", name, info.Mode())
	}
	b, err := os.ReadFile(d.path(name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}

// settings are what ship serve would read.
func (d *linearDesk) settings() Settings {
	d.t.Helper()
	s, err := readSettings(d.path(settingsFile), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	if s.Linear.ClientID != d.stand.ClientID() || s.Linear.ClientSecret.Reveal() != d.stand.ClientSecret() || s.Linear.WebhookSecret[0].Reveal() != linearHookSecret {
		d.t.Error("other values are in the settings")
	}
	return s
}

func (d *linearDesk) mustSay(wants ...string) {
	d.t.Helper()
	for _, want := range wants {
		if !strings.Contains(d.said.String(), want) {
			d.t.Errorf("%q was not said:\n%s", want, d.said)
		}
	}
}

func TestSetupLinear(t *testing.T) {
	t.Parallel()
	d := newLinearDesk(t)
	d.must(d.types())
	s := d.settings()
	if s.PublicURL != d.o.publicURL || s.Linear.Grant != linear.GrantClient || s.Linear.APIURL != d.stand.APIURL() || len(s.Linear.TokenKey) != 0 {
		t.Errorf("settings: %+v", s.Linear)
	}
	d.read(settingsFile, 0o600)
	d.read(linearSecretFile, 0o600)
	d.read(linearHookFile, 0o600)
	d.mustSay("https://linear.app/settings/api/applications/new?manifest=", "https://ship.example.com/webhooks/linear",
		"Agent session events", "Client credentials is on", "into the workspace", "as ship", "ship doctor --config "+d.path(settingsFile))
	if v := d.stand.Violations(); v != nil {
		t.Errorf("not as Linear has it: %v", v)
	}
	if err := d.run(d.types()); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("once more: %v", err)
	}
	d.o.force = true
	d.must(d.types()) // the section that is there says the same
	if strings.Contains(d.said.String(), "Put this into it") {
		t.Errorf("something is to be added:\n%s", d.said)
	}
}

// TestSetupLinearAddsToSettings: what was there stays, to the byte.
func TestSetupLinearAddsToSettings(t *testing.T) {
	t.Parallel()
	for name, mine := range map[string]string{
		"with an address": "# mine\nlisten: 127.0.0.1:1 # and this\npublic_url: https://other.example.com\nlimits: {budget_usd: 2}\n",
		"without one":     "listen: 127.0.0.1:1\nlimits: {budget_usd: 2}", // nor a line's end
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newLinearDesk(t)
			d.write(settingsFile, mine, 0o640)
			d.must(d.types())
			if now := d.read(settingsFile, 0o640); !strings.HasPrefix(now, mine) {
				t.Errorf("the settings were changed:\n%s", now)
			}
			s := d.settings()
			if s.Listen != "127.0.0.1:1" || s.Limits.BudgetUSD != 2 || s.PublicURL == "" {
				t.Errorf("%+v", s)
			}
			d.mustSay("has the section linear")
		})
	}
}

// TestSetupLinearLeavesSettings: what cannot be added to is printed.
func TestSetupLinearLeavesSettings(t *testing.T) {
	t.Parallel()
	for name, mine := range map[string]string{
		"a section":    "linear:\n  client_id: old\n  client_secret: old\n  webhook_secret: old\n",
		"an empty one": "linear:\n",
		"in braces":    "{listen: 127.0.0.1:1}\n",
		"no YAML":      "listen: [\n",
		"a list":       "- a\n",
		"two parts":    "listen: 127.0.0.1:1\n---\n",
		"an end":       "listen: 127.0.0.1:1\n...\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newLinearDesk(t)
			d.write(settingsFile, mine, 0o600)
			d.must(d.types())
			if now := d.read(settingsFile, 0o600); now != mine {
				t.Errorf("the settings were changed:\n%s", now)
			}
			d.mustSay("is left as it is", "client_id: "+d.stand.ClientID(), "client_secret_file: "+linearSecretFile)
		})
	}
}

// TestSetupLinearForScripts: nothing is asked that somebody said already.
func TestSetupLinearForScripts(t *testing.T) {
	t.Parallel()
	d := newLinearDesk(t)
	d.write("hook", linearHookSecret+"\n", 0o600)
	d.o.clientID, d.o.hookFile = d.stand.ClientID(), d.path("hook")
	d.o.environ = []string{"SHIP_LINEAR_CLIENT_SECRET=" + d.stand.ClientSecret(), "SHIP_LINEAR_CLIENT_ID=another"}
	d.o.config = filepath.Join(t.TempDir(), "elsewhere.yaml")
	d.must("")
	s, err := readSettings(d.o.config, nil)
	if err != nil || s.Linear.ClientSecret.Reveal() != d.stand.ClientSecret() || s.Linear.ClientID != d.stand.ClientID() {
		t.Errorf("%+v, %v", s.Linear, err)
	}
	if strings.Contains(d.said.String(), "Open this") {
		t.Errorf("said:\n%s", d.said)
	}
	d.o.force, d.o.environ = true, []string{"SHIP_LINEAR_CLIENT_SECRET_FILE=" + d.path("nothing")}
	if err := d.run(""); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestSetupLinearIsRefused: then nothing is written.
func TestSetupLinearIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*linearDesk)
		typed  string
		want   string
	}{
		"wrong secret": {func(d *linearDesk) { d.stand.RotateSecret() }, "", "compare both with the app's page"},
		"no credentials": {func(d *linearDesk) {
			d.stand.Inject(lineartest.Fault{On: "token", Status: 400, Body: `{"error":"unauthorized_client"}`})
		}, "", "turn on Client credentials"},
		"no viewer":       {func(d *linearDesk) { d.stand.Inject(lineartest.Fault{On: "ReadViewer", Status: 503}) }, "", "linear answered 503"},
		"nobody there":    {func(d *linearDesk) { d.o.tokenURL = "http://127.0.0.1:1/oauth/token" }, "", "cannot be reached"},
		"nothing typed":   {func(*linearDesk) {}, "\n", "the client ID is missing"},
		"half typed":      {func(*linearDesk) {}, "app\nsecret", "the webhook signing secret is missing"},
		"a sentence":      {func(*linearDesk) {}, "I do not know\nx\ny\n", "client_id: is not a client id"},
		"no such grant":   {func(d *linearDesk) { d.o.grant = "password" }, "", "--grant is client_credentials or authorization_code"},
		"not over https":  {func(d *linearDesk) { d.o.publicURL = "http://ship.example.com" }, "", "https"},
		"Linear's name":   {func(d *linearDesk) { d.o.name = "Linear" }, "", "an app's name"},
		"no address":      {func(d *linearDesk) { d.o.publicURL = "" }, "", "--public-url"},
		"wrong, by codes": {func(d *linearDesk) { d.o.grant = linear.GrantCode; d.stand.RotateSecret() }, "", "compare both"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newLinearDesk(t)
			typed := d.types()
			c.change(d)
			if c.typed != "" {
				typed = c.typed
			}
			if err := d.run(typed); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if left, _ := os.ReadDir(d.o.dir); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestSetupLinearForSeveral: the link that is printed is one that a ship with
// these settings takes.
func TestSetupLinearForSeveral(t *testing.T) {
	t.Parallel()
	d := newLinearDesk(t)
	d.o.grant = linear.GrantCode
	d.must(d.types())
	d.mustSay("Linear knows the app", "Public is on")
	s := d.settings()
	key := d.read(linearKeyFile, 0o600)
	if s.Linear.Grant != linear.GrantCode || len(s.Linear.TokenKey) != 1 || s.Linear.TokenKey[0].Reveal() != strings.TrimSpace(key) {
		t.Errorf("%+v", s.Linear)
	}
	if strings.Contains(d.said.String(), strings.TrimSpace(key)) {
		t.Error("the token key was shown")
	}
	opens(t, s, d.link())

	d.o.force = true
	d.must(d.types())
	if d.read(linearKeyFile, 0o600) != key {
		t.Error("the token key was overwritten, so that no token can be read")
	}

	d.said = &syncBuffer{}
	d.o = linearSetup{dir: d.o.dir, grant: linear.GrantClient, install: true, out: d.said}
	d.must("")
	opens(t, s, d.link())
}

// link is the last that was printed.
func (d *linearDesk) link() string {
	d.t.Helper()
	said := d.said.String()
	_, link, ok := strings.Cut(said[max(strings.LastIndex(said, "  https://"), 0):], "  ")
	if !ok {
		d.t.Fatalf("no link was printed:\n%s", said)
	}
	return strings.TrimSpace(link)
}

// opens wants a ship to lead a browser with a link to Linear.
func opens(t *testing.T, s Settings, link string) {
	t.Helper()
	vault := &memory.Vault{}
	l, err := linear.New(linear.Config{
		Settings: s.Linear, PublicURL: s.PublicURL, Gate: &bot.Gate{}, Vault: vault, Locker: vault, Quota: &memory.Quota{},
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for pattern, page := range l.Pages {
		mux.Handle(pattern, page)
	}
	u, err := url.Parse(link)
	if err != nil || u.Host != "ship.example.com" {
		t.Fatalf("%s, %v", link, err)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, u.RequestURI(), nil))
	if w.Code != http.StatusSeeOther {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}

func TestSetupLinearHasNothingToInstall(t *testing.T) {
	t.Parallel()
	d := newLinearDesk(t)
	d.o.install = true
	if err := d.run(""); err == nil || !strings.Contains(err.Error(), "is not set up") {
		t.Errorf("without settings: %v", err)
	}
	d.o.install = false
	d.must(d.types())
	d.o.install = true
	if err := d.run(""); err == nil || !strings.Contains(err.Error(), "there is nothing to install") {
		t.Errorf("for one workspace: %v", err)
	}
}

// TestSetupLinearEndsWhileItWaits for a line that nobody types.
func TestSetupLinearEndsWhileItWaits(t *testing.T) {
	t.Parallel()
	in, _ := io.Pipe()
	defer in.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errTestOver)
	if _, err := newAsker(in, io.Discard).ask(ctx, "Client ID", false); !errors.Is(err, errTestOver) {
		t.Errorf("ended with %v", err)
	}
}

// TestSecretsAreKnown: what must never leave in a text includes Linear's.
func TestSecretsAreKnown(t *testing.T) {
	t.Parallel()
	var s Settings
	s.Linear = linear.Settings{
		ClientSecret: config.NewSecret("client-secret"), WebhookSecret: config.NewSecrets("hook-1", "hook-2"), TokenKey: config.NewSecrets("token-key"),
	}
	p := patient{settings: s}
	if got := p.conceal("client-secret hook-1 hook-2 token-key"); got != "[redacted] [redacted] [redacted] [redacted]" {
		t.Error(got)
	}
}
