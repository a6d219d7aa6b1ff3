package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"ship/integrations/github/githubtest"
	"ship/session"
)

// scene is a session with a branch pushed and a draft pull request: all that
// any effect may need.
type scene struct {
	*world
	thread thread
	state  session.State
	sha    string
	pull   int
}

func newScene(t *testing.T, options ...func(*githubtest.Options, *Config)) *scene {
	t.Helper()
	w := newWorld(t, options...)
	s := &scene{world: w, thread: w.on(w.issue, false)}
	s.state = w.state(s.thread)
	s.state.Branch = "ship/wobble-" + strings.ReplaceAll(string(s.state.ID), ".", "-")
	s.state.Turn = &session.Turn{N: 1, Stage: session.Running, Started: time.Now()}
	s.sha = w.branch(s.state.Branch)
	w.branch("feature")
	s.pull = w.CreatePull(widgets, githubtest.Pull{User: "alice", Title: "Feature", Head: "feature", Draft: true})
	return s
}

// asked has a request arrive and returns its ref.
func (s *scene) asked(d githubtest.Delivery) string {
	s.t.Helper()
	d.Sign(secret)
	got, err := s.Receive(s.t.Context(), d.Header, d.Body)
	s.must(err)
	return got.Deliveries[0].Event.Request.Ref
}

// TestTwice performs every effect twice, and again with the answer lost after
// the fact, and again after a refusal: the world looks the same each time.
func TestTwice(t *testing.T) {
	t.Parallel()
	const base = "/repos/{owner}/{repo}"
	tests := []struct {
		name  string
		route string // what the effect writes by
		job   func(*scene) session.Job
		count func(*scene) int
	}{
		{"say", "POST " + base + "/issues/{number}/comments", (*scene).say,
			func(s *scene) int { return len(s.Comments(widgets, s.issue)) }},
		{"reply", "POST " + base + "/pulls/{number}/comments/{id}/replies", (*scene).reply,
			func(s *scene) int { return len(s.ReviewComments(widgets, s.pull)) - 1 }},
		{"report", "POST " + base + "/issues/{number}/comments", (*scene).report,
			func(s *scene) int { return len(s.Comments(widgets, s.issue)) }},
		{"check", "POST " + base + "/check-runs", (*scene).check,
			func(s *scene) int { return len(s.Checks(widgets, s.sha)) }},
		{"open", "POST " + base + "/pulls", (*scene).open,
			func(s *scene) int { return len(s.PullRequests(widgets)) - 1 }},
		{"mark ready", "POST /graphql", (*scene).markReady,
			func(s *scene) int {
				return len(slices.DeleteFunc(s.PullRequests(widgets), func(p githubtest.PullRequest) bool { return p.Draft }))
			}},
		{"acknowledge", "POST " + base + "/issues/comments/{id}/reactions", (*scene).acknowledge,
			func(s *scene) int { return len(s.Reactions(widgets, s.issue)) }},
		{"acknowledge a review", "POST /graphql", (*scene).acknowledgeReview,
			func(s *scene) int { return len(s.Reactions(widgets, s.pull)) }},
	}
	for _, tt := range tests {
		for name, fault := range map[string]*githubtest.Fault{
			"twice": nil, "answer lost": {Lost: true}, "refused before": {Status: 502}, "lost twice": {Lost: true, Times: 2},
		} {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				job := tt.job(s)
				if fault != nil {
					f := *fault
					f.On = tt.route
					s.Inject(f)
				}
				s.untilDone(job)
				if got := tt.count(s); got != 1 {
					t.Errorf("there are %d, want 1", got)
				}
			})
		}
	}
}

// untilDone performs a job as the coordinator does: again after each failure
// that is worth it, and then once more after it worked.
func (s *scene) untilDone(job session.Job) {
	s.t.Helper()
	for range 4 {
		_, err := s.Perform(s.t.Context(), job)
		job.Repeat = true
		if err == nil {
			s.perform(job)
			return
		}
		var p *session.Problem
		if !errors.As(err, &p) || !p.Again || p.Say == "" {
			s.t.Fatalf("not worth repeating: %v", err)
		}
	}
	s.t.Fatal("still failing")
}

func (s *scene) say() session.Job {
	e := effect(session.Say, s.thread)
	e.Text, e.Since = "Something to say.", time.Now()
	return session.Job{Effect: e, State: s.state}
}

func (s *scene) reply() session.Job {
	e := effect(session.Reply, s.world.on(s.pull, true))
	e.Text = "Done."
	e.Ref = s.asked(s.ReviewComment(widgets, s.pull, githubtest.ReviewComment{User: "alice", Body: "/ship rename", Path: "fix.txt", Line: 1, Hunk: "@@"}))
	return session.Job{Effect: e, State: s.state}
}

func (s *scene) report() session.Job {
	return session.Job{Effect: effect(session.Report, s.thread), State: s.state}
}

