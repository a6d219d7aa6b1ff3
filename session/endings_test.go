package session

import (
	"math"
	"strings"
	"testing"
	"time"
)

// brokeAgain fails the one effect of a kind in a way that is worth repeating.
func (s *story) brokeAgain(t *testing.T, k EffectKind, lost bool) {
	t.Helper()
	s.step(Event{Kind: Broke, Failed: &Failed{Effect: s.pending(t, k).ID, Say: "It broke.", Err: "broken", Again: true, Lost: lost}})
}

// lostInTheSecondLeg is a turn whose first run was completed, and whose box was
// lost in the next, before anything was pushed.
const lostInTheSecondLeg = `alice asks: fix it
	done admit
	done prepare
	bob asks: and the docs
	done admit
	done run too early
	broke run lost`

func TestWhatALostBoxKnewIsSaidAgain(t *testing.T) {
	t.Parallel()
	s := told(t, lostInTheSecondLeg)
	if o := s.state.Turn.Outcome; o != nil {
		t.Errorf("the next box is not asked for the first %d requests", o.Served)
	}
	s.tell(t, "done prepare")
	s.pending(t, Run)
}

func TestALostBoxIsNoSuccess(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"no box":           "\nbroke prepare",
		"lost again":       strings.Repeat("\ndone prepare\nbroke run lost", 3),
		"stopped meantime": "\nbob asks: stop\ndone admit\nbroke prepare",
	} {
		s := told(t, lostInTheSecondLeg+script)
		if o := s.state.Turn.Outcome; s.state.Turn.Stage != Ended || o.Ending == Completed {
			t.Errorf("%s: the turn is %s, %+v", name, s.state.Turn.Stage, o)
		}
	}
}

// TestWhatIsLostBeforeThePushIsDoneAgain: nobody has seen it, and nobody can get
// it back. What was stopped or failed is not begun again for that.
func TestWhatIsLostBeforeThePushIsDoneAgain(t *testing.T) {
	t.Parallel()
	const done = "\ndone prepare\ndone run\nbroke publish lost"
	s := told(t, "alice asks: fix it\ndone admit"+done)
	if s.pending(t, Prepare); s.state.Turn.Outcome != nil {
		t.Errorf("what was lost is kept: %+v", s.state.Turn.Outcome)
	}
	s.tell(t, "done prepare")
	s.pending(t, Run)
	for name, script := range map[string]string{
		"again and again": strings.Repeat(done, 4),
		"stopped":         "\ndone prepare\nbob asks: stop\ndone admit\ndone run stopped\nbroke publish lost",
		"failed":          "\ndone prepare\ndone run stalled\nbroke publish lost",
	} {
		s := told(t, "alice asks: fix it\ndone admit"+script)
		if o := s.state.Turn.Outcome; s.state.Turn.Stage != Ended || o.Ending != Crashed {
			t.Errorf("%s: the turn is %s, %+v", name, s.state.Turn.Stage, o)
		}
	}
}

func TestABoxLostInItsMakingIsMadeAnew(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: fix it\ndone admit")
	s.brokeAgain(t, Prepare, true)
	if e := s.pending(t, Prepare); e.Attempts != 1 {
		t.Errorf("%d attempts", e.Attempts)
	}
}

func TestAStoppedTurnsWorkIsPushedWithPatience(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: fix it\ndone admit\ndone prepare\nbob asks: stop\ndone admit\ndone run stopped")
	s.brokeAgain(t, Publish, false)
	if e := s.pending(t, Publish); e.Attempts != 1 {
		t.Errorf("%d attempts", e.Attempts)
	}
}

func TestWhoWaitedIsToldThatNothingComes(t *testing.T) {
	t.Parallel()
	const waiting = "alice asks: fix it\ndone admit on a pull request\ndone prepare\ndone run\nbob asks: and the docs\ndone admit on a pull request\n"
	for name, script := range map[string]string{
		"stop":   waiting + "carol asks: stop\ndone admit on a pull request",
		"closed": waiting + "closed",
	} {
		s := told(t, script)
		if e := s.pending(t, Say); e.Ref != "comment 2" || len(s.state.Waiting) > 0 {
			t.Errorf("%s: %d wait, and %+v", name, len(s.state.Waiting), e)
		}
	}
}

func TestAStoppedTurnIsNotMarkedReady(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: finish\ndone admit on a pull request\ndone prepare\ndone run\nbob asks: stop\ndone admit on a pull request\ndone publish")
	if _, err := s.find(MarkReady); err == nil {
		t.Error("somebody said stop, and it is marked ready")
	}
}

