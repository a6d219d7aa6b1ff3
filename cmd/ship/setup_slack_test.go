package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ship/integrations/slack/slacktest"
)

// slackDesk is a person who sets Slack up, and Slack.
type slackDesk struct {
	t     *testing.T
	stand *slacktest.Server
	o     slackSetup
	said  *syncBuffer
}

func newSlackDesk(t *testing.T) *slackDesk {
	t.Helper()
	stand, err := slacktest.New(slacktest.Options{Limits: slacktest.NoLimits()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stand.Close() })
	d := &slackDesk{t: t, stand: stand, said: &syncBuffer{}}
	d.o = slackSetup{name: "ship", dir: t.TempDir(), apiURL: stand.APIURL(), out: d.said}
	return d
}

// public has Slack deliver, and not be asked.
func (d *slackDesk) public() *slackDesk {
	d.o.publicURL = "https://ship.example.com"
	return d
}

// types are the lines that the person types.
func (d *slackDesk) types() string {
	second := d.stand.AppToken()
	if d.o.publicURL != "" && !d.o.socket {
		second = d.stand.SigningSecret()
	}
	return fmt.Sprintf("  %s \n%s\n", d.stand.BotToken(), second)
}

func (d *slackDesk) run(typed string) error {
	d.t.Helper()
	d.o.in = strings.NewReader(typed)
	err := setUpSlack(d.t.Context(), d.o)
	for _, secret := range []string{d.stand.BotToken(), d.stand.AppToken(), d.stand.SigningSecret(), "hunter2"} {
		if strings.Contains(d.said.String()+fmt.Sprint(err), secret) {
			d.t.Errorf("a secret was shown: %v\n%s", err, d.said)
		}
	}
	return err
}

func (d *slackDesk) must(typed string) {
	d.t.Helper()
	if err := d.run(typed); err != nil {
		d.t.Fatal(err)
	}
}

func (d *slackDesk) path(name string) string { return filepath.Join(d.o.dir, name) }

