package agent

import (
	"slices"
	"time"
)

// settle is how long a turn must look cut before it is believed: the agent is
// idle for a moment between taking a prompt and working on it.
const settle = 3 * time.Second

// step is what to do after a look.
type step int

// The zero step is to look again later.
const (
	// goOn: say "continue", once in a turn.
	goOn step = iota + 1
	end
)

// verdict is what a look led to. The zero value: look again later.
type verdict struct {
	step   step
	ending Ending
	// why is a detail for people: the model's message, or what repeats.
	why string
}

func ended(e Ending, why string) verdict { return verdict{step: end, ending: e, why: why} }

// watch judges a turn by its snapshots. It does no I/O and owns no clock.
type watch struct {
	limits Limits
	// continued is the id of the prompt that says "continue".
	continued string

	// mark is the fingerprint seen last, moved when it changed.
	mark  string
	moved time.Time
	// failing: since it moved last, the model has been failing.
	failing string
	// idle is since when the agent is idle with the turn unfinished.
	idle time.Time
}

// see takes one look into account. What is finished is finished, even if a
// limit has passed meanwhile.
func (w *watch) see(s Snapshot, now time.Time) verdict {
	w.note(s, now)
	if s.Finished {
		return finished(s)
	}
	if w.late(now) {
		return ended(TimedOut, "")
	}
	if why := stuck(s.Calls, w.limits); why != "" {
		return ended(Stuck, why)
	}
	switch s.Status.Phase {
	case Idle:
		return w.unfinished(s, now)
	case Retrying:
		if s.Status.Attempt > w.limits.Retries {
			return ended(Unreachable, s.Status.Message)
		}
	}
	return w.still(s, now)
}

func (w *watch) note(s Snapshot, now time.Time) {
	if s.Fingerprint != w.mark || w.moved.IsZero() {
		w.mark, w.moved, w.failing = s.Fingerprint, now, ""
	}
	if s.Status.Phase == Retrying {
		w.failing = s.Status.Message
	}
	if s.Status.Phase != Idle {
		w.idle = time.Time{}
	} else if w.idle.IsZero() {
		w.idle = now
	}
}

func (w *watch) late(now time.Time) bool {
	return !w.limits.Deadline.IsZero() && !now.Before(w.limits.Deadline)
}

// unfinished judges an idle agent that has not finished: cut, or never begun.
func (w *watch) unfinished(s Snapshot, now time.Time) verdict {
	patience := w.limits.Start
	if s.Cut {
		patience = settle
	}
	if now.Sub(w.idle) < patience {
		return verdict{}
	}
	if !slices.Contains(s.Prompts, w.continued) {
		w.idle = time.Time{}
		return verdict{step: goOn}
	}
	if !s.Started {
		return ended(Refused, "")
	}
	return ended(Crashed, "")
}

// still judges an agent at work by when it last moved.
func (w *watch) still(s Snapshot, now time.Time) verdict {
	limit := w.limits.Stall
	if runs(s.Calls) {
		limit = max(limit, w.limits.ToolStall)
	}
	if now.Sub(w.moved) < limit {
		return verdict{}
	}
	if w.failing != "" {
		return ended(Unreachable, w.failing)
	}
	return ended(Stalled, plain(limit))
}

// runs says whether a tool is running. Only the last call counts: one further
// back that is still "running" belonged to a server that died.
func runs(calls []Call) bool {
	return len(calls) > 0 && calls[len(calls)-1].Status == CallRunning
}

// The codes with which the broker says that a budget is spent.
const (
	CodeBudgetSpent = "ship_budget_spent"
	CodeCallsSpent  = "ship_calls_spent"
)

// finished says how a turn ended that ended by itself.
func finished(s Snapshot) verdict {
	f := s.Failure
	switch {
	case s.Aborted:
		return ended(Stopped, "")
	case f == nil:
		return ended(Completed, "")
	case f.Code == CodeBudgetSpent || f.Code == CodeCallsSpent:
		return ended(Spent, f.Code)
	case f.Retryable || f.Status >= 500 || f.Status == 408 || f.Status == 429:
		return ended(Unreachable, f.Message)
	case f.Status >= 400 || f.Final:
		return ended(Refused, f.Message)
	}
	return ended(Crashed, f.Message)
}

// stuck looks for the same call over and over at the end of the list, and says
// what repeats. Empty: nothing does.
func stuck(calls []Call, l Limits) string {
	if len(calls) == 0 {
		return ""
	}
	last := calls[len(calls)-1]
	n := 0
	for i := len(calls) - 1; i >= 0 && same(calls[i], last); i-- {
		n++
	}
	switch {
	case last.Status == CallFailed && n >= l.Repeats:
		return stepText(last)
	case last.Status == CallDone && n >= l.Echoes:
		return stepText(last)
	}
	return ""
}

func same(a, b Call) bool {
	return a.Tool == b.Tool && a.Digest == b.Digest && a.Status == b.Status && a.Error == b.Error
}
