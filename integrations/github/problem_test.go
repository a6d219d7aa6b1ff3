package github

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"ship/integrations/github/githubtest"
	"ship/session"
)

const createComment = "POST /repos/{owner}/{repo}/issues/{number}/comments"

func TestProblems(t *testing.T) {
	t.Parallel()
	answer := func(status int, message string, header http.Header) githubtest.Fault {
		return githubtest.Fault{On: createComment, Status: status, Body: `{"message":"` + message + `"}`, Header: header}
	}
	tests := []struct {
		name     string
		arrange  func(*scene)
		again    bool
		min, max time.Duration
		say      string
	}{
		{name: "secondary limit", arrange: func(s *scene) { s.Inject(githubtest.SecondaryLimit(createComment, 7*time.Second)) },
			again: true, min: 7 * time.Second, max: 7 * time.Second, say: "slow down"},
		{name: "secondary limit without a time", arrange: func(s *scene) {
			f := githubtest.SecondaryLimit(createComment, 0)
			f.Header = nil
			s.Inject(f)
		}, again: true, min: time.Minute, max: time.Minute, say: "slow down"},
		{name: "primary limit", arrange: func(s *scene) { s.Inject(githubtest.PrimaryLimit(createComment, time.Now().Add(5*time.Minute))) },
			again: true, min: 4 * time.Minute, max: 5 * time.Minute, say: "slow down"},
		{name: "429", arrange: func(s *scene) { s.Inject(answer(429, "Too many", http.Header{"Retry-After": {"3"}})) },
			again: true, min: 3 * time.Second, max: 3 * time.Second, say: "slow down"},
		{name: "429 without a time", arrange: func(s *scene) { s.Inject(answer(429, "Too many", nil)) },
			again: true, min: time.Minute, max: time.Minute, say: "slow down"},
		{name: "500", arrange: func(s *scene) { s.Inject(answer(500, "Server Error", nil)) }, again: true, say: "could not be reached"},
		{name: "502 with HTML", arrange: func(s *scene) {
			s.Inject(githubtest.Fault{On: createComment, Status: 502, Body: "<html>Unicorn</html>"})
		}, again: true, say: "could not be reached"},
		{name: "connection lost", arrange: func(s *scene) { s.Inject(githubtest.Fault{On: createComment, Lost: true}) }, again: true, say: "could not be reached"},
		{name: "token revoked", arrange: func(s *scene) { s.perform(s.report()); s.ExpireTokens() }, again: true, say: "token"},
		{name: "permission missing", arrange: func(s *scene) {
			s.SetAppPermission("acme", "issues", "read")
			s.SetAppPermission("acme", "pull_requests", "read")
		}, say: "issues=write"},
		{name: "uninstalled", arrange: func(s *scene) { s.Uninstall(widgets) }, say: "installed on this repository"},
		{name: "suspended", arrange: func(s *scene) { s.Suspend("acme", true) }, say: "suspended"},
		{name: "installation gone", arrange: func(s *scene) {
			s.Inject(githubtest.Fault{On: "POST /app/installations/{installation_id}/access_tokens", Status: 404, Body: `{"message":"Not Found"}`})
		}, say: "Install the GitHub App"},
		{name: "token limited", arrange: func(s *scene) {
			s.Inject(githubtest.SecondaryLimit("POST /app/installations/{installation_id}/access_tokens", 9*time.Second))
		}, again: true, min: 9 * time.Second, max: 9 * time.Second, say: "slow down"},
		{name: "token server error", arrange: func(s *scene) {
			s.Inject(githubtest.Fault{On: "POST /app/installations/{installation_id}/access_tokens", Status: 503})
		}, again: true, say: "could not be reached"},
		{name: "locked", arrange: func(s *scene) { s.Inject(answer(403, "Unable to create comment because issue is locked.", nil)) }, say: "issue is locked"},
		{name: "refused", arrange: func(s *scene) { s.Inject(answer(422, "Validation `Failed` <!-- @x", nil)) }, say: "Validation Failed !-- x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tt.arrange(s)
			_, err := s.Perform(t.Context(), s.say())
			var p *session.Problem
			if !errors.As(err, &p) {
				t.Fatalf("got %v", err)
			}
			if p.Again != tt.again || p.After < tt.min || p.After > tt.max || !strings.Contains(p.Say, tt.say) {
				t.Errorf("again %t after %v: %q (%v)", p.Again, p.After, p.Say, p.Err)
			}
			if strings.Contains(err.Error(), "ghs_") || strings.Contains(err.Error(), "eyJ") {
				t.Errorf("a secret is in %q", err)
			}
			if tt.name == "token revoked" {
				s.perform(s.say())
			}
		})
	}
}

func TestWrongKey(t *testing.T) {
	t.Parallel()
	other, err := githubtest.New(githubtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	w := newWorld(t)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	wrong, err := New(Config{
		AppID: w.AppID(), PrivateKey: other.PrivateKey(), WebhookSecrets: []string{secret},
		APIURL: w.APIURL(), WebURL: w.URL, Transport: transport,
	})
	w.must(err)
	e := effect(session.Say, w.on(w.issue, false))
	e.Text = "x"
	_, err = wrong.Perform(t.Context(), session.Job{Effect: e})
	var p *session.Problem
	if !errors.As(err, &p) || p.Again || !strings.Contains(p.Say, "github.private_key") {
		t.Errorf("got %v", err)
	}
}

// TestTimeout: no answer in time is worth another try.
func TestTimeout(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.perform(s.say())
	s.Inject(githubtest.Fault{On: createComment, Hang: true})
	quick := s.Performer.app.config
	quick.Transport = transport{next: s.transport, logger: quick.Logger, timeout: 50 * time.Millisecond}
	app, err := newApp(quick)
	s.must(err)
	_, err = newPerformer(quick, newPeople(quick, app)).Perform(t.Context(), s.say())
	var p *session.Problem
	if !errors.As(err, &p) || !p.Again {
		t.Errorf("got %v", err)
	}
}

// TestGraphQLLimit: GraphQL says with 200 that there is a limit.
func TestGraphQLLimit(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]githubtest.Fault{
		"in the answer": {Status: 200, Body: `{"data":null,"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded for installation"}]}`},
		"by status":     githubtest.SecondaryLimit("", 5*time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			f.On = "POST /graphql"
			s.Inject(f)
			_, err := s.Perform(t.Context(), s.markReady())
			var p *session.Problem
			if !errors.As(err, &p) || !p.Again || p.After < time.Second {
				t.Errorf("got %#v", err)
			}
		})
	}
}

func TestGraphQLRefusals(t *testing.T) {
	t.Parallel()
	for message, again := range map[string]bool{
		"Something went wrong while executing your query.": true,
		"Pull request is in `clean` status":                false,
	} {
		s := newScene(t)
		s.Inject(githubtest.Fault{On: "POST /graphql", Status: 200, Body: `{"data":null,"errors":[{"message":"` + message + `"}]}`})
		_, err := s.Perform(t.Context(), s.markReady())
		var p *session.Problem
		if !errors.As(err, &p) || p.Again != again || strings.Contains(p.Say, "`clean`") {
			t.Errorf("%s: got %#v", message, err)
		}
	}
}

func TestGraphQLPermission(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.SetAppPermission("acme", "contents", "read")
	_, err := s.Perform(t.Context(), s.markReady())
	var p *session.Problem
	if !errors.As(err, &p) || p.Again || !strings.Contains(p.Say, "contents=write") {
		t.Errorf("got %v", err)
	}
}
