package github

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ship/integrations/github/githubtest"
	"ship/sandbox/lifecycle"
	"ship/session"
)

const guestID = session.ID("ln.0f8fad5b-d9cb-469f-a165-70867728950e")

// newGuest is a session that began on another platform and has come as far as
// its pull request.
func newGuest(t *testing.T) *scene {
	t.Helper()
	s := newScene(t)
	s.state = session.State{
		ID: guestID, Repo: s.repo().session(), Base: "main", Title: "The frobnicator wobbles",
		Branch:  "ship/the-frobnicator-wobbles-ln-0f8fad5b-d9cb-469f-a165-70867728950e",
		Origin:  &session.Origin{Name: "ENG-42", URL: "https://linear.app/acme/issue/ENG-42"},
		Threads: []session.Voice{{Thread: session.Thread{Platform: "linear", Key: "o/a/i"}, Talks: true}},
		Turn:    &session.Turn{N: 1, Stage: session.Running, Started: time.Now()},
	}
	s.sha = s.branch(s.state.Branch)
	s.state.PR = s.perform(s.open()).PR
	s.state.Head, s.pull = s.sha, s.state.PR.Number
	s.thread = s.on(s.pull, true)
	return s
}

// unmark takes the marker out of the pull request's description, as a person
// may.
func (s *scene) unmark() { s.EditPull(widgets, s.pull, "All new words.") }

func TestGuestOpens(t *testing.T) {
	t.Parallel()
	s := newGuest(t)
	body := s.PullRequests(widgets)[1].Body
	if !bears(body, statusMarker(guestID)) || strings.Contains(body, "Closes #") {
		t.Errorf("described as %q", body)
	}
	if again := s.perform(s.open()).PR; *again != *s.state.PR {
		t.Errorf("opened %+v, then %+v", s.state.PR, again)
	}
}

// TestGuestIsFound: a command on its pull request goes to the session, which
// admits it as any other, with or without its marker.
func TestGuestIsFound(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*scene){
		"by its marker": func(*scene) {}, "by its branch": (*scene).unmark,
		"in spite of another's marker": func(s *scene) { s.EditPull(widgets, s.pull, statusMarker("ln.another")+"\nText") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newGuest(t)
			change(s)
			if a := s.ask(s.thread, by("alice"), session.State{ID: s.thread.id()}); a.Forward != guestID || a.Refusal != "" {
				t.Errorf("not forwarded: %+v", a)
			}
			a := s.ask(s.thread, by("alice"), s.state)
			if a.Forward != "" || a.Refusal != "" || a.Talks || a.Branch != s.state.Branch || a.PR == nil || a.PR.Number != s.pull || a.Head != s.sha || a.Title != "" {
				t.Errorf("at home: %+v", a)
			}
			if a := s.ask(s.thread, by("mallory"), s.state); !a.Stranger || a.PR != nil {
				t.Errorf("a stranger: %+v", a)
			}
			elsewhere := s.state
			elsewhere.Repo = repo{installation: 1, id: 2, owner: "acme", name: "gadgets"}.session()
			if a := s.ask(s.thread, by("alice"), elsewhere); a.Refusal == "" || strings.Contains(a.Refusal, "gadgets") || a.PR != nil {
				t.Errorf("a session of another repository: %+v", a)
			}
		})
	}
}

// TestGuestIsSteered goes all the way from a comment on its pull request to the
// turn that heard of it: each effect that follows is performed, twice.
func TestGuestIsSteered(t *testing.T) {
	t.Parallel()
	s := newGuest(t)
	policy := session.Policy{
		Model: "m/m", Models: []string{"m/m"}, TurnTimeout: time.Hour, Boxes: lifecycle.Policy{IdleDestroy: time.Hour},
		Pace: func(string, time.Duration) session.Pace { return session.Pace{Every: time.Second} },
	}
	d := s.IssueComment(widgets, s.pull, "alice", "/ship use blue").Sign(secret)
	got, err := s.Receive(t.Context(), d.Header, d.Body)
	s.must(err)
	asked := got.Deliveries[0]
	there := session.Step(session.State{ID: asked.Session}, asked.Event, policy)
	there = s.carryOut(there, policy)
	if there.Forward != guestID || len(there.Pending) != 1 || there.Pending[0].Kind != session.Forward {
		t.Fatalf("the pull request's own session: %+v", there)
	}
	forwarded := session.Event{Kind: session.Asked, At: time.Now(), Request: there.Pending[0].Request}
	here := s.carryOut(session.Step(s.state, forwarded, policy), policy)
	if n := len(here.Turn.Requests); n != 1 || here.Turn.Requests[0].Text != "use blue" || here.Turn.Requests[0].By.Login != "alice" {
		t.Errorf("the turn was asked %+v", here.Turn.Requests)
	}
	if len(here.Threads) != 2 || here.Threads[1].Thread != s.thread.session() || here.Threads[1].Ref == "" || here.Title != s.state.Title {
		t.Errorf("it speaks in %+v", here.Threads)
	}
	if eyes := s.Reactions(widgets, s.pull); !slices.Equal(eyes, []string{"comment 1: ship[bot] eyes"}) {
		t.Errorf("reactions %q", eyes)
	}
	if said := s.Comments(widgets, s.pull); len(said) != 2 || !bears(said[1].Body, statusMarker(guestID)) {
		t.Errorf("comments %+v", said)
	}
}

