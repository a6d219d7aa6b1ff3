package github

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"ship/integrations/github/githubtest"
	"ship/session"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	pr := s.perform(s.open()).PR
	if pr == nil || !pr.Draft || pr.Key == "" || !strings.HasPrefix(pr.URL, s.URL) {
		t.Fatalf("opened %+v", pr)
	}
	made := s.PullRequests(widgets)[1]
	if made.Head != s.state.Branch || made.Base != "main" || !bears(made.Body, statusMarker(s.state.ID)) {
		t.Errorf("made %+v", made)
	}
	s.ClosePull(widgets, pr.Number, false)
	if next := s.perform(s.open()).PR; next.Number == pr.Number {
		t.Error("a closed pull request was taken for the session's")
	}
}

func TestOpenWithoutDrafts(t *testing.T) {
	t.Parallel()
	s := newScene(t, func(o *githubtest.Options, _ *Config) { o.NoDrafts = true })
	if pr := s.perform(s.open()).PR; pr == nil || pr.Draft {
		t.Errorf("opened %+v", pr)
	}
}

// TestOpenRace: another owner opened it between our look and our attempt.
func TestOpenRace(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Inject(githubtest.Fault{On: "POST /repos/{owner}/{repo}/pulls", Do: func(*http.Request) {
		s.CreatePull(widgets, githubtest.Pull{User: s.BotLogin(), Title: "By another", Head: s.state.Branch})
	}})
	if pr := s.perform(s.open()).PR; pr == nil || len(s.PullRequests(widgets)) != 2 {
		t.Errorf("found %+v among %d", pr, len(s.PullRequests(widgets)))
	}
}

func TestOpenRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	nothing := s.open()
	nothing.State.Branch = "empty"
	_, err := s.Commit(widgets, "main", map[string]string{"x": "y"}, "More on main")
	s.must(err)
	// A branch that lies behind main has nothing to offer.
	w := s.work(t, nothing)
	if problem := w.notOpened(errors.New("no such refusal")); problem == nil {
		t.Error("another error was swallowed")
	}
	gone := s.open()
	gone.State.Base = "gone"
	for _, job := range []session.Job{gone, nothing} {
		_, err := s.Perform(t.Context(), job)
		var p *session.Problem
		if !errors.As(err, &p) || p.Again || p.Say == "" {
			t.Errorf("got %v", err)
		}
	}
}

func TestMarkReadyWithoutKey(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	job := s.markReady()
	job.State.PR.Key = ""
	for range 2 {
		if pr := s.perform(job).PR; pr == nil || pr.Draft || pr.Key == "" {
			t.Errorf("got %+v", pr)
		}
	}
	job.State.PR = nil
	if _, err := s.Perform(t.Context(), job); err == nil {
		t.Error("no pull request was marked ready")
	}
}
