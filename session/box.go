package session

import (
	"slices"
	"strconv"
	"time"

	"ship/sandbox/lifecycle"
)

// tell notes what happened to the box. What the table refuses is no news: the
// next look at the provider says what is true.
func (n *step) tell(events ...lifecycle.Event) {
	for _, e := range events {
		if n.Life == nil {
			return
		}
		if life, err := n.Life.Apply(e, n.now); err == nil {
			n.Life = &life
		}
	}
}

// enter: a turn begins in a box that was prepared. Whatever was to be done with
// it at rest is not done any more.
func (n *step) enter(p Prepared) {
	life := p.Life
	if life.ID == "" {
		life = lifecycle.New(string(n.ID), 0, n.now)
		life.ID, life.State = p.Box, lifecycle.Ready
		life = life.Attach(n.now)
	}
	ran := !n.Metered.IsZero()
	n.meterRest()
	if !ran && !life.Born.IsZero() && life.Born.Before(n.now) {
		n.Metered = life.Born // it was made or woken for this
	}
	n.Box, n.Life, n.Site = p.Box, &life, p.Site
	n.tell(lifecycle.TurnBegun)
	n.Pending = slices.DeleteFunc(n.Pending, func(e Effect) bool { return e.Kind == Discard || e.Kind == Tend })
}

// active takes over when the agent was last at work, and tells once that its
// box will not last.
func (n *step) active(p Progress) {
	if n.Life == nil {
		return
	}
	life := *n.Life
	if !p.Active.IsZero() {
		life = life.Touch(lifecycle.ToolCall, p.Active)
	}
	if !p.Ends.IsZero() && !life.Warned {
		life = life.Warn()
		n.warn(p.Ends)
	}
	n.Life = &life
}

// warn tells whoever asked for the work that its box ends.
func (n *step) warn(end time.Time) {
	r := n.Turn.Requests[0]
	n.add(Effect{Kind: Say, By: r.Thread.Platform, Thread: &r.Thread, Ref: r.Ref, Text: boxEnds(end)},
		n.cause("ends", n.Box)...)
}

func boxEnds(end time.Time) string {
	return "My box may run only until " + end.UTC().Format("15:04") + " UTC. If I am not done by then, I go on in a new one, from what I have saved."
}

// leaveBox: the turn is over. It may have woken the box without having begun in
// it, and then it has to be looked at.
func (n *step) leaveBox() {
	if n.Life == nil {
		return
	}
	if n.Life.State == lifecycle.Paused {
		n.tell(lifecycle.ResumeAsked)
	}
	if n.Life.State == lifecycle.Busy {
		n.meterTurn()
	}
	n.tell(lifecycle.TurnEnded)
	if n.Life.State != lifecycle.Busy {
		n.Life = n.atRest(*n.Life)
	}
}

// atRest drops what only matters while a box is in use: an idle session is
// small. When the box was made matters where there is an end to it, and its
// generation is with the provider.
func (n *step) atRest(b lifecycle.Box) *lifecycle.Box {
	b.Generation = 0
	if n.policy.Boxes.Cap == 0 {
		b.Born = time.Time{}
	}
	b.Begun, b.Attached, b.Until, b.Set = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	if !b.Active.After(b.Ended) {
		b.Active = time.Time{}
	}
	return &b
}

// giveUpBox: it was destroyed, or cannot be reached from here.
func (n *step) giveUpBox() {
	if n.Turn != nil && n.Life != nil && n.Life.State == lifecycle.Busy {
		n.meterTurn()
	} else {
		n.meterRest()
	}
	n.stopMeter()
	if n.Box != "" {
		n.Left = append(n.Left, n.Box)
	}
	if len(n.Left) > maxLeft {
		n.Left = slices.Delete(n.Left, 0, 1)
	}
	n.Box, n.Life, n.Site, n.Unpausable, n.Conversation, n.Preview = "", nil, "", false, "", nil
}

// discard lets the box go at once.
func (n *step) discard() {
	if n.Box != "" && !pendingKind(n.Pending, Discard) {
		n.add(Effect{Kind: Discard, By: Worker, Text: n.Box}, "discard", n.Box, strconv.Itoa(n.Turns))
	}
}

// rest has the box looked after when that is due.
func (n *step) rest() {
	if due := n.boxDue(n.policy); !due.IsZero() && !n.now.Before(due) {
		n.tend(due, time.Time{})
	}
}

func (n *step) tend(due, begin time.Time) {
	n.add(Effect{Kind: Tend, By: Worker, Text: n.Box, Due: begin}, "tend", n.Box, due.UTC().Format(time.RFC3339Nano))
}

// tended takes over what became of a box at rest. If the same is still due, as
// when a turn came in between, it is not begun at once again.
func (n *step) tended(p *Tended) {
	if p != nil && p.Life.ID == n.Box && n.Life != nil && !n.Busy() {
		n.Life, n.Unpausable = n.atRest(p.Life), n.Unpausable || p.Unpausable
		switch p.Life.State {
		case lifecycle.Paused:
			n.meterRest()
			n.stopMeter()
		case lifecycle.Destroyed:
			n.giveUpBox()
		}
	}
	if due := n.boxDue(n.policy); !due.IsZero() && !n.now.Before(due) {
		n.tend(due, n.now.Add(max(n.policy.Boxes.Retry, time.Second)))
	}
}

// boxDue is when somebody has to look after a box that no turn is at work in;
// zero: never, or somebody is about to.
func (s State) boxDue(p Policy) time.Time {
	if s.Life == nil || s.Busy() || pendingKind(s.Pending, Discard) || pendingKind(s.Pending, Tend) {
		return time.Time{}
	}
	return lifecycle.Due(*s.Life, s.BoxPolicy(p.Boxes))
}

// BoxPolicy is the policy for the session's own box.
func (s State) BoxPolicy(p lifecycle.Policy) lifecycle.Policy {
	if s.Unpausable {
		p.IdlePause = 0
	}
	return p
}

// lost tells that another box has to do, and from when on the work goes on.
func (n *step) lost(replaced bool) {
	t := n.Turn
	if !t.Fresh || t.Saved.IsZero() && t.Prepares < 2 && !replaced {
		return
	}
	text := "The box was lost, so I begin again from what is on the branch."
	if !t.Saved.IsZero() {
		text = "The box was lost. I continue in a new one from what I had saved at " + t.Saved.UTC().Format("15:04") + " UTC."
	}
	r := t.Requests[0]
	n.add(Effect{Kind: Say, By: r.Thread.Platform, Thread: &r.Thread, Ref: r.Ref, Text: text}, n.cause("lost", n.Box)...)
}
