package session

import (
	"strings"
	"testing"
	"time"

	"ship/sandbox/lifecycle"
)

// told plays a script and returns the story behind it.
func told(t *testing.T, script string) *story {
	t.Helper()
	s := newStory()
	s.tell(t, script)
	return s
}

func (s *story) tell(t *testing.T, script string) {
	t.Helper()
	for line := range strings.Lines(script) {
		if err := s.event(strings.TrimSpace(line)); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
}

// settled plays all reports, checks and reactions that are pending.
func (s *story) settled(t *testing.T) {
	t.Helper()
	for n := 0; ; n++ {
		kind := EffectKind("")
		for _, e := range s.state.Pending {
			switch e.Kind {
			case Report, Check, Acknowledge, Close, Say:
				kind = e.Kind
			}
		}
		if kind == "" {
			return
		}
		if n > 20 {
			t.Fatalf("no end of it: %+v", s.state.Pending)
		}
		s.tell(t, "done "+string(kind))
	}
}

const oneTurn = `alice asks: fix it
	done admit
	done prepare
	done run
	done publish
	done open`

// pending returns the one effect of a kind.
func (s *story) pending(t *testing.T, k EffectKind) Effect {
	t.Helper()
	e, err := s.find(k)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestAfterAMergeComesANewPullRequest(t *testing.T) {
	t.Parallel()
	s := told(t, oneTurn)
	s.settled(t)
	first := s.state.Branch
	s.step(Event{Kind: Closed, PR: 3})
	if s.state.Closed {
		t.Error("another pull request was closed, and this one is taken for it")
	}
	s.step(Event{Kind: Closed, PR: 8})
	s.tell(t, "done discard\nalice asks: and the docs\ndone admit")
	if s.state.PR != nil || s.state.Branch == first || !BranchOf(s.state.Branch, s.state.ID) {
		t.Errorf("pull request %+v, branch %s", s.state.PR, s.state.Branch)
	}
	s.tell(t, "done prepare\ndone run\ndone publish")
	s.pending(t, Open)
}

func TestAReopenedPullRequestGoesOn(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: fix it\ndone admit on a pull request\ndone prepare\ndone run\ndone publish")
	s.settled(t)
	s.tell(t, "closed\ndone discard\nalice asks: go on\ndone admit on a pull request")
	if s.state.PR == nil || s.state.Branch != "topic" || s.state.Closed {
		t.Errorf("pull request %+v, branch %s", s.state.PR, s.state.Branch)
	}
}

func TestClosingLetsTheBoxGo(t *testing.T) {
	t.Parallel()
	idle := told(t, oneTurn+"\nclosed")
	idle.pending(t, Discard)
	busy := told(t, "alice asks: fix it\ndone admit on a pull request\ndone prepare\nclosed")
	if _, err := busy.find(Discard); err == nil {
		t.Error("the box is destroyed before its work is pushed")
	}
	busy.tell(t, "done run stopped\ndone publish")
	busy.pending(t, Discard)
}

func TestABoxInUseIsNotDestroyed(t *testing.T) {
	t.Parallel()
	s := told(t, oneTurn)
	s.settled(t)
	s.tell(t, "wait 2h\nbroke tend again\nalice asks: more\ndone admit\ndone prepare")
	if e, err := s.find(Tend); err == nil {
		t.Errorf("still to be done in mid-turn: %+v", e)
	}
}

func TestStopDoesNotWaitForAnotherTry(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: fix it\ndone admit\nbroke prepare again\nalice asks: stop\ndone admit")
	if e := s.pending(t, Prepare); e.due().After(s.now) {
		t.Errorf("it is tried again in %s", e.due().Sub(s.now))
	}
}

func TestStopDropsWhatWaits(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: fix it\ndone admit\ndone prepare\ndone run\nalice asks: and the docs\ndone admit\ndone publish\ndone open")
	if len(s.state.Waiting) != 1 {
		t.Fatalf("%d wait", len(s.state.Waiting))
	}
	s.tell(t, "alice asks: stop\ndone admit")
	s.settled(t)
	if s.state.Turns != 1 || len(s.state.Waiting) != 0 {
		t.Errorf("turn %d, %d waiting", s.state.Turns, len(s.state.Waiting))
	}
}

func TestRetryAsksForAllOfIt(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: fix it\ndone admit\nbob asks: and the docs\ndone admit\ndone prepare\ndone run crashed\ndone publish\ndone open")
	s.settled(t)
	s.tell(t, "alice asks: retry\ndone admit")
	var texts, ids []string
	for _, r := range s.state.Turn.Requests {
		texts, ids = append(texts, r.Text), append(ids, r.ID)
	}
	if strings.Join(texts, ", ") != "fix it, and the docs" || ids[0] != "c3" || ids[1] != "c3.again1" {
		t.Errorf("the second turn was asked %q as %q", texts, ids)
	}
}

func TestRetryOfWhatWasForgotten(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: "+strings.Repeat("word ", 200)+"\ndone admit\ndone prepare\ndone run\ndone publish\ndone open")
	s.settled(t)
	if len(s.state.Turn.Requests) > 0 {
		t.Error("an idle session keeps a long request")
	}
	s.tell(t, "alice asks: retry\ndone admit")
	if e := s.pending(t, Say); s.state.Turns != 1 || !strings.Contains(e.Text, "write it again") {
		t.Errorf("turn %d, %q", s.state.Turns, e.Text)
	}
}

func TestTheClockStartsWithTheBox(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: fix it\ndone admit\nwait 3h\ndone prepare")
	if left := s.state.Turn.Deadline.Sub(s.now); left != s.policy.TurnTimeout {
		t.Errorf("%s are left after waiting for a place", left)
	}
	s.tell(t, "wait 10m\nbroke run lost\ndone prepare")
	if left := s.state.Turn.Deadline.Sub(s.now); left != s.policy.TurnTimeout-10*time.Minute {
		t.Errorf("%s are left after a second box", left)
	}
}

func TestAfterASweepAllIsToldAgain(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: fix it\ndone admit on a pull request\ntaken\ndone prepare\ndone run\ndone publish")
	s.settled(t)
	if s.state.Turn.Told {
		t.Fatal("what has to be told once more was dropped")
	}
	s.tell(t, "wait 2m\ndone sweep")
	if c := s.pending(t, Check); c.Check.Conclusion != "success" || c.Attempts == 0 {
		t.Errorf("check %+v", c)
	}
	s.tell(t, "done report")
	s.settled(t)
	if !s.state.Turn.Told {
		t.Error("an idle session keeps what was told")
	}
}

func TestASweepHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: fix it\ndone admit\ntaken\ndone prepare\ndone run\ndone publish\ndone open")
	s.settled(t)
	s.tell(t, "alice asks: more\ndone admit")
	if s.state.Turns != 2 {
		t.Error("the next turn waits for the sweep")
	}
}

func TestABoxThatWasGivenUpIsRemembered(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: fix it\ndone admit\ndone prepare\nbroke run lost")
	if len(s.state.Left) != 1 || s.state.Left[0] != "box" || s.state.Box != "" {
		t.Errorf("box %q, left %v", s.state.Box, s.state.Left)
	}
	for range 9 {
		s.step(Event{Kind: Tick})
		s.state.Box, s.state.Turn, s.state.Life = "another", nil, &lifecycle.Box{ID: "another", State: lifecycle.Lost, Since: s.now}
		s.step(Event{Kind: Tick})
		s.tell(t, "done tend")
	}
	if len(s.state.Left) != maxLeft {
		t.Errorf("%d are remembered", len(s.state.Left))
	}
}

func TestWorkIsPushedWhenTheCodeHostIsBack(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: fix it\ndone admit\ndone prepare\ndone run")
	fails := func(passing bool) {
		e := s.pending(t, Publish)
		if e.Due.After(s.now) {
			s.now = e.Due
		}
		s.step(Event{Kind: Broke, Failed: &Failed{Effect: e.ID, Say: "It broke.", Again: true, Passing: passing}})
	}
	began := s.now
	for s.state.Turn.Stage == Publishing {
		fails(true)
	}
	if d := s.now.Sub(began); d < publishWaits || d > publishWaits+10*time.Minute {
		t.Errorf("given up after %s", d)
	}
	s = told(t, "alice asks: fix it\ndone admit\ndone prepare\ndone run")
	for range maxWorkerAttempts {
		fails(false)
	}
	if s.state.Turn.Stage != Ended {
		t.Error("a box that cannot push is tried for ever")
	}
}

func TestRetryWhileItStops(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: fix it\ndone admit\ndone prepare\nalice asks: stop\ndone admit\nalice asks: retry\ndone admit")
	if len(s.state.Waiting) != 1 {
		t.Fatalf("%d wait", len(s.state.Waiting))
	}
	s.tell(t, "done run stopped\ndone publish nothing")
	s.settled(t)
	if s.state.Turns != 2 || s.state.Turn.Requests[0].Text != "fix it" {
		t.Errorf("turn %d is asked %+v", s.state.Turns, s.state.Turn.Requests)
	}
}

func TestABoxElsewhereTakesTheOldOnesPlace(t *testing.T) {
	t.Parallel()
	s := told(t, oneTurn)
	s.settled(t)
	s.state.Box = "one on another machine"
	s.tell(t, "alice asks: more\ndone admit\ndone prepare")
	if len(s.state.Left) != 1 || s.state.Left[0] != "one on another machine" {
		t.Errorf("left %v", s.state.Left)
	}
}

// TestAnotherRepositoryClosesNothing: whoever may write to some repository can
// give a branch there the session's name, and its pull request the number.
func TestAnotherRepositoryClosesNothing(t *testing.T) {
	t.Parallel()
	s := told(t, oneTurn)
	s.settled(t)
	s.state.PR.Key = "PR_ours"
	s.step(Event{Kind: Closed, PR: 8, Key: "PR_theirs"})
	if s.state.Closed {
		t.Error("a pull request of another repository was taken for the session's")
	}
	s.step(Event{Kind: Closed, PR: 8, Key: "PR_ours"})
	if !s.state.Closed {
		t.Error("the session's own was closed, and nothing followed")
	}
}
