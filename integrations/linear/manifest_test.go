package linear

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOneManifest: what the set-up sends is the file that people read.
func TestOneManifest(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", "linear", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(raw), string(manifestJSON)); diff != "" {
		t.Errorf("deploy/linear/manifest.json and the one that is embedded differ (-deploy +embedded):\n%s", diff)
	}
	sent, err := Registration{Name: "ship", PublicURL: placeholder}.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(unmarshal(t, raw), unmarshal(t, sent)); diff != "" {
		t.Errorf("what is sent differs (-file +sent):\n%s", diff)
	}
}

func unmarshal(t *testing.T, text []byte) (out map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestManifestHasTheShapeOfLinears: the same members of the same types as in
// the manifest that is known to be taken.
func TestManifestHasTheShapeOfLinears(t *testing.T) {
	t.Parallel()
	known, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "data", "manifests", "linear.json"))
	if err != nil {
		t.Skip("the manifest to compare with is not here")
	}
	if diff := cmp.Diff(shape(unmarshal(t, known)), shape(unmarshal(t, manifestJSON))); diff != "" {
		t.Errorf("another shape (-known +ours):\n%s", diff)
	}
}

// shape leaves of texts only that they are some, but for those from a fixed
// list.
func shape(part any) any {
	switch v := part.(type) {
	case string:
		if strings.Contains(v, "://") || strings.Contains(v, " ") {
			return "text"
		}
	case []any:
		for i := range v {
			v[i] = shape(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = shape(v[key])
		}
	}
	return part
}

// TestManifestSubscribes to all that the Receiver looks at and can be asked
// for, and to nothing that Linear's schema does not have.
func TestManifestSubscribes(t *testing.T) {
	t.Parallel()
	var m struct {
		Webhook struct {
			Types []string `json:"resourceTypes"`
		} `json:"webhook"`
	}
	if err := json.Unmarshal(manifestJSON, &m); err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{eventSession, eventNotification, eventPermission} {
		if !slices.Contains(m.Webhook.Types, event) {
			t.Errorf("%s is not asked for", event)
		}
	}
	schema, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "data", "linear-schema.graphql"))
	if err != nil {
		t.Skip("Linear's schema is not here")
	}
	enum := regexp.MustCompile(`(?s)enum WebhookResourceType \{(.*?)\}`).FindSubmatch(schema)
	if enum == nil {
		t.Fatal("the schema has no WebhookResourceType")
	}
	for _, event := range m.Webhook.Types {
		if !slices.Contains(strings.Fields(string(enum[1])), event) {
			t.Errorf("Linear has no %s", event)
		}
	}
}

func TestPageIsFilledIn(t *testing.T) {
	t.Parallel()
	r, err := Registration{Name: "Ship & Co", Developer: `A "team"`, PublicURL: "https://ship.example.com/sub/", Public: true}.Check()
	if err != nil {
		t.Fatal(err)
	}
	page, err := r.Page()
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(page)
	if err != nil || u.Host != "linear.app" || u.Path != "/settings/api/applications/new" {
		t.Fatalf("%s, %v", page, err)
	}
	m := unmarshal(t, []byte(u.Query().Get("manifest")))
	want := map[string]any{
		"schemaVersion": "1.0.0", "distribution": "public",
		"display":   map[string]any{"description": "Turns issues that are delegated to it into draft pull requests"},
		"developer": map[string]any{"name": `A "team"`},
		"oauth": map[string]any{
			"client_name": "Ship & Co", "client_uri": "https://ship.example.com/sub",
			"redirect_uris": []any{"https://ship.example.com/sub" + callbackPath}, "grant_types": []any{GrantCode, GrantClient},
		},
		"webhook": map[string]any{
			"enabled": true, "url": "https://ship.example.com/sub" + HookPath,
			"resourceTypes": []any{"AgentSessionEvent", "AppUserNotification", "PermissionChange", "OAuthAuthorization"},
		},
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRegistrationIsChecked(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Registration{
		"one letter": {Name: "s", PublicURL: "https://ship.example.com"}, "long name": {Name: strings.Repeat("x", 81), PublicURL: "https://ship.example.com"},
		"Linear's name": {Name: "My Linear bot", PublicURL: "https://ship.example.com"}, "an address": {Name: "http://x", PublicURL: "https://ship.example.com"},
		"no address": {}, "password": {PublicURL: "https://u:hunter2@ship.example.com"},
	} {
		if _, err := r.Check(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	r, err := Registration{PublicURL: "https://ship.example.com/"}.Check()
	if err != nil || r.Name != "ship" || r.PublicURL != "https://ship.example.com" {
		t.Errorf("%+v, %v", r, err)
	}
}
