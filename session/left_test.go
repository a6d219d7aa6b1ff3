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
