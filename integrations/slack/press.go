package slack

import (
	"strings"

	"ship/session"
)

const (
	sayNotAsked = "I'm not waiting to hear which repository is meant any more, so that changed nothing. Mention me and say what you would like."
	sayAnswered = "That question is not open any more, so your answer changed nothing. Mention me and say what you would like."
	sayTurnOver = "That turn is over, so the button did nothing. The newest message of mine has what can be done now."
)

// outdated is what to say to a press of a button that belongs to what is over,
// for with whatever has followed upon that it may mean nothing any more; empty:
// it is still good, or there was none.
func (w *work) outdated(r session.Request) string {
	at, err := parseRef(r.Ref)
	if err != nil || at.kind != refButton {
		return ""
	}
	s := w.job.State
	block, _, _ := strings.Cut(at.name, "-")
	switch {
	case block == nameRepo && r.Verb == session.Instruct && r.Repo == "": // the answer to a question has it
		return sayNotAsked
	case block == nameChoose && !asksIn(s, at.name):
		return sayAnswered
	case block == nameDo && s.Turns > 1 && at.name != ofTurn(nameDo, s.Turns):
		return sayTurnOver
	}
	return ""
}

// asksIn: the turn that a block is named for was the last, and ended with a
// question.
func asksIn(s session.State, name string) bool {
	t := s.Turn
	return t != nil && name == ofTurn(nameChoose, t.N) && t.Stage == session.Ended &&
		t.Outcome != nil && t.Outcome.Question != nil
}
