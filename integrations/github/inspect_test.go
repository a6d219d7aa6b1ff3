package github

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/integrations/github/githubtest"
)

func (w *world) inspector(change func(*Config)) *Inspector {
	w.t.Helper()
	c := Config{AppID: w.AppID(), PrivateKey: w.PrivateKey(), APIURL: w.APIURL(), WebURL: w.URL, Transport: w.transport}
	if change != nil {
		change(&c)
	}
	i, err := NewInspector(c)
	w.must(err)
	return i
}

func TestInspector(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.inspector(nil)
	about, at, err := i.About(t.Context())
	w.must(err)
	needs, err := Needed()
	w.must(err)
	if diff := cmp.Diff(About{Slug: "ship", URL: w.URL + "/apps/ship", Permissions: needs.Permissions, Events: needs.Events}, about); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if time.Since(at).Abs() > time.Minute {
		t.Errorf("GitHub's time is %s", at)
	}
	w.SetHook(githubtest.Hook{URL: "https://ship.example.com/webhooks/github", ContentType: "form", Insecure: true})
	hook, err := i.Hook(t.Context())
	w.must(err)
	if hook != (Hook{URL: "https://ship.example.com/webhooks/github", ContentType: "form", Insecure: true}) {
		t.Errorf("%+v", hook)
	}
}

func TestInspectorCountsInstallations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.InstallationID("acme")
	w.Suspend("umbrella", true)
	w.SetAppPermission("acme", "checks", "read")
	for n := range 105 { // so that there is a second page
		w.InstallationID("org" + strings.Repeat("x", n))
	}
	i := w.inspector(nil)
	all, err := i.Installations(t.Context())
	w.must(err)
	if len(all) != 107 || all[0].ID != acme || all[0].Account != "acme" || all[0].Suspended || !all[1].Suspended {
		t.Fatalf("%d installations, first %+v", len(all), all[:2])
	}
	needs, err := Needed()
	w.must(err)
	if diff := cmp.Diff([]string{"checks: write"}, needs.Lacking(all[0].Permissions)); diff != "" {
		t.Errorf("lacking (-want +got):\n%s", diff)
	}
	if n, err := i.Repositories(t.Context(), acme); err != nil || n != 1 {
		t.Errorf("%d repositories, %v", n, err)
	}
	if _, err := i.Repositories(t.Context(), all[1].ID); err == nil || !strings.Contains(err.Error(), "answered 403 when asked for a token") {
		t.Errorf("suspended: %v", err)
	}
}

// TestInspectorIsRefused: whose key it is, and what time it is, are told apart
// from everything else.
func TestInspectorIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, at, err := w.inspector(func(c *Config) { c.AppID = 7 }).About(t.Context()); !errors.Is(err, ErrKey) || at.IsZero() {
		t.Errorf("another app: %v at %s", err, at)
	}
	then := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w.Inject(githubtest.Fault{On: "GET /app", Status: 502, Header: http.Header{"Date": {then.Format(http.TimeFormat)}}})
	if _, at, err := w.inspector(nil).About(t.Context()); err == nil || errors.Is(err, ErrKey) || !at.Equal(then) {
		t.Errorf("broken: %v at %s", err, at)
	}
	if _, at, err := w.inspector(func(c *Config) { c.APIURL = "http://127.0.0.1:1" }).About(t.Context()); err == nil || strings.Contains(err.Error(), "/app") || !at.IsZero() {
		t.Errorf("nobody there: %v at %s", err, at)
	}
	w.Inject(githubtest.PrimaryLimit("GET /app/hook/config", time.Now().Add(time.Hour)))
	if _, err := w.inspector(nil).Hook(t.Context()); err == nil {
		t.Error("limited: no error")
	}
}
