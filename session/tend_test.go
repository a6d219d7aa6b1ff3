package session

import (
	"strings"
	"testing"
	"time"

	"ship/sandbox/lifecycle"
)

// Tending does with a box what is due, as a worker does whose provider does all
// that it is asked; but for pausing, if it cannot.
func Tending(s State, p lifecycle.Policy, now time.Time, cannot bool) *Tended {
	out := &Tended{Life: *s.Life, Unpausable: s.Unpausable}
	for range 5 {
		if out.Unpausable {
			p.IdlePause = 0
		}
		d, err := lifecycle.Decide(out.Life, lifecycle.Reading{Expires: now.Add(24 * time.Hour), At: now}, p, now)
		if err != nil {
			panic(err)
		}
		var events []lifecycle.Event
		switch {
		case d.Action == lifecycle.Pause && cannot:
			events, out.Unpausable = []lifecycle.Event{lifecycle.PauseAsked, lifecycle.PauseFailed}, true
		case d.Action == lifecycle.Pause:
			events = []lifecycle.Event{lifecycle.PauseAsked, lifecycle.PauseDone}
		case d.Action == lifecycle.Destroy:
			events = []lifecycle.Event{lifecycle.DestroyAsked, lifecycle.DestroyDone}
		}
		for _, e := range events {
			if out.Life, err = out.Life.Apply(e, now); err != nil {
				panic(err)
			}
		}
	}
	return out
}

// TestAStateOfThePreviousRelease: what it wrote goes on, at rest or with a turn
// under way.
func TestAStateOfThePreviousRelease(t *testing.T) {
	t.Parallel()
	const idle = `{"v":1,"id":"gh.1.7","th":[{"p":"github","k":"issue","r":"ref"}],"rp":{"p":"github","n":"acme/widgets","k":"k"},"ti":"T","ba":"main",` +
		`"br":"ship/t-gh-1-7","hd":"head1","bx":"4a5b-x","re":"2026-01-02T03:04:05.123Z","cv":"ses_1","tu":{"n":1,"s":"ended","tl":true},"n":1}`
	s, err := DecodeState("gh.1.7", []byte(idle))
	if err != nil {
		t.Fatal(err)
	}
	rests := time.Date(2026, 1, 2, 3, 4, 5, 123e6, time.UTC)
	p := testPolicy()
	if next := NextLook(s, p); !next.Equal(rests.Add(p.Boxes.IdlePause)) {
		t.Errorf("somebody looks after the box at %s", next)
	}
	story := newStory()
	story.state, story.now = s, rests.Add(time.Minute)
	story.tell(t, "alice asks: more\ndone admit\ndone prepare\ndone run\ndone publish")
	if story.state.Conversation != "" && story.state.Box != "box" {
		t.Errorf("box %s, conversation %s", story.state.Box, story.state.Conversation)
	}
	busy := strings.Replace(idle, `"s":"ended","tl":true`, `"s":"running"`, 1)
	if s, err = DecodeState("gh.1.7", []byte(busy)); err != nil || s.Life.State != lifecycle.Busy || s.Life.ID != "4a5b-x" || s.Life.Session != "gh.1.7" {
		t.Errorf("in the middle of a turn: %+v, %v", s.Life, err)
	}
	written, err := s.Encode()
	if err != nil || strings.Contains(string(written), `"re"`) {
		t.Errorf("written %s, %v", written, err)
	}
	again, err := DecodeState("gh.1.7", written)
	if err != nil || *again.Life != *s.Life {
		t.Errorf("read again %+v, was %+v, %v", again.Life, s.Life, err)
	}
}

// TestABoxThatATurnMayHaveWoken: the turn was stopped while its box was being
// woken, so that nobody knows whether it runs.
func TestABoxThatATurnMayHaveWoken(t *testing.T) {
	t.Parallel()
	s := told(t, oneTurn)
	s.settled(t)
	s.tell(t, "wait 10m\ndone tend\nalice asks: more\ndone admit\nalice asks: stop\ndone admit\nbroke prepare")
	if s.state.Life.State != lifecycle.Resuming {
		t.Fatalf("the box is %s", s.state.Life.State)
	}
	s.tell(t, "wait 5m")
	s.pending(t, Tend)
}

func TestABoxThatCannotBePausedIsKeptUntilItsEnd(t *testing.T) {
	t.Parallel()
	s := told(t, oneTurn)
	s.settled(t)
	s.tell(t, "wait 10m\ndone tend cannot")
	if next := NextLook(s.state, s.policy); !next.Equal(s.state.Life.Ended.Add(s.policy.Boxes.IdleDestroy)) {
		t.Errorf("somebody looks again at %s", next)
	}
	s.tell(t, "wait 1h\ndone tend")
	if s.state.Box != "" || s.state.Life != nil || s.state.Unpausable {
		t.Errorf("box %q, %+v", s.state.Box, s.state.Life)
	}
}

// TestTendingThatBringsNothingIsNotRepeatedAtOnce: as when a turn began and
// ended in between.
func TestTendingThatBringsNothingIsNotRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	s := told(t, oneTurn)
	s.settled(t)
	s.tell(t, "wait 10m\ndone tend nothing")
	if e := s.pending(t, Tend); e.Due.Sub(s.now) < s.policy.Boxes.Retry {
		t.Errorf("repeated at %s, now %s", e.Due, s.now)
	}
}

// TestTheEndOfABoxIsToldOnce: whoever tells does not know whether it was heard.
func TestTheEndOfABoxIsToldOnce(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: fix it\ndone admit\ndone prepare")
	for range 2 {
		s.step(Event{Kind: Moved, Progress: &Progress{Doing: "testing", Ends: time.Date(2026, 1, 2, 15, 40, 0, 0, time.UTC)}})
	}
	if e := s.pending(t, Say); !strings.Contains(e.Text, "15:40 UTC") {
		t.Errorf("said %q", e.Text)
	}
	s.tell(t, "done say")
	s.step(Event{Kind: Moved, Progress: &Progress{Ends: time.Date(2026, 1, 2, 15, 40, 0, 0, time.UTC)}})
	if e, err := s.find(Say); err == nil {
		t.Errorf("said again: %q", e.Text)
	}
	if !s.state.Life.Warned || s.state.Turn.Progress.Ends != (time.Time{}) {
		t.Errorf("kept: %+v", s.state.Turn.Progress)
	}
}