func TestWhatATurnCannotTakeInWaits(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: fix it\ndone admit on a pull request\ndone prepare\nbob asks: finish\ndone admit on a pull request")
	if len(s.state.Waiting) != 1 || s.state.Waiting[0].Verb != Finish {
		t.Errorf("a turn that does not finish took it in: %+v", s.state.Turn.Requests)
	}
	s = told(t, "alice asks: fix it\ndone admit\ndone prepare")
	small := Request{ID: "x", Thread: Thread{"github", "issue"}, By: Person{Login: "bob"}, Verb: Instruct, Text: "think", Model: "small", At: s.now}
	s.step(Event{Kind: Ordered, Request: &small})
	if len(s.state.Waiting) != 1 || s.state.Turn.Model != "acme/large" {
		t.Errorf("the model changed in the middle of a run to %s", s.state.Turn.Model)
	}
}

func TestTheOperatorsRetryKnowsTheThread(t *testing.T) {
	t.Parallel()
	s := newStory()
	r := Request{ID: "c", Thread: Thread{"github", "issue"}, By: Person{Login: "alice"}, Verb: Instruct}
	s.step(Event{Kind: Asked, Request: &r})
	a := admission(s.pending(t, Admit), "")
	a.Context = "the issue"
	s.step(Event{Kind: Done, Performed: &Performed{Effect: s.pending(t, Admit).ID, Admission: a}})
	s.tell(t, "done prepare\ndone run crashed\ndone publish nothing")
	s.settled(t)
	r.ID, r.Verb = "o", Retry
	s.step(Event{Kind: Ordered, Request: &r})
	if s.state.Turns != 2 || s.state.Turn.Context != "the issue" {
		t.Errorf("turn %d is about %q", s.state.Turns, s.state.Turn.Context)
	}
}

func TestWhoWasLetInIsRefusedAloud(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: help\ndone admit stranger\ndone say\nalice asks: help\ndone admit")
	s.settled(t)
	s.tell(t, "alice asks: help\ndone admit stranger")
	if e := s.pending(t, Say); e.Text != "You may not." {
		t.Errorf("told %q", e.Text)
	}
}

func TestABudgetIsAnAmount(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"NaN", "Inf", "-Inf", "-1", "0", "much"} {
		s := newStory()
		s.policy.MaxBudgetUSD = 0 // no limit
		s.tell(t, "alice asks: budget "+text+"\ndone admit")
		if s.state.Budget != 0 {
			t.Errorf("%s became a budget of %v", text, s.state.Budget)
		}
	}
}

func TestALowerLimitHoldsForOldBudgets(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: budget 20\ndone admit")
	s.policy.MaxBudgetUSD = 10
	s.tell(t, "alice asks: fix it\ndone admit")
	if got := s.state.Turn.Budget; math.Abs(got-10) > 1e-9 {
		t.Errorf("the turn may spend %v", got)
	}
}

func TestASecondBoxDoesNotHideTheCost(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: fix it\ndone admit\ndone prepare")
	s.step(Event{Kind: Moved, Progress: &Progress{Doing: "reading", Usage: Usage{Calls: 7, USD: 2}}})
	s.tell(t, "broke run lost\nmoved starting a box\nbroke prepare")
	if got := s.state.Turn.Outcome.Usage.Calls; got != 7 {
		t.Errorf("the turn made %d calls", got)
	}
}

func TestThePlanStaysUntilThereIsAnother(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: fix it\ndone admit\ndone prepare")
	s.step(Event{Kind: Moved, Progress: &Progress{Doing: "reading", Todos: []Todo{{Text: "Oil them", Status: "in_progress"}}}})
	s.tell(t, "alice asks: and oil them\ndone admit\nmoved thinking\ndone run")
	if got := ViewOf(s.state).Todos; len(got) != 1 {
		t.Errorf("the plan is %+v", got)
	}
}

func TestUnsavedProgressIsWaitedFor(t *testing.T) {
	t.Parallel()
	c := &coordinator{Engine: &Engine{Policy: testPolicy()}, dirty: true, saved: time.Now()}
	c.jobs = newJobs(c)
	c.state.Pending = []Effect{{ID: "1", Kind: Report, By: "plat", Due: time.Now().Add(-time.Second)}}
	if d := c.untilTick(); d < saveEvery/2 {
		t.Errorf("looks again after %s, when nothing may begin yet", d)
	}
}
