package session

import (
	"errors"
	"fmt"

	"ship/sandbox"
)

// poisoned puts aside what has brought its owners down again and again: the
// next mail, or else the effects that are due.
func (c *coordinator) poisoned(claim Claim) {
	cause := fmt.Sprintf("%d owners ended without progress", claim.Tries-1)
	if len(claim.Events) > 0 {
		e := claim.Events[0]
		c.bury(letterOf(e, cause))
		c.fold(Event{Kind: Poisoned, Request: e.Request})
		c.cursor = e.Seq
		c.read(claim.Events[1:])
		return
	}
	for _, e := range c.state.Pending {
		if !e.Due.After(c.now()) {
			c.fail(e, Failed{Effect: e.ID, Say: "Something in this step makes me fail again and again, so I gave it up. `/ship retry` tries once more.", Err: cause})
		}
	}
}

func (c *coordinator) bury(d DeadLetter) {
	d.Session, d.At = c.lease.ID, c.now()
	c.dead = append(c.dead, d)
	c.log.With(d.logAttrs()...).Error("put aside as a dead letter", "cause", d.Cause)
}

// failure says what a person and the operator should know of an error.
func failure(e Effect, err error) Failed {
	f := Failed{
		Effect: e.ID, Err: err.Error(), Again: true, Lost: errors.Is(err, sandbox.ErrGone),
		Say: "Something failed on my side. `/ship retry` tries again; whoever runs me finds the cause in the log.",
	}
	var p *Problem
	if errors.As(err, &p) {
		f.Say, f.Again, f.After, f.Passing, f.Gone = p.Say, p.Again && !p.Gone, p.After, p.Passing, p.Gone
	}
	if errors.Is(err, ErrStopRequested) {
		f.Again, f.Stop = false, true
	}
	return f
}

func (c *coordinator) fail(e Effect, f Failed) {
	turn := c.state.Turn // as it is before it settles
	c.fold(Event{Kind: Broke, Failed: &f})
	log := c.log.With(effectAttrs(e)...).With("attempt", e.Attempts+1, "err", f.Err)
	if c.jobs.has(e.ID) {
		c.recordFailure(e, TryAgain)
		log.Warn("effect failed, trying again")
		return
	}
	if f.Lost && pendingKind(c.state.Pending, Prepare) {
		c.recordFailure(e, BoxLost)
		log.Warn("box lost, another is made")
		return
	}
	if f.Stop {
		c.recordFailure(e, Cancelled)
	} else {
		c.recordFailure(e, GivenUp)
	}
	log.Error("effect given up")
	if !f.Stop {
		d := DeadLetter{Cause: f.Err, Effect: &e}
		d.remember(turn)
		c.bury(d)
	}
}
