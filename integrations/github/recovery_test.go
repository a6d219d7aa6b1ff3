package github

import (
	"errors"
	"testing"
	"time"

	"ship/integrations/github/githubtest"
	"ship/session"
)

func TestRedeliver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	comment := func() githubtest.Delivery { return w.IssueComment(widgets, w.issue, "alice", "/ship") }
	now := time.Now()
	at := func(ago time.Duration) time.Time { return now.Add(-ago) }

	missed, onceMore, healed, young, tired, old, foreign := comment(), comment(), comment(), comment(), comment(), comment(), comment()
	w.Attempted(missed, at(time.Hour), 503)
	w.Attempted(onceMore, at(2*time.Hour), 502)
	w.Attempted(onceMore, at(time.Hour), 503)
	w.Attempted(healed, at(3*time.Hour), 503)
	w.Attempted(healed, at(2*time.Hour), 200)
	w.Attempted(young, at(time.Minute), 503)
	for i := range maxAttempts {
		w.Attempted(tired, at(time.Duration(40-i)*time.Hour), 503)
	}
	w.Attempted(old, at(80*time.Hour), 503)
	foreign.Header.Set("X-GitHub-Event", "workflow_run")
	w.Attempted(foreign, at(time.Hour), 503)
	for range 150 { // so that there is a second page
		w.Attempted(comment(), at(30*time.Minute), 200)
	}

	asked, err := w.Redeliver(t.Context(), now.Add(-30*24*time.Hour))
	w.must(err)
	want := map[string]bool{missed.GUID(): true, onceMore.GUID(): true}
	got := w.Redeliveries()
	if asked != len(want) || len(got) != len(want) {
		t.Errorf("asked for %d, GitHub heard %d", asked, len(got))
	}
	for _, d := range got {
		if !want[d.GUID()] {
			t.Errorf("asked for %s", d.GUID())
		}
	}
	if asked, err = w.Redeliver(t.Context(), now.Add(-45*time.Minute)); err != nil || asked != 0 {
		t.Errorf("since a while ago: %d, %v", asked, err)
	}
}

func TestRedeliverLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Inject(githubtest.SecondaryLimit("GET /app/hook/deliveries", 5*time.Second))
	_, err := w.Redeliver(t.Context(), time.Now().Add(-time.Hour))
	var p *session.Problem
	if !errors.As(err, &p) || !p.Again || p.After != 5*time.Second {
		t.Errorf("got %v", err)
	}
}
