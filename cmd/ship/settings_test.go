package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/config"
)

var updateDocs = flag.Bool("update-docs", false, "write the generated part of docs/settings.md anew")

const settingsDoc = "../../docs/settings.md"

func settingsKeys(t *testing.T) []config.Key {
	t.Helper()
	keys, err := config.Keys(new(Settings))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestSettingsDoc(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- settings: made by go test ./cmd/ship -run TestSettingsDoc -update-docs -->\n", "<!-- /settings -->"
	b, err := os.ReadFile(settingsDoc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has lost its marks", settingsDoc)
	}
	want := before + begin + "\n" + config.Table(settingsKeys(t)) + "\n" + end + after
	if *updateDocs {
		if err := os.WriteFile(settingsDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("%s is not up to date; run go test ./cmd/ship -run TestSettingsDoc -update-docs (-want +got):\n%s", settingsDoc, diff)
	}
}

func TestEverySettingIsExplained(t *testing.T) {
	t.Parallel()
	for _, k := range settingsKeys(t) {
		if k.Doc == "" || !strings.HasSuffix(k.Doc, ".") {
			t.Errorf("%s: %q", k.Path, k.Doc)
		}
	}
}

func TestReadSettings(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ship.yaml")
	text := `
public_url: https://ship.example.com
redis: {url: "redis://:hunter2@redis:6379"}
github: {app_id: 7, private_key: "-----BEGIN RSA PRIVATE KEY-----", webhook_secret: [hunter2, hunter3]}
agent: {model: openai/gpt-5}
models:
  openai: {base_url: "https://api.openai.com/v1", models: {gpt-5: {input: 1.25, output: 10, cached: 0.125}}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := readSettings("", []string{
		"SHIP_CONFIG=" + file, "SHIP_MODELS_OPENAI_API_KEY=hunter4", "SHIP_LIMITS_TURN_TIMEOUT=10m", "SHIP_SANDBOX_LOCAL_MEMORY=1GiB",
		"SHIP_GITHUB_WEBHOOK_SECRET=a,b", "HOME=/home/me", "XDG_STATE_HOME=/state",
	})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(s.Redis.URL.Reveal(), s.GitHub.AppID, s.GitHub.Config().WebhookSecrets, s.Models["openai"].APIKey.Reveal(),
		s.Limits.TurnTimeout, s.Sandbox.Local.Memory, s.DataDir, s.modelNames(), s.Listen, s.Limits.BudgetUSD)
	want := fmt.Sprint("redis://:hunter2@redis:6379", 7, []string{"a", "b"}, "hunter4",
		10*time.Minute, 1<<30, "/state/ship", []string{"openai/gpt-5"}, "127.0.0.1:8080", 5)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if s, err := readSettings("", nil); err != nil || s.Sandbox.Provider != "local" || s.Sandbox.IdleDestroy != time.Hour {
		t.Errorf("without anything: %+v, %v", s, err)
	}
}

func TestSettingsProblems(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{
		"SHIP_REDIS_URL=http://:hunter2@x":    "redis.url: is not the address of a Redis; write it like redis://",
		"SHIP_AGENT_MODEL=x/y":                "agent.model: is not among models; add it there",
		"SHIP_MODELS_OPENAI_API_KEY=hunter2":  "models.openai.base_url: is missing",
		"SHIP_SANDBOX_IDLE_PAUSE=2h":          "sandbox.idle_pause: is not shorter than idle_destroy",
		"SHIP_SANDBOX_MAX_LIFE=1h":            "sandbox.max_life: is too short for a turn of limits.turn_timeout, 1h0m0s, and 30m0s to finish it; set it to more than 1h30m0s",
		"SHIP_LIMITS_BUDGET_USD=500":          "limits.max_budget_usd: is below budget_usd",
		"SHIP_SANDBOX_LOCAL_ISOLATION=docker": "use bubblewrap or none",
		"SHIP_ACCESS_PERMISSION=read":         "use write or admin",
		"SHIP_GITHUB_WEBHOOK_SECRTE=hunter2":  "did you mean SHIP_GITHUB_WEBHOOK_SECRET?",
		"SHIP_GITHUB_WEBHOOK_SECRET=hunter2":  "github.app_id is missing",
		"SHIP_PUBLIC_URL=https://u:hunter2@x": "public_url: holds a user or a password",
		"SHIP_LIMITS_TURN_TIMEOUT=1":          "write it like 90s, 5m or 1h",
	} {
		_, err := readSettings("", []string{env})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", env, err, want)
		}
	}
}

// TestBoxPolicy: the plan at E2B ends boxes, if a turn has room in it.
func TestBoxPolicy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		environ []string
		limit   time.Duration
	}{
		{nil, 0},
		{[]string{"SHIP_SANDBOX_MAX_LIFE=12h"}, 12 * time.Hour},
		{[]string{"SHIP_SANDBOX_PROVIDER=e2b"}, 0},
		{[]string{"SHIP_SANDBOX_PROVIDER=e2b", "SHIP_SANDBOX_E2B_MAX_LIFE=24h"}, 24 * time.Hour},
		{[]string{"SHIP_SANDBOX_PROVIDER=e2b", "SHIP_SANDBOX_E2B_MAX_LIFE=24h", "SHIP_SANDBOX_MAX_LIFE=3h"}, 3 * time.Hour},
	} {
		s, err := readSettings("", c.environ)
		if err != nil || s.boxPolicy().Cap != c.limit {
			t.Errorf("%v: boxes end after %s, %v, want %s", c.environ, s.boxPolicy().Cap, err, c.limit)
		}
		if err := s.boxPolicy().Validate(); err != nil {
			t.Errorf("%v: %v", c.environ, err)
		}
	}
}

// TestPreviewsHaveTheirOwnHost: what a repository shows never comes from where
// ship is.
func TestPreviewsHaveTheirOwnHost(t *testing.T) {
	t.Parallel()
	const public = "SHIP_PUBLIC_URL=https://ship.example.com"
	for _, c := range []struct {
		env  []string
		want string // in the error; empty: there is none
	}{
		{[]string{public, "SHIP_PREVIEW_URL=https://preview.example.net"}, ""},
		{[]string{"SHIP_PREVIEW_URL=https://preview.example.net/"}, ""},
		{[]string{public, "SHIP_PREVIEW_URL=https://ship.example.com"}, "preview.url: has the host of public_url"},
		{[]string{public, "SHIP_PREVIEW_URL=http://SHIP.example.com.:8443"}, "preview.url: has the host of public_url"},
		{[]string{public, "SHIP_PREVIEW_URL=https://preview.example.net/x"}, "preview.url: is more than a host"},
		{[]string{public, "SHIP_PREVIEW_URL=https://preview.example.net", "SHIP_SANDBOX_LOCAL_ISOLATION=none"}, "needs boxes that are isolated"},
	} {
		_, err := readSettings("", c.env)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, want %q", c.env, err, c.want)
		}
	}
}

func TestDefaultDataDir(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  []string
		uid  int
		want string
	}{
		{[]string{"HOME=/home/me"}, 1000, "/home/me/.local/state/ship"},
		{[]string{"HOME=/home/me", "XDG_STATE_HOME=/s"}, 1000, "/s/ship"},
		{[]string{"HOME=/root"}, 0, "/var/lib/ship"},
		{[]string{"HOME=relative"}, 1000, "/var/lib/ship"},
		{[]string{"HOME=/a", "HOME=/b"}, 1000, "/b/.local/state/ship"},
		{nil, 1000, "/var/lib/ship"},
	} {
		if got := defaultDataDir(c.env, c.uid); got != c.want {
			t.Errorf("defaultDataDir(%q, %d) = %s, want %s", c.env, c.uid, got, c.want)
		}
	}
}