func (s *scene) check() session.Job { return s.checkJob(s.sha, "success") }

// checkJob is a check of the scene's own session.
func (s *scene) checkJob(sha, conclusion string) session.Job {
	job := s.world.checkJob(sha, conclusion)
	job.State = s.state
	return job
}

func (s *scene) open() session.Job {
	return session.Job{Effect: session.Effect{ID: "open-1", Kind: session.Open}, State: s.state}
}

func (s *scene) markReady() session.Job {
	state := s.state
	for _, p := range s.PullRequests(widgets) {
		state.PR = &session.PullRequest{Number: p.Number, Key: p.NodeID, Draft: true}
	}
	return session.Job{Effect: session.Effect{ID: "ready-1", Kind: session.MarkReady}, State: state}
}

func (s *scene) acknowledge() session.Job {
	e := effect(session.Acknowledge, s.thread)
	e.Ref = s.asked(s.IssueComment(widgets, s.issue, "alice", "/ship"))
	return session.Job{Effect: e, State: s.state}
}

func (s *scene) acknowledgeReview() session.Job {
	e := effect(session.Acknowledge, s.on(s.pull, true))
	e.Ref = s.asked(s.Review(widgets, s.pull, "alice", "commented", "/ship"))
	return session.Job{Effect: e, State: s.state}
}

func TestSayIsHarmless(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	job := s.say()
	job.Effect.Text = "Thank @alice. " + statusMarker("gh.1.1")
	s.perform(job)
	body := s.Comments(widgets, s.issue)[0].Body
	if strings.Contains(body, "@alice") || strings.Count(body, "<!--") != 1 {
		t.Errorf("posted %q", body)
	}
}

// TestReplyToADeletedThread is answered in the conversation instead.
func TestReplyToADeletedThread(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	job := s.reply()
	job.Effect.Ref = ref{kind: refInline, id: 999, root: 999}.String()
	s.perform(job)
	job.Repeat = true
	s.perform(job)
	if got := len(s.Comments(widgets, s.pull)); got != 1 {
		t.Errorf("%d comments", got)
	}
}

func TestAcknowledge(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	onIssue, onPull := s.thread, s.on(s.pull, true)
	inline := s.asked(s.ReviewComment(widgets, s.pull, githubtest.ReviewComment{User: "alice", Body: "/ship x", Path: "fix.txt", Line: 1}))
	for _, a := range []struct {
		on  thread
		ref string
	}{
		{onIssue, s.asked(s.Label(widgets, s.issue, "alice", "ship"))},
		{onPull, inline},
		{onPull, ref{kind: refCheck, id: 9}.String()},
	} {
		e := effect(session.Acknowledge, a.on)
		e.Ref = a.ref
		s.perform(session.Job{Effect: e, State: s.state})
	}
	got := append(s.Reactions(widgets, s.issue), s.Reactions(widgets, s.pull)...)
	want := []string{"issue: ship[bot] eyes", "review comment 1: ship[bot] eyes"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestAcknowledgeOfWhatIsGone(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	job := s.acknowledge()
	s.DeleteComment(widgets, s.Comments(widgets, s.issue)[0].ID)
	s.perform(job)
}

// TestForeignKeys: what is not ours is refused with a sentence, not a panic.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	th := session.Thread{Platform: "slack", Key: "T1/C1/1.2"}
	for _, job := range []session.Job{
		{Effect: session.Effect{Kind: session.Say, Thread: &th}},
		{Effect: session.Effect{Kind: session.Say}},
		{Effect: session.Effect{Kind: session.Open}},
		{Effect: session.Effect{Kind: session.Check}, State: session.State{Repo: w.repo().session()}},
		{Effect: effect(session.Run, w.on(w.issue, false))},
	} {
		_, err := w.Perform(t.Context(), job)
		var p *session.Problem
		if !errors.As(err, &p) || p.Again || p.Say == "" {
			t.Errorf("%s: got %v", job.Effect.Kind, err)
		}
	}
}

func TestCauseOfACancelledContext(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const route = "POST /repos/{owner}/{repo}/issues/{number}/comments"
	ctx, cancel := context.WithCancelCause(t.Context())
	s.Inject(githubtest.Fault{On: route, Hang: true, Do: func(*http.Request) { cancel(session.ErrShutdown) }})
	if _, err := s.Perform(ctx, s.say()); !errors.Is(err, session.ErrShutdown) {
		t.Errorf("got %v", err)
	}
}

func TestCreatesKeepTheirDistance(t *testing.T) {
	t.Parallel()
	s := newScene(t, func(_ *githubtest.Options, c *Config) { c.CreateInterval = 50 * time.Millisecond })
	start := time.Now()
	for i := range 3 {
		job := s.say()
		job.Effect.ID = fmt.Sprintf("say-%d", i)
		s.perform(job)
	}
	if took := time.Since(start); took < 100*time.Millisecond {
		t.Errorf("three comments in %v", took)
	}
}
