package linear

import (
	"fmt"
	"strings"
	"testing"

	"ship/config"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	const app = "client_id: abc, client_secret: hunter2, webhook_secret: "
	key := strings.Repeat("k", 32)
	for name, tt := range map[string]struct {
		yaml     string
		problems []string
	}{
		"one secret":     {app + "s", nil},
		"two secrets":    {app + "[new, old]", nil},
		"another server": {app + "s, api_url: 'http://127.0.0.1:1/graphql', token_url: 'http://127.0.0.1:1/token'", nil},
		"installed":      {app + "s, grant: authorization_code, token_key: [" + key + ", " + key + "]", nil},
		"nothing":        {"webhook_secret: s", []string{"client_id", "client_secret"}},
		"odd id":         {"client_id: a/b, client_secret: hunter2, webhook_secret: s", []string{"not a client id"}},
		"no secret":      {"client_id: abc, client_secret: hunter2", []string{"webhook_secret"}},
		"empty secret":   {app + "[s, '']", []string{"empty entry"}},
		"unknown grant":  {app + "s, grant: password", []string{"grant"}},
		"no key":         {app + "s, grant: authorization_code", []string{"token_key"}},
		"short key":      {app + "s, token_key: hunter2", []string{"32 characters"}},
		"bad address":    {app + "s, token_url: 'api.linear.app'", []string{"token_url"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all struct {
				Linear Settings `yaml:"linear"`
			}
			err := config.Decode(config.Document{Name: "ship.yaml", Text: []byte("linear: {" + tt.yaml + "}")}, nil, &all)
			if (err == nil) != (tt.problems == nil) {
				t.Fatalf("got %v", err)
			}
			for _, want := range tt.problems {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %q", want, err)
				}
			}
			if said := fmt.Sprintf("%v %+v %v", err, all, all.Linear.Tokens()); strings.Contains(said, "hunter2") {
				t.Errorf("a secret is in %q", said)
			}
			if !all.Linear.Enabled() {
				t.Error("not enabled")
			}
		})
	}
}

func TestSettingsWithoutSection(t *testing.T) {
	t.Parallel()
	var all struct {
		Linear Settings `yaml:"linear"`
	}
	if err := config.Decode(config.Document{}, nil, &all); err != nil {
		t.Error(err)
	}
	if s := all.Linear; s.Enabled() || s.APIURL != DefaultAPIURL || s.TokenURL != DefaultTokenURL || s.Grant != GrantClient {
		t.Errorf("got %+v", s)
	}
	if err := (Settings{WebhookSecret: config.NewSecrets("")}).Validate(); err == nil || !strings.Contains(err.Error(), "entry 1 is empty") {
		t.Errorf("got %v", err)
	}
}