func (d *slackDesk) write(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(d.path(name), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// private wants a file that only its owner may read, and returns what is in it.
func (d *slackDesk) private(name string) string {
	d.t.Helper()
	info, err := os.Stat(d.path(name))
	if err != nil {
		d.t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		d.t.Errorf("%s has mode %s", name, info.Mode())
	}
	b, err := os.ReadFile(d.path(name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}

// settings are what ship serve would read.
func (d *slackDesk) settings() Settings {
	d.t.Helper()
	s, err := readSettings(d.path(settingsFile), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	if s.Slack.BotToken.Reveal() != d.stand.BotToken() || s.Slack.APIURL != strings.TrimRight(d.stand.APIURL(), "/") {
		d.t.Error("other values are in the settings")
	}
	return s
}

func (d *slackDesk) mustSay(wants ...string) {
	d.t.Helper()
	for _, want := range wants {
		if !strings.Contains(d.said.String(), want) {
			d.t.Errorf("%q was not said:\n%s", want, d.said)
		}
	}
}

func TestSetupSlack(t *testing.T) {
	t.Parallel()
	d := newSlackDesk(t).public()
	d.must(d.types())
	s := d.settings()
	if s.PublicURL != d.o.publicURL || s.Slack.SocketMode() || s.Slack.SigningSecret[0].Reveal() != d.stand.SigningSecret() {
		t.Errorf("settings: %+v", s.Slack)
	}
	d.private(settingsFile)
	d.private(slackBotFile)
	d.private(slackSigningFile)
	d.mustSay("https://api.slack.com/apps?new_app=1&manifest_json=%7B", "Signing secret: Basic Information", "https%3A%2F%2Fship.example.com%2Fwebhooks%2Fslack",
		"into the workspace Acme (acme.slack.com), as ship", "have Slack\n     try the address again", "/invite @ship", "ship doctor --config "+d.path(settingsFile))
	if v := d.stand.Violations(); v != nil {
		t.Errorf("not as Slack has it: %v", v)
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

// TestSetupSlackOverSockets: no address is needed, and none is written.
func TestSetupSlackOverSockets(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*slackDesk){
		"no address": func(*slackDesk) {},
		"by a flag":  func(d *slackDesk) { d.public().o.socket = true },
		"by a file":  func(d *slackDesk) { d.public(); d.write("app", d.stand.AppToken()); d.o.appFile = d.path("app") },
		"by a variable": func(d *slackDesk) {
			d.write(settingsFile, "public_url: https://ship.example.com\n")
			d.o.environ = []string{"SHIP_SLACK_APP_TOKEN=" + d.stand.AppToken()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newSlackDesk(t)
			change(d)
			d.must(d.stand.BotToken() + "\n" + d.stand.AppToken() + "\n")
			s := d.settings()
			if !s.Slack.SocketMode() || s.Slack.AppToken.Reveal() != d.stand.AppToken() || len(s.Slack.SigningSecret) != 0 {
				t.Errorf("settings: %+v", s.Slack)
			}
			if got := strings.TrimSpace(d.private(slackAppFile)); got != d.stand.AppToken() {
				t.Errorf("kept %q", got)
			}
			d.mustSay("Start ship anew.\n", "into the workspace Acme")
			if strings.Contains(d.said.String(), "webhooks") || strings.Contains(d.said.String(), "Event Subscriptions") {
				t.Errorf("it speaks of deliveries:\n%s", d.said)
			}
		})
	}
}

// TestSetupSlackChoosesTheWay by what the settings say.
func TestSetupSlackChoosesTheWay(t *testing.T) {
	t.Parallel()
	for text, socket := range map[string]bool{
		"":                                       true,
		"listen: 127.0.0.1:1\n":                  true,
		"public_url: https://ship.example.com\n": false,
	} {
		d := newSlackDesk(t)
		d.write(settingsFile, text)
		o, err := d.o.complete()
		if err != nil || o.socket != socket || (o.publicURL == "") != socket {
			t.Errorf("%q: by sockets %t, address %q, %v", text, o.socket, o.publicURL, err)
		}
	}
}

// TestSetupSlackAddsToSettings: what was there stays, to the byte.
func TestSetupSlackAddsToSettings(t *testing.T) {
	t.Parallel()
	d := newSlackDesk(t)
	const mine = "# mine\nlisten: 127.0.0.1:1 # and this\npublic_url: https://other.example.com" // nor a line's end
	d.write(settingsFile, mine)
	d.o.publicURL = "https://ship.example.com"
	d.must(d.types())
	if now := d.private(settingsFile); !strings.HasPrefix(now, mine+"\n\nslack:\n") || strings.Count(now, "public_url") != 1 {
		t.Errorf("the settings were changed:\n%s", now)
	}
	if s := d.settings(); s.Listen != "127.0.0.1:1" || s.PublicURL != "https://other.example.com" {
		t.Errorf("%+v", s)
	}
	d.mustSay("has the section slack")
}

// TestSetupSlackLeavesSettings: what cannot be added to is printed.
func TestSetupSlackLeavesSettings(t *testing.T) {
	t.Parallel()
	for name, mine := range map[string]string{
		"a section": "slack:\n  bot_token: xoxb-old\n  signing_secret: old\n", "an empty one": "slack:\n",
		"in braces": "{listen: 127.0.0.1:1}\n", "no YAML": "listen: [\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newSlackDesk(t).public()
			d.write(settingsFile, mine)
			d.must(d.types())
			if now := d.private(settingsFile); now != mine {
				t.Errorf("the settings were changed:\n%s", now)
			}
			d.mustSay("is left as it is", "bot_token_file: "+slackBotFile, "signing_secret_file: "+slackSigningFile)
		})
	}
}

// TestSetupSlackForScripts: nothing is asked that somebody said already.
func TestSetupSlackForScripts(t *testing.T) {
	t.Parallel()
	d := newSlackDesk(t).public()
	d.write("signing", d.stand.SigningSecret()+"\n")
	d.o.signingFile = d.path("signing")
	d.o.environ = []string{"SHIP_SLACK_BOT_TOKEN=" + d.stand.BotToken()}
	d.o.config = filepath.Join(t.TempDir(), "elsewhere.yaml")
	d.must("")
	s, err := readSettings(d.o.config, nil)
	if err != nil || s.Slack.BotToken.Reveal() != d.stand.BotToken() || s.Slack.SigningSecret[0].Reveal() != d.stand.SigningSecret() {
		t.Errorf("%+v, %v", s.Slack, err)
	}
	if strings.Contains(d.said.String(), "Open this") {
		t.Errorf("said:\n%s", d.said)
	}
	d.o.force, d.o.environ = true, []string{"SHIP_SLACK_BOT_TOKEN_FILE=" + d.path("nothing")}
	if err := d.run(""); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestSetupSlackSaysWhatIsLacking, and goes on: somebody may have wanted that.
func TestSetupSlackSaysWhatIsLacking(t *testing.T) {
	t.Parallel()
	d := newSlackDesk(t)
	scopes := slacktest.DefaultScopes()
	d.stand.SetScopes(scopes[:len(scopes)-1]...)
	d.must(d.types())
	d.mustSay("Without the scope users:read.email, ship finds nobody on GitHub")
}

// TestSetupSlackIsRefused: then nothing is written.
func TestSetupSlackIsRefused(t *testing.T) {
	t.Parallel()
	fails := func(method, code string) func(*slackDesk) {
		return func(d *slackDesk) { d.stand.Inject(slacktest.Failing(method, code)) }
	}
	for name, c := range map[string]struct {
		change func(*slackDesk)
		typed  string
		want   string
	}{
		"revoked":          {fails("auth.test", "token_revoked"), "", "copy it anew from OAuth & Permissions"},
		"trouble":          {fails("auth.test", "internal_error"), "", "slack answered internal_error"},
		"no socket":        {fails("apps.connections.open", "no_permission"), "", "see that Socket Mode is on"},
		"too little":       {fails("apps.connections.open", "missing_scope"), "", "with the scope connections:write"},
		"socket in vain":   {fails("apps.connections.open", "internal_error"), "", "slack answered internal_error"},
		"nobody there":     {func(d *slackDesk) { d.o.apiURL = "http://127.0.0.1:1/api/" }, "", "cannot be reached"},
		"nothing typed":    {func(*slackDesk) {}, "\n", "the bot token is missing"},
		"half typed":       {func(*slackDesk) {}, "xoxb-1", "the app-level token is missing"},
		"a person's token": {func(*slackDesk) {}, "xoxp-hunter2\nxapp-hunter2\n", "bot_token: is not a bot's token"},
		"turned around":    {func(*slackDesk) {}, "xapp-hunter2\nxoxb-hunter2\n", "app_token: is not an app-level token"},
		"a person": {func(d *slackDesk) {
			f := slacktest.Failing("auth.test", "")
			f.Body = `{"ok":true,"url":"https://acme.slack.com/","team":"Acme","user":"ada","team_id":"T1","user_id":"U1"}`
			d.stand.Inject(f)
		}, "", "the token of a person"},
		"not over https":  {func(d *slackDesk) { d.o.publicURL = "http://ship.example.com" }, "", "https"},
		"not public":      {func(d *slackDesk) { d.o.publicURL = "https://localhost" }, "", "Socket Mode needs none"},
		"Slack's name":    {func(d *slackDesk) { d.o.name = "slackbot" }, "", "an app's name"},
		"broken settings": {func(d *slackDesk) { d.o.config = "/dev/null/ship.yaml"; d.o.environ = []string{"SHIP_LISTNE=1"} }, "", "or give --public-url or --socket"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newSlackDesk(t)
			c.change(d)
			typed := c.typed
			if typed == "" {
				typed = d.types()
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
