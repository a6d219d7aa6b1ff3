package slack

import (
	"fmt"
	"strings"
	"testing"

	"ship/config"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	const app = "bot_token: xoxb-hunter2, "
	for name, tt := range map[string]struct {
		yaml     string
		problems []string
	}{
		"posted":           {app + "signing_secret: hunter2", nil},
		"two secrets":      {app + "signing_secret: [hunter2, old]", nil},
		"socket mode":      {app + "app_token: xapp-hunter2, connections: 3", nil},
		"both":             {app + "app_token: xapp-hunter2, signing_secret: hunter2", nil},
		"token that ends":  {"bot_token: xoxe.xoxb-hunter2, signing_secret: hunter2", nil},
		"another server":   {app + "signing_secret: s, api_url: 'http://127.0.0.1:1/api/'", nil},
		"no token":         {"signing_secret: hunter2", []string{"bot_token"}},
		"a person's token": {"bot_token: xoxp-hunter2, signing_secret: s", []string{"xoxb-"}},
		"no way in":        {app[:len(app)-2], []string{"signing_secret", "app_token"}},
		"empty secret":     {app + "signing_secret: [s, '']", []string{"empty"}},
		"blank secret":     {app + "signing_secret: [s, ' ']", []string{"empty"}},
		"wrong app token":  {app + "app_token: xoxb-hunter2", []string{"xapp-"}},
		"too many":         {app + "app_token: xapp-1, connections: 11", []string{"connections", "10"}},
		"none":             {app + "app_token: xapp-1, connections: 0", []string{"connections"}},
		"bad address":      {app + "signing_secret: s, api_url: slack.com", []string{"api_url"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all struct {
				Slack Settings `yaml:"slack"`
			}
			err := config.Decode(config.Document{Name: "ship.yaml", Text: []byte("slack: {" + tt.yaml + "}")}, nil, &all)
			if (err == nil) != (tt.problems == nil) {
				t.Fatalf("got %v", err)
			}
			for _, want := range tt.problems {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %q", want, err)
				}
			}
			if said := fmt.Sprintf("%v %+v", err, all); strings.Contains(said, "hunter2") {
				t.Errorf("a secret is in %q", said)
			}
			if !all.Slack.Enabled() || all.Slack.SocketMode() != strings.Contains(tt.yaml, "app_token") {
				t.Errorf("got %+v", all)
			}
		})
	}
}

func TestSettingsWithoutSection(t *testing.T) {
	t.Parallel()
	var all struct {
		Slack Settings `yaml:"slack"`
	}
	if err := config.Decode(config.Document{Name: "ship.yaml", Text: []byte("{}")}, nil, &all); err != nil || all.Slack.Enabled() {
		t.Errorf("%v, enabled %t", err, all.Slack.Enabled())
	}
}