// carryOut performs what is decided for GitHub until nothing is left of it.
func (s *scene) carryOut(state session.State, p session.Policy) session.State {
	s.t.Helper()
	next := func(e session.Effect) bool { return e.By == Platform }
	for i := slices.IndexFunc(state.Pending, next); i >= 0; i = slices.IndexFunc(state.Pending, next) {
		job := session.Job{Effect: state.Pending[i], State: state}
		s.perform(job)
		job.Repeat = true
		done := s.perform(job)
		state = session.Step(state, session.Event{Kind: session.Done, At: time.Now(), Performed: &done}, p)
	}
	return state
}

// TestGuestIsToldOfTheEnd: a pull request that is closed is its own, unless it
// only looks like it.
func TestGuestIsToldOfTheEnd(t *testing.T) {
	t.Parallel()
	s := newGuest(t)
	fork, err := s.Fork(widgets, "mallory")
	s.must(err)
	forked := s.CreatePull(widgets, githubtest.Pull{User: "mallory", Title: "Mine", Head: s.state.Branch, HeadRepo: fork})
	closed := func(number int) []session.Delivery {
		d := s.PullClosed(widgets, number, "alice", true)
		d.Sign(secret)
		got, err := s.Receive(t.Context(), d.Header, d.Body)
		s.must(err)
		return got.Deliveries
	}
	if got := closed(forked); len(got) != 0 {
		t.Errorf("a fork's: %+v", got)
	}
	s.unmark()
	got := closed(s.pull)
	if len(got) != 1 || got[0].Session != guestID || got[0].Event.Kind != session.Closed || got[0].Event.PR != s.pull || got[0].Event.Key != s.state.PR.Key || got[0].Event.Closed != "merged" {
		t.Errorf("its own: %+v", got)
	}
}

// TestGuestSpeaksOnItsPullRequest: what it says there is as of a session that
// began there, however often.
func TestGuestSpeaksOnItsPullRequest(t *testing.T) {
	t.Parallel()
	s := newGuest(t)
	s.state.Threads = append(s.state.Threads, session.Voice{Thread: s.thread.session()})
	for range 2 {
		s.perform(session.Job{Effect: effect(session.Report, s.thread), State: s.state, Repeat: true})
	}
	if got := s.Comments(widgets, s.pull); len(got) != 1 || !bears(got[0].Body, statusMarker(guestID)) {
		t.Errorf("status: %+v", got)
	}
	s.perform(s.checkJob(s.sha, ""))
	run := s.Checks(widgets, s.sha)[0]
	if run.ExternalID != string(guestID) || run.DetailsURL != s.state.PR.URL {
		t.Errorf("check run: %+v", run)
	}
	d := s.CheckAction(widgets, run.ID, "alice", actionStop).Sign(secret)
	got, err := s.Receive(t.Context(), d.Header, d.Body)
	s.must(err)
	if len(got.Deliveries) != 1 || got.Deliveries[0].Session != guestID || got.Deliveries[0].Event.Request.Thread != s.thread.session() {
		t.Errorf("a button: %+v", got)
	}
	ready := session.Job{Effect: session.Effect{ID: "ready", Kind: session.MarkReady, Thread: &s.state.Threads[0].Thread}, State: s.state}
	if pr := s.perform(ready).PR; pr.Draft {
		t.Errorf("marked ready: %+v", pr)
	}
	s.Comment(widgets, s.pull, s.BotLogin(), statusMarker(guestID)+"\nby a frozen owner")
	s.twin()
	s.state.Check = &session.CheckState{SHA: s.sha}
	s.state.Repo.Key = strings.Replace(s.state.Repo.Key, "widgets", "old-name", 1)
	s.perform(session.Job{Effect: effect(session.Sweep, s.thread), State: s.state})
	if got := s.Comments(widgets, s.pull); len(got) != 1 {
		t.Errorf("swept: %+v", got)
	}
	if runs := s.Checks(widgets, s.sha); len(runs) != 2 || runs[1].Conclusion != neutral {
		t.Errorf("swept: %+v", runs)
	}
}

