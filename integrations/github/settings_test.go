package github

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/config"
	"ship/integrations/github/githubtest"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	const key = "-----BEGIN RSA PRIVATE KEY-----\\nabc\\n-----END RSA PRIVATE KEY-----"
	tests := []struct {
		name, yaml string
		problems   []string
	}{
		{"one secret", "{app_id: 1, private_key: '" + key + "', webhook_secret: s}", nil},
		{"two secrets", "{app_id: 1, private_key: '" + key + "', webhook_secret: [new, old], api_url: 'https://ghe.example.com/api/v3', web_url: 'https://ghe.example.com'}", nil},
		{"nothing", "{}", []string{"github.app_id", "github.private_key", "github.webhook_secret"}},
		{"empty secret", "{app_id: 1, private_key: '" + key + "', webhook_secret: [s, '']}", []string{"empty entry"}},
		{"path as key", "{app_id: 1, private_key: /etc/key.pem, webhook_secret: s}", []string{"not a PEM key"}},
		{"bad address", "{app_id: 1, private_key: '" + key + "', webhook_secret: s, api_url: 'ghe.example.com'}", []string{"api_url"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var all struct {
				GitHub Settings `yaml:"github"`
			}
			err := config.Decode(config.Document{Name: "ship.yaml", Text: []byte("github: " + tt.yaml)}, nil, &all)
			if tt.yaml == "{}" { // a section in which nothing is set is not asked
				err = all.GitHub.Validate()
			}
			if (err == nil) != (tt.problems == nil) {
				t.Fatalf("got %v", err)
			}
			for _, want := range tt.problems {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %q", want, err)
				}
			}
		})
	}
}

func TestSettingsMakeAnIntegration(t *testing.T) {
	t.Parallel()
	server, err := githubtest.New(githubtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	s := Settings{
		AppID: 1, PrivateKey: config.NewSecret(strings.ReplaceAll(server.PrivateKey(), "\n", `\n`)), WebhookSecret: config.NewSecrets("s"),
	}
	if !s.Enabled() || (Settings{}).Enabled() {
		t.Error("enabled is wrong")
	}
	if _, err := New(s.Config()); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Config){
		func(c *Config) { c.AppID = 0 },
		func(c *Config) { c.PrivateKey = "" },
		func(c *Config) { c.PrivateKey = "not a key" },
		func(c *Config) { c.WebhookSecrets = nil },
		func(c *Config) { c.APIURL = "ftp://x" },
		func(c *Config) { c.WebURL = "://" },
	} {
		c := s.Config()
		change(&c)
		if _, err := New(c); err == nil || strings.Contains(err.Error(), "not a key") {
			t.Errorf("%+v: got %v", c.AppID, err)
		}
	}
}

func TestGraphQLURL(t *testing.T) {
	t.Parallel()
	for api, want := range map[string]string{
		DefaultAPIURL:                    "https://api.github.com/graphql",
		"https://ghe.example.com/api/v3": "https://ghe.example.com/api/graphql",
	} {
		if got := graphqlURL(api); got != want {
			t.Errorf("graphqlURL(%q) is %q", api, got)
		}
	}
}

// TestManifest: the app that is set up has what the integration needs, and the
// stand-in grants no more than that.
func TestManifest(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", "github", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Permissions map[string]string    `json:"default_permissions"`
		Events      []string             `json:"default_events"`
		Hook        struct{ URL string } `json:"hook_attributes"`
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	for _, event := range manifest.Events {
		if triggerOf(event) == nil {
			t.Errorf("%s is sent for nothing", event)
		}
	}
	if len(manifest.Events) != 6 || !strings.HasSuffix(manifest.Hook.URL, "/webhooks/github") {
		t.Errorf("%d events to %s", len(manifest.Events), manifest.Hook.URL)
	}
	w := newWorld(t)
	granted, err := w.Credentials.app.installation(w.repo().installation)
	w.must(err)
	if _, err := granted.call(t.Context(), http.MethodGet, "repos/"+widgets, nil, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(manifest.Permissions, w.LastToken()); diff != "" {
		t.Errorf("permissions (-manifest +stand-in):\n%s", diff)
	}
}
