package session

import (
	"strings"
	"testing"
)

// TestLeft: what could be pushed is shown, and the turn does not end as if that
// were all.
func TestLeft(t *testing.T) {
	t.Parallel()
	s := told(t, "alice asks: fix it\ndone admit\ndone prepare\ndone run")
	p := &Published{Head: "head1", Changed: true, Files: 1, Left: "There is no room. Make some."}
	s.step(Event{Kind: Done, Performed: &Performed{Effect: s.pending(t, Publish).ID, Published: p}})
	s.pending(t, Open)
	s.tell(t, "done open")
	turn := s.state.Turn
	if turn.Stage != Ended || turn.Outcome.Ending != Crashed || turn.Outcome.Say != p.Left || turn.Outcome.Answer != "Fixed." {
		t.Errorf("the turn is %s, %+v", turn.Stage, turn.Outcome)
	}
	if !turn.Changed || s.state.PR == nil || s.state.Spent.Calls != 3 {
		t.Errorf("what was pushed is not told: %t, %+v, %+v", turn.Changed, s.state.PR, s.state.Spent)
	}
	if v := ViewOf(s.state); !strings.Contains(v.Outcome.Say, "no room") {
		t.Errorf("people see %+v", v.Outcome)
	}
}

// TestReplaced: people hear that what only another box had is gone.
func TestReplaced(t *testing.T) {
	t.Parallel()
	for replaced, want := range map[bool]int{false: 0, true: 1} {
		s := told(t, "alice asks: fix it\ndone admit")
		p := &Prepared{Box: "box", Head: "base1", Fresh: true, Replaced: replaced}
		s.step(Event{Kind: Done, Performed: &Performed{Effect: s.pending(t, Prepare).ID, Prepared: p}})
		n := 0
		for _, e := range s.state.Pending {
			if e.Kind == Say && strings.Contains(e.Text, "The box was lost") {
				n++
			}
		}
		if n != want {
			t.Errorf("replaced %t: it is told %d times", replaced, n)
		}
	}
}
