package session

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// paid tells that so much of the running turn's money is spent.
func (s *story) paid(usd string) error {
	amount, err := strconv.ParseFloat(usd, 64)
	s.step(Event{Kind: Moved, Progress: &Progress{Doing: "bash", Usage: Usage{Calls: 1, USD: amount}}})
	return err
}

// spentToday says what the broker's accounts hold from now on.
func (s *story) spentToday(text string) error {
	t := Today{Day: s.now.Format(time.DateOnly), Payer: "github:alice"}
	if _, err := fmt.Sscanf(strings.ReplaceAll(text, ",", ""), "%f of %f %f of %f", &t.Person, &t.PersonMax, &t.All, &t.AllMax); err != nil {
		return err
	}
	s.today = &t
	s.step(Event{Kind: Moved, Progress: &Progress{Doing: "bash", Today: &t}})
	return nil
}

// afterPause is a session whose last turn ran into a limit.
func afterPause(t *testing.T, limit string) *story {
	t.Helper()
	s := newStory()
	s.tell(t, "alice asks: fix the test\ndone admit\ndone prepare\ndone run out of "+limit+
		"\ndone publish\ndone open\ndone check\ndone report\ndone close")
	return s
}

// TestAnswersToABudget: the words that are offered, and others that mean them.
func TestAnswersToABudget(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]float64{
		"Go on with $5 more": 5, "go on": 5, "yes": 5, "Yes, please": 5, "ok": 5, "Extend by $2.50.": 2.5, "continue with 12 usd more": 12,
		"go on with $999 more": 20, "Leave it": -1, "no": -1, "Leave it as it is.": -1, "fix the other test too": 0, "yes, but with less noise": 0, "go on with nothing": 0,
	} {
		s := afterPause(t, "turn")
		s.tell(t, "bob asks: "+answer+"\ndone admit")
		turn := s.state.Turn
		switch {
		case want < 0 && (s.state.Turns != 1 || turn.Outcome.Question != nil):
			t.Errorf("%q: turn %d, %+v", answer, s.state.Turns, turn.Outcome)
		case want > 0 && (s.state.Turns != 2 || turn.Budget != want || !turn.Resumed || turn.PastLimit != TurnLimit || turn.Requests[0].Text != "fix the test" || turn.Payer() != "github:bob"):
			t.Errorf("%q: turn %d, %+v", answer, s.state.Turns, turn)
		case want == 0 && (s.state.Turns != 2 || turn.Resumed || turn.PastLimit != "" || turn.Requests[0].Text != answer || turn.Asked != nil):
			t.Errorf("%q: turn %d, %+v", answer, s.state.Turns, turn)
		}
	}
}

// TestAnswersComeAfterTheQuestion: who said "ok" while the turn was still at work
// has not said that it may go past what it then ran into.
func TestAnswersComeAfterTheQuestion(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"ok", "continue", "Go on with $5 more"} {
		s := newStory()
		s.tell(t, "alice asks: fix the test\ndone admit\ndone prepare\ndone run out of day\nbob asks: "+word+
			"\ndone admit\ndone publish\ndone open\ndone check\ndone report\ndone close")
		if turn := s.state.Turn; turn.N != 2 || turn.PastLimit != "" || turn.Requests[0].Text != word {
			t.Errorf("%q: %+v", word, turn)
		}
	}
}

// TestNobodyMayExtend: then nothing is asked, and a word says what helps.
func TestNobodyMayExtend(t *testing.T) {
	t.Parallel()
	for limit, say := range map[string]string{"turn": "as much again", "day": "00:00 UTC"} {
		s := newStory()
		s.policy.Extend = false
		s.tell(t, "alice asks: fix the test\ndone admit\ndone prepare\ndone run out of "+limit+"\ndone publish\ndone open")
		if o := s.state.Turn.Outcome; o.Question != nil || !strings.Contains(o.Say, say) {
			t.Errorf("%s: %+v", limit, o)
		}
		if c := s.state.Check; c.Conclusion != "failure" {
			t.Errorf("%s: the check says %q", limit, c.Conclusion)
		}
	}
}

