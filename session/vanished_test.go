package session

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/sandbox/lifecycle"
)

// housedState is a session with a box in some state since noon.
func housedState(t *testing.T, l lifecycle.State, stage Stage) State {
	t.Helper()
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	s := State{
		ID: "gh.1.7", Box: "box", Site: "here", Life: &lifecycle.Box{ID: "box", State: l, Since: noon, Born: noon, Active: noon, Ended: noon},
		Turn: &Turn{N: 1, Stage: stage, Requests: []Request{{ID: "c1", Thread: Thread{"github", "issue"}}}}, Turns: 1, Metered: noon,
	}
	if stage == Ended {
		s.Turn.Outcome, s.Turn.Told = &Outcome{Ending: Completed}, true
	}
	return s
}

// TestOnlyABoxThatIsCountedOnVanishes: whoever makes, finds or ends a box looks at
// the provider by itself.
func TestOnlyABoxThatIsCountedOnVanishes(t *testing.T) {
	t.Parallel()
	counted := map[lifecycle.State]bool{
		lifecycle.Ready: true, lifecycle.Busy: true, lifecycle.Idle: true, lifecycle.Pausing: true, lifecycle.Paused: true,
		lifecycle.Resuming: true, lifecycle.Creating: true,
	}
	for _, l := range lifecycle.States() {
		if got := housedState(t, l, Ended).OnRecord() != nil; got != counted[l] {
			t.Errorf("%s: counted on %t", l, got)
		}
		if housedState(t, l, Preparing).OnRecord() != nil {
			t.Errorf("%s: whoever prepares a turn finds out", l)
		}
	}
	s := housedState(t, lifecycle.Idle, Ended)
	s.Pending = []Effect{{Kind: Discard, By: Worker}}
	if s.OnRecord() != nil || (State{}).OnRecord() != nil {
		t.Error("a box that is discarded, or is none, is counted on")
	}
}

// TestAnOldLookSaysNothing: another box, or another time of this one.
func TestAnOldLookSaysNothing(t *testing.T) {
	t.Parallel()
	s := housedState(t, lifecycle.Idle, Ended)
	s.Life.Since = s.Life.Since.Add(300 * time.Microsecond) // the store has not kept them
	noon := s.Life.Since.Truncate(time.Millisecond)
	for name, b := range map[string]LostBox{
		"another": {Box: "other", Since: noon}, "before": {Box: "box", Since: noon.Add(-time.Second)}, "later": {Box: "box", Since: noon.Add(time.Second)}, "none": {},
	} {
		if after := Step(s, Event{Kind: Vanished, At: noon.Add(time.Minute), Lost: &b}, testPolicy()); after.Life.State != lifecycle.Idle || len(after.Pending) > 0 {
			t.Errorf("%s: the box is %s, and %v follows", name, after.Life.State, after.Pending)
		}
	}
	after := Step(s, Event{Kind: Vanished, At: noon.Add(time.Minute), Lost: &LostBox{Box: "box", Since: noon}}, testPolicy())
	if after.Life.State != lifecycle.Lost || len(after.Pending) != 1 || after.Pending[0].Kind != Tend {
		t.Errorf("the box is %s, and %v follows", after.Life.State, after.Pending)
	}
}

// TestABoxThatVanishedCostsNothing from when it was noticed on: that it is told
// late, twice or of a turn at work makes no difference.
func TestABoxThatVanishedCostsNothing(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	for _, stage := range []Stage{Running, Ended} {
		s := housedState(t, lifecycle.Busy, stage)
		if stage == Ended {
			s.Life.State = lifecycle.Idle
		} else {
			s.Pending = []Effect{{ID: "r", Kind: Run, By: Worker}}
		}
		at := s.Metered.Add(4 * time.Minute)
		box := *s.OnRecord()
		for range 2 {
			s = Step(s, Event{Kind: Vanished, At: at, Lost: &box}, p)
		}
		if stage == Ended {
			e := s.Pending[0]
			s = Step(s, Event{Kind: Done, At: at, Performed: &Performed{Effect: e.ID, Tended: Tending(s, p.Boxes, at, false)}}, p)
		}
		s = Step(s, Event{Kind: Vanished, At: at.Add(time.Hour), Lost: &box}, p)
		s = Step(s, Event{Kind: Tick, At: at.Add(2 * time.Hour)}, p)
		if s.Box != "" || s.Site != "" || s.Life != nil || s.BoxSeconds != 240 || !s.Metered.IsZero() {
			t.Errorf("%s: box %q ran for %d s, counted from %s", stage, s.Box, s.BoxSeconds, s.Metered)
		}
		if kinds := effectKinds(s); stage == Running && !cmp.Equal(kinds, []EffectKind{Prepare}) || stage == Ended && len(kinds) > 0 {
			t.Errorf("%s: %v follows", stage, kinds)
		}
	}
}

func effectKinds(s State) (kinds []EffectKind) {
	for _, e := range s.Pending {
		if e.By == Worker {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

// TestVanishedComesThroughTheInbox as it was sent, and without a box it is put
// aside.
func TestVanishedComesThroughTheInbox(t *testing.T) {
	t.Parallel()
	b := housedState(t, lifecycle.Idle, Ended).OnRecord()
	text, err := json.Marshal(Event{V: EventVersion, Kind: Vanished, Lost: b})
	if err != nil {
		t.Fatal(err)
	}
	var e Event
	if err := json.Unmarshal(text, &e); err != nil || !e.Lost.same(*b) || unfit(State{}, e) != "" {
		t.Errorf("%s became %+v, %v", text, e.Lost, err)
	}
	if unfit(State{}, Event{Kind: Vanished}) == "" {
		t.Error("no box can vanish")
	}
}
