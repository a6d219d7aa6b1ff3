package linear

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/config"
	"ship/integrations/linear/lineartest"
)

func newInspection(t *testing.T) (*lineartest.Server, Settings, *http.Transport) {
	t.Helper()
	s, err := lineartest.New(lineartest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, Settings{
		ClientID: s.ClientID(), ClientSecret: config.NewSecret(s.ClientSecret()), APIURL: s.APIURL(), TokenURL: s.TokenURL(),
	}, &http.Transport{DisableKeepAlives: true}
}

func TestInspector(t *testing.T) {
	t.Parallel()
	s, settings, transport := newInspection(t)
	i := NewInspector(settings, transport)
	if err := i.Known(t.Context()); err != nil {
		t.Error(err)
	}
	v, err := i.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"app:assignable", "app:mentionable", "read", "write"}, v.Scopes); diff != "" {
		t.Error(diff)
	}
	who, err := v.Viewer(t.Context())
	if err != nil || who.ID != s.AppUserID() || who.Organization != s.OrganizationID() || !who.App || who.Name != "ship" || who.URLKey != "acme" {
		t.Errorf("%+v, %v", who, err)
	}
	limits, err := v.Limits(t.Context())
	if err != nil || len(limits) != 2 || limits[0].Kind != "requests" || limits[0].Allowed != 5000 || limits[0].Left >= 5000 {
		t.Errorf("%+v, %v", limits, err)
	}
}

// TestInspectorIsRefused: each way, and none of them tells a secret.
func TestInspectorIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*lineartest.Server, *Settings)
		is     error
		says   string
	}{
		"wrong secret": {func(_ *lineartest.Server, s *Settings) { s.ClientSecret = config.NewSecret("hunter2") }, ErrCredentials, "401"},
		"not enabled": {func(s *lineartest.Server, _ *Settings) {
			s.Inject(lineartest.Fault{On: "token", Times: -1, Status: 400, Body: `{"error":"unauthorized_client","error_description":"hunter2"}`})
		}, ErrNotGranted, "unauthorized_client"},
		"nobody there": {func(_ *lineartest.Server, s *Settings) { s.TokenURL = "http://127.0.0.1:1/oauth/token" }, nil, "cannot be reached"},
		"down": {func(s *lineartest.Server, _ *Settings) {
			s.Inject(lineartest.Fault{On: "token", Times: -1, Status: 503})
		}, nil, "503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, settings, transport := newInspection(t)
			c.change(s, &settings)
			i := NewInspector(settings, transport)
			_, err := i.Enter(t.Context())
			for _, err := range []error{err, i.Known(t.Context())} {
				if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

func TestVisitIsRefused(t *testing.T) {
	t.Parallel()
	s, settings, transport := newInspection(t)
	v, err := NewInspector(settings, transport).Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for want, f := range map[string]lineartest.Fault{
		"linear answered 502":                      {Status: 502, Body: "hunter2"},
		"linear answered 400 RATELIMITED":          lineartest.Limited("", time.Now().Add(time.Hour)),
		"linear refused the question INPUT_ERROR":  lineartest.Failing("", 200, "INPUT_ERROR", "hunter2"),
		"linear refused the question":              lineartest.Failing("", 200, "hunter2", "hunter2"),
		"linear answered 401 AUTHENTICATION_ERROR": lineartest.Failing("", 401, "AUTHENTICATION_ERROR", "hunter2"),
		"linear answered 302":                      {Status: 302, Header: http.Header{"Location": {"http://127.0.0.1:1/hunter2"}}},
	} {
		s.Inject(f)
		if _, err := v.Viewer(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		s.Inject(f)
		if _, err := v.Limits(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestScopes: however Linear writes them.
func TestScopes(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		`{"access_token":"t","scope":"write read"}`:               {"read", "write"},
		`{"access_token":"t","scope":"write,read"}`:               {"read", "write"},
		`{"access_token":"t","scope":["write","read"]}`:           {"read", "write"},
		`{"access_token":"t","scope":["app:assignable read", 7]}`: {"app:assignable", "read"},
		`{"access_token":"t","scope":{"a":1}}`:                    nil,
		`{"access_token":"t","scope":null}`:                       nil,
		`{"access_token":"t"}`:                                    nil,
	} {
		g, err := granted([]byte(body))
		if diff := cmp.Diff(want, g.Scopes); diff != "" || err != nil {
			t.Errorf("%s: %v %s", body, err, diff)
		}
	}
	if got := LackingScopes([]string{"read", "write", "more"}); !cmp.Equal(got, []string{"app:assignable", "app:mentionable"}) {
		t.Errorf("lacking: %v", got)
	}
	if got := LackingScopes(scopesOf(scopes)); len(got) != 0 {
		t.Errorf("lacking: %v", got)
	}
}