// TestAnotherDay: what was spent yesterday keeps nobody from working.
func TestAnotherDay(t *testing.T) {
	t.Parallel()
	s := newStory()
	s.tell(t, "today 10 of 10, 20 of 50\nwait 24h\nalice asks: fix it\ndone admit known")
	if s.state.Turn == nil || s.state.Turn.Stage != Preparing {
		t.Errorf("%+v", s.state.Turn)
	}
}

// TestOthersArePaidByOthers: alice's day is over, and bob's is not.
func TestOthersArePaidByOthers(t *testing.T) {
	t.Parallel()
	s := newStory()
	s.tell(t, "today 10 of 10, 20 of 50\nbob asks: fix it\ndone admit known")
	if s.state.Turn == nil || s.state.Turn.Stage != Preparing {
		t.Errorf("%+v", s.state.Turn)
	}
}

// TestPayers: every name has an account of its own, and can be read again.
func TestPayers(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, login := range []string{"ada", "Ada", "a.b", "a.2eb", "a-b", "ada lovlace", "ada:lovlace", "ada{x}", "世界", "世畍", "..ab", strings.Repeat("a", 500), strings.Repeat("a", 501)} {
		name := Request{Thread: Thread{Platform: "slack"}, By: Person{Login: login}}.Payer()
		if other, twice := seen[name]; twice || len(name) > maxPayer {
			t.Errorf("%q is %s, as is %q", login, name, other)
		}
		seen[name] = login
		if platform, back := ParsePayer(name); platform != "slack" || len(login) < 100 && back != login {
			t.Errorf("%q comes back as %s %q", login, platform, back)
		}
	}
}

// TestBoxTime is counted for the turn while one is at work, and for the session
// in between, until the box is paused or gone.
func TestBoxTime(t *testing.T) {
	t.Parallel()
	s := newStory()
	s.tell(t, "alice asks: fix it\ndone admit\nwait 10s\ndone prepare")
	// A box that was made when preparing began is paid for from then.
	s.tell(t, "wait 100s")
	if got := s.state.BoxTime(s.now); got != 100*time.Second {
		t.Errorf("at work: %s", got)
	}
	s.tell(t, "done run\ndone publish\ndone open")
	if got := s.state.Turn.Box; got != 100 || s.state.Spent.USD != 0.5 {
		t.Errorf("the turn took %d s, $%v", got, s.state.Spent.USD)
	}
	e, err := s.find(Close)
	if err != nil || e.Stay == nil || *e.Stay != (Stay{Payer: "github:alice", Seconds: 100}) {
		t.Errorf("to be booked: %+v, %v", e.Stay, err)
	}
	s.tell(t, "done check\ndone report\ndone close\nwait 1000s\ndone tend")
	if s.state.BoxSeconds != 1100 || !s.state.Metered.IsZero() || s.state.Spent.USD != 1.5 {
		t.Errorf("paused: %d s since %s, $%v", s.state.BoxSeconds, s.state.Metered, s.state.Spent.USD)
	}
	s.tell(t, "wait 1000s\nalice asks: more\ndone admit\ndone prepare\nwait 50s\nbroke run lost")
	if s.state.BoxSeconds != 1150 || s.state.Turn.Box != 50 || !s.state.Metered.IsZero() {
		t.Errorf("lost: %d s, %d in the turn, since %s", s.state.BoxSeconds, s.state.Turn.Box, s.state.Metered)
	}
	s.tell(t, "done prepare\nwait 25s\ndone run\ndone publish")
	if v := ViewOf(s.state); v.Box != 75*time.Second || v.All.Box != 1175*time.Second {
		t.Errorf("shown: %+v", v.All)
	}
}
