package github

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/integrations/github/githubtest"
)

// TestOneManifest: what the set-up sends is the file that people read.
func TestOneManifest(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", "github", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(raw), string(manifestJSON)); diff != "" {
		t.Errorf("deploy/github/manifest.json and the one that is embedded differ (-deploy +embedded):\n%s", diff)
	}
	sent, err := Registration{Name: "ship", PublicURL: placeholder, RedirectURL: placeholder + "/setup/github/created"}.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(sent, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is sent differs (-file +sent):\n%s", diff)
	}
}

// TestNeeded: every event that something follows from is asked for, and no
// other.
func TestNeeded(t *testing.T) {
	t.Parallel()
	needs, err := Needed()
	if err != nil {
		t.Fatal(err)
	}
	handled := []string{"issue_comment", "pull_request_review_comment", "pull_request_review", "issues", "check_run", "pull_request"}
	for _, event := range append(slices.Clone(handled), needs.Events...) {
		if triggerOf(event) == nil || !slices.Contains(needs.Events, event) {
			t.Errorf("%s: handled %t, asked for %t", event, triggerOf(event) != nil, slices.Contains(needs.Events, event))
		}
	}
	if needs.Permissions["contents"] != "write" || len(needs.Permissions) != 5 {
		t.Errorf("permissions: %v", needs.Permissions)
	}
}

func TestManifestIsFilledIn(t *testing.T) {
	t.Parallel()
	r, err := Registration{Name: "ship-acme", Org: "acme", PublicURL: "https://ship.example.com/sub/", RedirectURL: "http://127.0.0.1:1/created"}.Check()
	if err != nil {
		t.Fatal(err)
	}
	sent, err := r.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"https://ship.example.com/sub/webhooks/github"`, `"name":"ship-acme"`, `"redirect_url":"http://127.0.0.1:1/created"`, `"url":"https://ship.example.com/sub"`} {
		if !strings.Contains(string(sent), want) {
			t.Errorf("%s is not in %s", want, sent)
		}
	}
	if strings.Contains(string(sent), "SHIP_HOST") {
		t.Errorf("a placeholder is left: %s", sent)
	}
	if got := r.Page("a b"); got != "https://github.com/organizations/acme/settings/apps/new?state=a+b" {
		t.Errorf("page: %s", got)
	}
	r.Org = ""
	if got := r.Page("s"); got != "https://github.com/settings/apps/new?state=s" {
		t.Errorf("page: %s", got)
	}
}

func TestRegistrationIsChecked(t *testing.T) {
	t.Parallel()
	good := Registration{Name: "ship", PublicURL: "https://ship.example.com"}
	for name, change := range map[string]func(*Registration){
		"no address":     func(r *Registration) { r.PublicURL = "" },
		"no scheme":      func(r *Registration) { r.PublicURL = "ship.example.com" },
		"other scheme":   func(r *Registration) { r.PublicURL = "ftp://ship.example.com" },
		"with password":  func(r *Registration) { r.PublicURL = "https://u:p@ship.example.com" },
		"with query":     func(r *Registration) { r.PublicURL = "https://ship.example.com/?a=b" },
		"no name":        func(r *Registration) { r.Name = "" },
		"long name":      func(r *Registration) { r.Name = strings.Repeat("x", 35) },
		"path as org":    func(r *Registration) { r.Org = "../evil" },
		"relative api":   func(r *Registration) { r.APIURL = "api" },
		"web is no page": func(r *Registration) { r.WebURL = "github.com" },
	} {
		r := good
		change(&r)
		if _, err := r.Check(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := good.Check(); err != nil {
		t.Error(err)
	}
}

// register posts a manifest as a browser would, and returns where GitHub sends
// the browser.
func register(t *testing.T, r Registration, state string) url.Values {
	t.Helper()
	manifest, err := r.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.PostForm(r.Page(state), url.Values{"manifest": {string(manifest)}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		said, _ := io.ReadAll(resp.Body)
		t.Fatalf("%d: %s", resp.StatusCode, said)
	}
	back, err := resp.Location()
	if err != nil {
		t.Fatal(err)
	}
	return back.Query()
}

func TestConvert(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, err := Registration{
		Name: "Ship Acme", PublicURL: "https://ship.example.com", RedirectURL: "http://127.0.0.1:1/created",
		APIURL: w.APIURL(), WebURL: w.URL, Transport: w.transport,
	}.Check()
	w.must(err)
	back := register(t, r, "the state")
	if back.Get("state") != "the state" {
		t.Errorf("state %q", back.Get("state"))
	}
	code := back.Get("code")
	const route = "POST /app-manifests/{code}/conversions"
	w.Inject(githubtest.Fault{On: route, Status: 502})
	if _, err := r.Convert(t.Context(), code); err == nil || strings.Contains(err.Error(), code) {
		t.Errorf("an answer 502: %v", err)
	}
	app, err := r.Convert(t.Context(), code)
	w.must(err)
	if app.ID != w.AppID() || app.Slug != "ship-acme" || app.InstallURL() != w.URL+"/apps/ship-acme/installations/new" {
		t.Errorf("the app: %d %s %s", app.ID, app.Slug, app.InstallURL())
	}
	if app.PrivateKey.Reveal() != w.PrivateKey() || app.WebhookSecret.Reveal() != w.WebhookSecret() {
		t.Error("the secrets are others")
	}
	for _, bad := range []string{code, "unknown", "", "../../app", strings.Repeat("x", 201)} {
		if _, err := r.Convert(t.Context(), bad); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

// TestConvertRefusesHalf: an app without its secrets is of no use.
func TestConvertRefusesHalf(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		`{}`, `{"id":1,"slug":"ship","html_url":"https://x","pem":"-----BEGIN RSA PRIVATE KEY-----"}`,
		`{"id":1,"slug":"ship","html_url":"https://x","webhook_secret":"topsecret"}`, `not json`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, answer)
		}))
		r := Registration{APIURL: server.URL, Transport: server.Client().Transport}
		if _, err := r.Convert(t.Context(), "code"); err == nil || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%s: %v", answer, err)
		}
		server.Close()
		if _, err := r.Convert(t.Context(), "thecode"); err == nil || strings.Contains(err.Error(), "thecode") {
			t.Errorf("nobody there: %v", err)
		}
	}
}