// twin is the check run that a frozen owner makes after another was made.
func (s *scene) twin() {
	s.t.Helper()
	w := s.work(s.t, s.checkJob(s.sha, ""))
	_, err := w.createCheck(s.t.Context(), s.sha, w.checkBody(*w.effect.Check))
	s.must(err)
}

// TestGuestsCheckIsSweptWithItself: a session that nobody speaks with on
// GitHub has no other sweep there.
func TestGuestsCheckIsSweptWithItself(t *testing.T) {
	t.Parallel()
	s := newGuest(t)
	first := s.perform(s.checkJob(s.sha, "success"))
	s.twin()
	again := s.checkJob(s.sha, "success")
	again.Repeat, again.Effect.Check.Ref = true, first.Ref
	for range 2 {
		if done := s.perform(again); done.Ref != first.Ref {
			t.Errorf("moved to another check run: %+v", done)
		}
		var got []string
		for _, run := range s.Checks(widgets, s.sha) {
			got = append(got, run.Conclusion)
		}
		if !slices.Equal(got, []string{"success", neutral}) {
			t.Errorf("check runs %q", got)
		}
	}
}

// TestGuestsDetails: before there is a pull request, what it is about.
func TestGuestsDetails(t *testing.T) {
	t.Parallel()
	s := newGuest(t)
	s.state.PR = nil
	if got := s.work(t, s.checkJob(s.sha, "")).details(); got != s.state.Origin.URL {
		t.Errorf("details %q", got)
	}
}

// TestQuestionIsNeutral: an agent that asks has neither failed nor finished,
// and no button answers.
func TestQuestionIsNeutral(t *testing.T) {
	t.Parallel()
	s := newGuest(t)
	s.perform(s.checkJob(s.sha, ""))
	job := s.checkJob(s.sha, neutral)
	job.State.Turn = &session.Turn{N: 1, Stage: session.Ended, Started: time.Now(), Outcome: &session.Outcome{
		Ending: session.Completed, Question: &session.Question{Text: "Blue or green?", Choices: []session.Choice{{Value: "blue"}, {Value: "green"}}},
	}}
	for range 2 {
		s.perform(job)
		run := s.Checks(widgets, s.sha)[0]
		if run.Status != "completed" || run.Conclusion != neutral || len(run.Actions) != 0 || run.Title == "" {
			t.Errorf("check run %+v", run)
		}
	}
	// The answer starts another turn, on the same commit.
	s.perform(s.checkJob(s.sha, ""))
	if run := s.Checks(widgets, s.sha)[0]; run.Status != "in_progress" || len(run.Actions) != 1 || run.Actions[0].Identifier != actionStop {
		t.Errorf("check run %+v", run)
	}
}

// TestTalkingEffects: what is decided for conversations is harmless here.
func TestTalkingEffects(t *testing.T) {
	t.Parallel()
	s := newGuest(t)
	ask := session.Job{Effect: effect(session.Ask, s.thread), State: s.state}
	ask.Effect.Text, ask.Effect.Since = "Which one, @alice?", time.Now()
	ask.Effect.Choices = []session.Choice{{Label: "Widgets", Value: "acme/widgets"}, {Value: "acme/`gadgets`"}}
	for range 2 {
		s.perform(session.Job{Effect: effect(session.Begin, s.thread), State: s.state})
		s.perform(session.Job{Effect: effect(session.Answer, s.thread), State: s.state})
		s.perform(ask)
		ask.Repeat = true
	}
	got := s.Comments(widgets, s.pull)
	if len(got) != 1 || strings.Contains(got[0].Body, "@alice") || !strings.HasSuffix(got[0].Body, "\n\n- `acme/widgets` Widgets\n- `acme/gadgets`") {
		t.Errorf("said %+v", got)
	}
}

// TestAcknowledgeKnowsTheVerbOnly: where to react is in the effect itself.
func TestAcknowledgeKnowsTheVerbOnly(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	job := s.acknowledge()
	job.Effect.Request = &session.Request{Verb: session.Stop}
	s.perform(job)
	if got := s.Reactions(widgets, s.issue); !slices.Equal(got, []string{"comment 1: ship[bot] eyes"}) {
		t.Errorf("reactions %q", got)
	}
	job.Effect.Thread = nil
	_, err := s.Perform(t.Context(), job)
	if p := problem(t, err); p.Again {
		t.Errorf("without a thread: %+v", p)
	}
}
