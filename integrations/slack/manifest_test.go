package slack

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"ship/integrations/slack/slacktest"
)

// ways are the two in, by the files that describe them.
var ways = map[string]Registration{
	"manifest.http.json":   {Name: "ship", PublicURL: "https://SHIP_HOST"},
	"manifest.socket.json": {Name: "ship"},
}

func manifest(t *testing.T, r Registration) []byte {
	t.Helper()
	text, err := r.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestDeployedManifests: the files that people read are what the set-up sends.
func TestDeployedManifests(t *testing.T) {
	t.Parallel()
	for name, r := range ways {
		path := filepath.Join("..", "..", "deploy", "slack", name)
		made := manifest(t, r)
		if *rewrite {
			if err := os.WriteFile(path, made, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(kept), string(made)); diff != "" {
			t.Errorf("%s differs; go test ./integrations/slack -run TestDeployedManifests -update (-file +made):\n%s", name, diff)
		}
	}
}

// TestManifestsFitTheirSchemas: those that Slack publishes.
func TestManifestsFitTheirSchemas(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.0.0", "2.0.0"} {
		path := filepath.Join("..", "..", "..", "shared", "data", "webhooks", "slack", "manifest.schema."+version+".json")
		if _, err := os.Stat(path); err != nil {
			t.Skip("Slack's schemas of manifests are not here")
		}
		c := jsonschema.NewCompiler()
		c.UseRegexpEngine(patterns)
		schema, err := c.Compile(path)
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range ways {
			document, err := jsonschema.UnmarshalJSON(bytes.NewReader(manifest(t, r)))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(document); err != nil {
				t.Errorf("%s, schema %s: %v", name, version, err)
			}
		}
		if err := schema.Validate(map[string]any{"display_information": map[string]any{"name": strings.Repeat("x", 36)}}); err == nil {
			t.Errorf("schema %s finds nothing wrong with what is wrong", version)
		}
	}
}

// patterns understands what Go does. What it does not is for parts that we have
// none of: nothing matches that.
func patterns(text string) (jsonschema.Regexp, error) {
	if re, err := regexp.Compile(text); err == nil {
		return re, nil
	}
	return nothing(text), nil
}

type nothing string

func (nothing) MatchString(string) bool { return false }
func (n nothing) String() string        { return string(n) }

// TestManifestsHaveTheShapeOfKnownOnes: the same sections, but for what those
// do without.
func TestManifestsHaveTheShapeOfKnownOnes(t *testing.T) {
	t.Parallel()
	for name, r := range ways {
		known, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "data", "manifests", strings.Replace(name, "manifest", "slack", 1)))
		if err != nil {
			t.Skip("the manifests to compare with are not here")
		}
		its, ours := paths(t, known), paths(t, manifest(t, r))
		its = slices.DeleteFunc(its, func(p string) bool { return strings.HasPrefix(p, "oauth_config.redirect_urls") }) // nobody is redirected
		ours = slices.DeleteFunc(ours, func(p string) bool { return strings.HasPrefix(p, "features.shortcuts") })
		if diff := cmp.Diff(its, ours); diff != "" {
			t.Errorf("%s has another shape (-known +ours):\n%s", name, diff)
		}
	}
}

// paths are the places in a document that hold something, sorted, each once.
func paths(t *testing.T, text []byte) []string {
	t.Helper()
	var whole any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	var out []string
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				walk(strings.TrimPrefix(at+"."+key, "."), inner)
			}
		case []any:
			for _, inner := range v {
				walk(at+".*", inner)
			}
		default:
			out = append(out, at)
		}
	}
	walk("", whole)
	slices.Sort(out)
	return slices.Compact(out)
}

// madeApp is what of a manifest has to fit the rest of this package.
type madeApp struct {
	Display struct {
		Name string `json:"name"`
	} `json:"display_information"`
	Features struct {
		Bot struct {
			Name string `json:"display_name"`
		} `json:"bot_user"`
		Shortcuts []struct {
			Name     string `json:"name"`
			Type     string `json:"type"`
			Callback string `json:"callback_id"`
		} `json:"shortcuts"`
		Commands []struct {
			Command string `json:"command"`
			URL     string `json:"url"`
			Escape  bool   `json:"should_escape"`
		} `json:"slash_commands"`
	} `json:"features"`
	OAuth struct {
		Scopes struct {
			Bot []string `json:"bot"`
		} `json:"scopes"`
	} `json:"oauth_config"`
	Settings struct {
		Events struct {
			URL string   `json:"request_url"`
			Bot []string `json:"bot_events"`
		} `json:"event_subscriptions"`
		Interactivity struct {
			Enabled bool   `json:"is_enabled"`
			URL     string `json:"request_url"`
		} `json:"interactivity"`
		Socket bool `json:"socket_mode_enabled"`
	} `json:"settings"`
}

