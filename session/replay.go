package session

import (
	"fmt"
	"slices"
	"time"
)

// replayKeep is how long a replay is known: longer than anybody leaves one half
// done.
const replayKeep = 30 * 24 * time.Hour

// operator is who asks from the command line.
const operator = "the operator"

// Replay is the delivery that puts a dead letter back: an event as it came, and
// an effect for its session to decide on anew. It can be made only of a letter
// with an ID, and delivering it twice appends once.
func (d DeadLetter) Replay() Delivery {
	e := Event{V: EventVersion, Kind: Replayed, Effect: d.Effect, Turn: d.Turn}
	if d.Event != nil {
		e = *d.Event
		e.V, e.Request = EventVersion, anewRequest(e.Request)
	}
	return Delivery{Session: d.Session, Keys: []string{"replay:" + d.ID}, Keep: replayKeep, Event: e}
}

// anewRequest is the same request under another id: what was said about the
// first must not count as said about this one.
func anewRequest(r *Request) *Request {
	if r == nil {
		return nil
	}
	again := *r
	again.ID += ".again"
	return &again
}

// Obstacle says why a replay would come to nothing or do harm, for the session
// as it is now. Empty: there is none.
func (d DeadLetter) Obstacle(s State) string {
	switch {
	case d.Raw != nil:
		return "it is no event, so there is nothing to replay"
	case d.Event != nil:
		return d.Event.flaw()
	case d.Effect == nil:
		return "it holds neither an event nor an effect"
	}
	return obstacle(s, *d.Effect, d.Turn)
}

// unfit says why an event from the inbox cannot be folded.
func unfit(s State, e Event) string {
	if why := e.flaw(); why != "" {
		return why
	}
	if e.Kind != Replayed {
		return ""
	}
	if why := obstacle(s, *e.Effect, e.Turn); why != "" {
		return "it could not be replayed: " + why
	}
	return ""
}

// flaw says what is wrong with an event by itself.
func (e Event) flaw() string {
	switch {
	case e.Kind == Garbled:
		return "what lay in the inbox is no event: " + e.Flaw
	case (e.Kind == Asked || e.Kind == Amended || e.Kind == Ordered) && e.Request == nil:
		return "an event without a request"
	case e.Kind == Replayed && e.Effect == nil:
		return "a replay of nothing"
	case e.Kind == Vanished && e.Lost == nil:
		return "no box that vanished"
	case !e.Kind.fromInbox():
		return fmt.Sprintf("an inbox cannot hold an event of kind %q", printable(string(e.Kind)))
	}
	return ""
}

// fromInbox: such events come to a session from others.
func (k Kind) fromInbox() bool {
	switch k {
	case Asked, Amended, Ordered, Replayed, Closed, Vanished:
		return true
	}
	return false
}

// letterOf is the dead letter of an event.
func letterOf(e Event, cause string) DeadLetter {
	switch e.Kind {
	case Garbled:
		return DeadLetter{Cause: cause, Raw: append([]byte{}, e.Raw...)}
	case Replayed:
		return DeadLetter{Cause: cause, Effect: e.Effect, Turn: e.Turn}
	}
	return DeadLetter{Cause: cause, Event: &e}
}

// remember keeps what an answer tells of.
func (d *DeadLetter) remember(t *Turn) {
	if d.Effect.Kind != Answer || t == nil || t.N != d.Effect.Turn || t.Told {
		return
	}
	kept := *t
	kept.Context = ""
	d.Turn = &kept
}

// obstacle says why an effect is better left given up.
func obstacle(s State, e Effect, told *Turn) string {
	switch e.Kind {
	case Prepare, Run, Publish, Open:
		return s.cannotRetry(e)
	case Begin:
		if e.Turn != s.Turns || !s.Busy() {
			return fmt.Sprintf("turn %d has ended since", e.Turn)
		}
	case Answer:
		return s.cannotAnswer(e, told)
	case Ask:
		if s.Asking == nil || s.Asking.Question.Text != e.Text {
			return "nobody waits for that answer any more"
		}
	case Check:
		return s.outdated(e.Check)
	case MarkReady:
		if s.PR == nil || s.Closed || !s.PR.Draft {
			return "there is no open draft any more"
		}
	case Report:
		if s.Turn == nil || !slices.ContainsFunc(s.Threads, func(v Voice) bool { return v.Thread == *e.Thread }) {
			return "there is nothing to report there any more"
		}
	case Tend, Discard:
		return "a box that is not destroyed ends by itself, and the session may have another by now"
	case Admit, Acknowledge, Say, Reply, Forward, Close, Sweep: // as good as ever
	}
	return ""
}

// cannotRetry: a step of a turn makes sense only within it, and the turn has
// ended with it. What can be had is the turn again.
func (s State) cannotRetry(e Effect) string {
	switch {
	case s.Turn == nil || len(s.Threads) == 0:
		return "nothing was ever run in the session"
	case e.Turn != s.Turns:
		return fmt.Sprintf("it belonged to turn %d, and the session has gone on to turn %d since", e.Turn, s.Turns)
	case s.Busy():
		return fmt.Sprintf("turn %d is still at work", e.Turn)
	case s.Turn.Forgotten || len(s.Turn.Requests) == 0:
		return "what was asked is not kept any more"
	}
	return ""
}

func (s State) cannotAnswer(e Effect, told *Turn) string {
	switch {
	case s.Turn == nil || e.Turn != s.Turns || s.Busy():
		return fmt.Sprintf("it is the end of turn %d, and the session has gone on since", e.Turn)
	case s.Turn.Told && told == nil:
		return "what was to be said is not kept"
	}
	return ""
}

// outdated: something else is true of the commit by now.
func (s State) outdated(c *CheckState) string {
	now := s.Check
	switch {
	case c.Conclusion == "" && !s.Busy():
		return "nothing is in progress any more"
	case now != nil && now.SHA == c.SHA && now.Conclusion != c.Conclusion:
		return "the check run of that commit says something else by now"
	}
	return ""
}

// replayed takes an effect up again that was given up.
func (n *step) replayed(e Event) {
	f := *e.Effect
	if unfit(n.State, e) != "" {
		return
	}
	switch f.Kind {
	case Prepare, Run, Publish, Open:
		n.retry(Request{ID: "replay-" + f.ID, Thread: n.Threads[0].Thread, By: Person{Login: operator}, Verb: Retry, At: n.now}, "")
		return
	case Answer:
		n.recall(e.Turn)
	case Admit:
		f.Request = anewRequest(f.Request)
	}
	n.restore(f)
}

// restore puts an effect back under the id that it had. It counts as tried, so
// whoever performs it looks first whether it was done after all.
func (n *step) restore(f Effect) {
	if slices.ContainsFunc(n.Pending, func(p Effect) bool { return p.ID == f.ID }) {
		return
	}
	f.Epoch, f.Attempts, f.Since, f.Due = 0, 1, n.now, time.Time{}
	n.Pending = append(n.Pending, f)
}

// recall makes the session know again what it has to tell of its last turn. It
// settles anew when that is told.
func (n *step) recall(t *Turn) {
	if t == nil || !n.Turn.Told {
		return
	}
	again := *t
	again.Context = n.Turn.Context
	n.Turn = &again
}
