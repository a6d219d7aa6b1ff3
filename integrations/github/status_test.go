package github

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ship/integrations/github/githubtest"
	"ship/session"
)

// TestStickyComment: one comment, whatever people do to it.
func TestStickyComment(t *testing.T) {
	t.Parallel()
	marker := func(s *scene) string { return statusMarker(s.state.ID) }
	tests := []struct {
		name string
		// first tells whether there is a report before.
		first  bool
		change func(s *scene, id int64)
		// others is how many comments there are besides.
		others int
	}{
		{name: "edited", first: true, change: func(s *scene, id int64) { s.EditComment(widgets, id, "vandalised") }},
		{name: "deleted", first: true, change: func(s *scene, id int64) { s.DeleteComment(widgets, id) }},
		{name: "ref lost", first: true, change: func(s *scene, _ int64) { s.state.Threads[0].Ref = "" }},
		{name: "ref of another platform", first: true, change: func(s *scene, _ int64) { s.state.Threads[0].Ref = "1700000000.0001" }},
		{name: "marker pasted by somebody on page two", others: 121, change: func(s *scene, _ int64) {
			for i := range 120 {
				s.Comment(widgets, s.issue, "bob", fmt.Sprintf("remark %d", i))
			}
			s.Comment(widgets, s.issue, "mallory", marker(s)+"\nnot the status")
		}},
		{name: "ours on page two, behind a forged one", first: true, others: 121, change: func(s *scene, id int64) {
			s.DeleteComment(widgets, id)
			s.Comment(widgets, s.issue, "mallory", marker(s)+"\nnot the status")
			for i := range 120 {
				s.Comment(widgets, s.issue, "bob", fmt.Sprintf("remark %d", i))
			}
			s.Comment(widgets, s.issue, s.BotLogin(), marker(s)+"\nold status")
		}},
		{name: "quoted by ourselves", others: 1, change: func(s *scene, _ int64) {
			s.Comment(widgets, s.issue, s.BotLogin(), "> "+marker(s)+"\n\nquoted")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			var id int64
			if tt.first {
				s.state.Threads[0].Ref = s.perform(s.report()).Ref
				id = s.Comments(widgets, s.issue)[0].ID
			}
			tt.change(s, id)
			for range 2 {
				s.state.Threads[0].Ref = s.perform(s.report()).Ref
			}
			mine := slices.DeleteFunc(s.Comments(widgets, s.issue), func(c githubtest.Comment) bool {
				return c.Author != s.BotLogin() || !bears(c.Body, marker(s))
			})
			if len(mine) != 1 || fmt.Sprint(mine[0].ID) != s.state.Threads[0].Ref {
				t.Errorf("%d status comments, ref %s", len(mine), s.state.Threads[0].Ref)
			}
			if got := len(s.Comments(widgets, s.issue)) - 1; got != tt.others {
				t.Errorf("%d other comments, want %d", got, tt.others)
			}
		})
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	first := s.perform(s.report())
	s.Comment(widgets, s.issue, "mallory", statusMarker(s.state.ID)+"\nforged")
	s.Comment(widgets, s.issue, s.BotLogin(), statusMarker(s.state.ID)+"\nby a frozen owner")
	s.perform(s.say())
	s.Comment(widgets, s.issue, s.BotLogin(), sayMarker(s.say().Effect.ID)+"\nby a frozen owner")
	s.Comment(widgets, s.issue, s.BotLogin(), sayMarker("another")+"\nsomething else")
	s.perform(s.check())
	job := session.Job{Effect: effect(session.Sweep, s.thread), State: s.state}
	for range 2 {
		s.perform(job)
		var left []string
		for _, c := range s.Comments(widgets, s.issue) {
			left = append(left, c.Author+" "+strings.SplitN(c.Body, "\n", 2)[0])
		}
		want := []string{
			s.BotLogin() + " " + statusMarker(s.state.ID), "mallory " + statusMarker(s.state.ID),
			s.BotLogin() + " " + sayMarker(job.Effect.ID), s.BotLogin() + " " + sayMarker("another"),
		}
		want[2] = s.BotLogin() + " " + sayMarker(s.say().Effect.ID)
		if !slices.Equal(left, want) {
			t.Errorf("left %q", left)
		}
	}
	if fmt.Sprint(s.Comments(widgets, s.issue)[0].ID) != first.Ref {
		t.Error("the older status comment is gone")
	}
}

// TestSweepInTheDiff: replies are doubled there too.
func TestSweepInTheDiff(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	job := s.reply()
	s.perform(job)
	s.ReviewComment(widgets, s.pull, githubtest.ReviewComment{User: s.BotLogin(), Body: sayMarker(job.Effect.ID) + "\nDone."})
	s.perform(session.Job{Effect: effect(session.Sweep, s.on(s.pull, true)), State: s.state})
	if got := s.ReviewComments(widgets, s.pull); len(got) != 2 || got[1].InReplyTo == 0 {
		t.Errorf("left %+v", got)
	}
}

func TestSweepSettlesDoubledChecks(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	first := s.perform(s.checkJob(s.sha, ""))
	// A frozen owner that did not see the first one makes another.
	w := s.work(t, s.checkJob(s.sha, ""))
	if _, err := w.createCheck(t.Context(), s.sha, w.checkBody(*w.effect.Check)); err != nil {
		t.Fatal(err)
	}
	s.state.Check = &session.CheckState{SHA: s.sha, Ref: first.Ref}
	s.perform(session.Job{Effect: effect(session.Sweep, s.thread), State: s.state})
	runs := s.Checks(widgets, s.sha)
	if len(runs) != 2 || runs[0].Status != "in_progress" || runs[1].Conclusion != "neutral" {
		t.Errorf("check runs %+v", runs)
	}
}

// TestSweepOfAnOlderHead: the twin stands on a commit that is the head no longer.
func TestSweepOfAnOlderHead(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.perform(s.checkJob(s.sha, "neutral"))
	w := s.work(t, s.checkJob(s.sha, ""))
	if _, err := w.createCheck(t.Context(), s.sha, w.checkBody(*w.effect.Check)); err != nil {
		t.Fatal(err)
	}
	job := session.Job{Effect: effect(session.Sweep, s.thread), State: s.state}
	job.Effect.Check, job.State.Check = &session.CheckState{SHA: s.sha}, &session.CheckState{SHA: strings.Repeat("a", 40)}
	for range 2 {
		s.perform(job)
		for _, run := range s.Checks(widgets, s.sha) {
			if run.Conclusion != "neutral" {
				t.Errorf("check run %+v", run)
			}
		}
	}
}

func (s *scene) work(t *testing.T, job session.Job) *work {
	t.Helper()
	w, err := s.begin(job)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestCheck(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	running := s.checkJob(s.sha, "")
	s.perform(running)
	run := s.Checks(widgets, s.sha)[0]
	if run.Status != "in_progress" || run.ExternalID != string(s.state.ID) || run.Actions[0].Identifier != actionStop {
		t.Errorf("running: %+v", run)
	}
	done := s.checkJob(s.sha, "success")
	done.State.PR = &session.PullRequest{Number: 2, Draft: true, URL: "https://example.com/pull/2"}
	done.Effect.Check.Summary = strings.Repeat("x", 100_000) + " @alice"
	s.perform(done)
	run = s.Checks(widgets, s.sha)[0]
	if run.Conclusion != "success" || len(run.Actions) != 2 || run.DetailsURL != "https://example.com/pull/2" || len(run.Summary) > maxSummary {
		t.Errorf("done: %s with %d actions, %d bytes, details %s", run.Conclusion, len(run.Actions), len(run.Summary), run.DetailsURL)
	}
	again := s.checkJob(s.sha, "")
	again.Effect.Check.Ref = fmt.Sprint(run.ID)
	s.perform(again)
	if run = s.Checks(widgets, s.sha)[0]; run.Status != "in_progress" || run.Conclusion != "" {
		t.Errorf("again: %+v", run)
	}
}