// TestPageIsFilledIn: what a browser hands to Slack's form.
func TestPageIsFilledIn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ address, hook string }{
		{"https://ship.example.com/sub/", "https://ship.example.com/sub/webhooks/slack"},
		{"", ""},
	} {
		r, err := Registration{Name: `Ship & "Co"`, PublicURL: tt.address}.Check()
		if err != nil {
			t.Fatal(err)
		}
		page, err := r.Page()
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(page)
		if err != nil || u.Host != "api.slack.com" || u.Path != "/apps" || u.Query().Get("new_app") != "1" || len(page) > 8000 || strings.Contains(page, "+") {
			t.Fatalf("%d: %s, %v", len(page), page, err)
		}
		var a madeApp
		if err := json.Unmarshal([]byte(u.Query().Get("manifest_json")), &a); err != nil {
			t.Fatal(err)
		}
		if a.Display.Name != `Ship & "Co"` || a.Features.Bot.Name != a.Display.Name {
			t.Errorf("it is called %q and %q", a.Display.Name, a.Features.Bot.Name)
		}
		if len(a.Features.Commands) != 1 || a.Features.Commands[0].Command != "/ship" || !a.Features.Commands[0].Escape {
			t.Errorf("commands: %+v", a.Features.Commands)
		}
		urls := []string{a.Features.Commands[0].URL, a.Settings.Events.URL, a.Settings.Interactivity.URL}
		if !slices.Equal(urls, []string{tt.hook, tt.hook, tt.hook}) || a.Settings.Socket != (tt.hook == "") || !a.Settings.Interactivity.Enabled {
			t.Errorf("it is delivered to %q, by sockets: %t", urls, a.Settings.Socket)
		}
	}
}

// TestManifestAsksForWhatIsUsed: the events and the shortcut that the Receiver
// reads, and the scopes that the stand-in wants for what is done.
func TestManifestAsksForWhatIsUsed(t *testing.T) {
	t.Parallel()
	var a madeApp
	if err := json.Unmarshal(manifest(t, ways["manifest.socket.json"]), &a); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slacktest.DefaultEvents(), a.Settings.Events.Bot); diff != "" {
		t.Errorf("events (-stand-in +manifest):\n%s", diff)
	}
	if diff := cmp.Diff(slacktest.DefaultScopes(), a.OAuth.Scopes.Bot); diff != "" {
		t.Errorf("scopes (-stand-in +manifest):\n%s", diff)
	}
	for _, event := range []string{eventMention, eventStopped, eventUninstalled, eventRevoked} {
		if !slices.Contains(a.Settings.Events.Bot, event) {
			t.Errorf("%s is not asked for", event)
		}
	}
	for _, kind := range []string{"channels", "groups", "im", "mpim"} {
		if !slices.Contains(a.Settings.Events.Bot, eventMessage+"."+kind) || !slices.Contains(a.OAuth.Scopes.Bot, kind+":history") {
			t.Errorf("messages of %s are not asked for", kind)
		}
	}
	if len(a.Features.Shortcuts) != 1 || a.Features.Shortcuts[0].Callback != callbackMessage || a.Features.Shortcuts[0].Type != "message" || a.Features.Shortcuts[0].Name != "Ship this" {
		t.Errorf("shortcuts: %+v", a.Features.Shortcuts)
	}
}

func TestRegistrationIsChecked(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Registration{
		"long name": {Name: strings.Repeat("x", 36)}, "Slack's name": {Name: "My Slack bot"},
		"password": {PublicURL: "https://u:hunter2@ship.example.com"}, "localhost": {PublicURL: "https://localhost:8080"},
	} {
		if _, err := r.Check(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, address := range []string{"", "https://ship.example.com/", "https://8.8.8.8:8443/ship"} {
		r, err := Registration{PublicURL: address}.Check()
		if err != nil || r.Name != "ship" || r.PublicURL != strings.TrimRight(address, "/") {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

func TestLackingScopes(t *testing.T) {
	t.Parallel()
	if got := LackingScopes(scopeNames()); len(got) != 0 {
		t.Errorf("lacking: %v", got)
	}
	lacking := LackingScopes(slices.DeleteFunc(scopeNames(), func(s string) bool { return s == "chat:write" || s == "files:read" }))
	if len(lacking) != 2 || lacking[0].Name != "chat:write" || !lacking[0].Needed || lacking[1].Name != "files:read" || lacking[1].Needed {
		t.Errorf("lacking: %+v", lacking)
	}
	for _, s := range Scopes() {
		if s.Without == "" {
			t.Errorf("%s: nobody is told what it is for", s.Name)
		}
	}
}

// TestManifestIsExplained: people are told what each scope and event is for.
func TestManifestIsExplained(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "slack.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(scopeNames(), botEvents()) {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/slack.md does not say what %s is for", name)
		}
	}
}
