package lifecycle

import (
	"errors"
	"fmt"
	"time"

	"ship/sandbox"
)

// ErrStale: what is known of the expiry is too old to decide on, or older than
// the last thing that may have changed it. Ask the provider anew.
var ErrStale = errors.New("the expiry has to be read anew")

// Reading is what the provider said of a box's expiry. The zero Reading is
// never fresh.
type Reading struct {
	Expires time.Time
	// At is when it was asked, not when it answered.
	At time.Time
}

// Read is the reading that a listed box makes, for a list that was asked for at
// that time.
func Read(info sandbox.Info, asked time.Time) Reading {
	return Reading{Expires: info.Expires, At: asked}
}

// fresh returns an error that wraps ErrStale if the reading is not of now.
func (r Reading) fresh(b Box, p Policy, now time.Time) error {
	switch {
	case r.At.IsZero():
		return fmt.Errorf("%w: it never was", ErrStale)
	case r.At.After(now):
		return fmt.Errorf("%w: it is said to be read %s from now", ErrStale, r.At.Sub(now))
	case now.Sub(r.At) > p.Fresh:
		return fmt.Errorf("%w: it is %s old", ErrStale, now.Sub(r.At))
	case r.At.Before(later(b.Attached, later(b.Set, b.Since))):
		return fmt.Errorf("%w: the box was used since", ErrStale)
	}
	return nil
}

// Action is what has to be done with a box.
type Action string

// The actions. Each may be performed twice.
const (
	// Nothing until Decision.At. A zero time: until something happens.
	Nothing Action = "nothing"
	// Extend its expiry to Decision.At, which is later than it is.
	Extend Action = "extend"
	// Pause it. What it has that the branch has not is pushed before.
	Pause Action = "pause"
	// Destroy it. One that has no id was never heard of, and there is nothing to
	// call: what there may be of it is a stray.
	Destroy Action = "destroy"
	// Warn whoever waits for the turn that the box ends at Decision.At.
	Warn Action = "warn"
)

// Decision is at most one action, and why.
type Decision struct {
	Action Action
	At     time.Time
	Reason string
}

// maxTries is how often a pause is tried before the box is destroyed instead.
const maxTries = 3

// Decide says what has to be done with a box now. After it is done, or has
// failed, and that is noted (Apply, Extend, Warn), it has to be asked again,
// with a new reading. The error wraps ErrStale, and only a box that runs needs
// a reading at all.
func Decide(b Box, r Reading, p Policy, now time.Time) (Decision, error) {
	if b.runs() {
		if err := r.fresh(b, p, now); err != nil {
			return Decision{}, fmt.Errorf("box %q of %s: %w", b.ID, b.Session, err)
		}
	}
	due := p.due(b, now)
	if !due.At.IsZero() && !now.Before(due.At) {
		if due.Action == Warn {
			due.At = p.end(b)
		}
		return due, nil
	}
	if d, short := p.keep(b, r, due.At, now); short {
		return d, nil
	}
	wait := Decision{Action: Nothing, At: due.At, Reason: "nothing is due"}
	if b.State == Busy || b.runs() && due.At.IsZero() {
		wait.At = sooner(due.At, now.Add(p.Heartbeat))
	}
	return wait, nil
}

// Due is when somebody has to look at a box, by our record alone; zero: not
// before something happens. The heartbeats of a busy box are not in it: they
// are the matter of whoever runs the turn.
func Due(b Box, p Policy) time.Time { return p.due(b, time.Time{}).At }

// due is the next thing to be done but for its expiry, and when.
func (p Policy) due(b Box, now time.Time) Decision {
	switch b.State {
	case Creating:
		return Decision{Destroy, b.Since.Add(p.Settle), "nobody heard that it was made"}
	case Ready:
		limit := p.IdlePause
		if limit == 0 {
			limit = p.IdleDestroy
		}
		return Decision{Destroy, sooner(after(b.Since, limit), p.clear(b)), "no turn began in it"}
	case Busy:
		return p.dueBusy(b)
	case Idle:
		return p.dueIdle(b, now)
	case Pausing:
		if b.Tries >= maxTries {
			return Decision{Destroy, b.Since.Add(p.Settle), "it cannot be paused"}
		}
		return Decision{Pause, b.Since.Add(p.Settle), "nobody heard that it was paused"}
	case Paused:
		return Decision{Destroy, after(b.Rests(), p.IdleDestroy), "it was idle for long"}
	case Resuming:
		return Decision{Destroy, b.Since.Add(p.Settle), "nobody used it after it woke"}
	case Lost:
		return Decision{Destroy, b.Since, "it is not to be used again"}
	case Destroying:
		return Decision{Destroy, b.Since.Add(p.waits(b.Tries)), "nobody heard that it ended"}
	}
	return Decision{Action: Nothing}
}

// dueBusy: nothing but the provider's own cap ends a box with a turn in it.
func (p Policy) dueBusy(b Box) Decision {
	end := p.end(b)
	if end.IsZero() || b.Warned {
		return Decision{Destroy, end, "it may not run any longer"}
	}
	return Decision{Warn, end.Add(-p.Warn), "it may not run for much longer"}
}

// dueIdle: a pause, or the end if that is due already, as after a time when
// nobody looked. Before the cap a box is paused early, since nothing is kept of
// one that the provider ends.
func (p Policy) dueIdle(b Box, now time.Time) Decision {
	pause, destroy := after(b.Rests(), p.IdlePause), after(b.Rests(), p.IdleDestroy)
	if pause.IsZero() {
		return Decision{Destroy, sooner(destroy, p.clear(b)), "it was idle for long"}
	}
	if !destroy.IsZero() && !now.Before(destroy) {
		return Decision{Destroy, destroy, "it was idle for long"}
	}
	if b.Tries >= maxTries {
		return Decision{Destroy, b.Since, "it cannot be paused"}
	}
	pause = sooner(pause, p.clear(b))
	if b.Tries > 0 {
		pause = later(pause, b.Since.Add(p.waits(b.Tries)))
	}
	return Decision{Pause, pause, "it is idle"}
}

// keep says whether the expiry has to be moved away: from a turn at work, or
// from what is to be done with a box at rest. It is never moved nearer.
func (p Policy) keep(b Box, r Reading, due, now time.Time) (d Decision, short bool) {
	if !b.runs() {
		return Decision{}, false
	}
	need, want, reason := p.wanted(b, due, now)
	if !r.Expires.Before(need) {
		return Decision{}, false
	}
	again := b.Set.Add(p.Heartbeat)
	if b.Set.After(b.Attached) && !b.Until.Before(need) && now.Before(again) {
		return Decision{Nothing, sooner(due, again), "the provider was asked just now, and grants less"}, true
	}
	return Decision{Extend, want, reason}, true
}

// wanted is the expiry that a running box must have, and the one that it gets
// if it has not.
func (p Policy) wanted(b Box, due, now time.Time) (need, want time.Time, reason string) {
	switch {
	case b.State == Busy: // a turn that nobody ends does not keep its box for ever
		last := b.Begun.Add(p.TurnTimeout + p.Margin)
		need, want, reason = sooner(now.Add(p.TTL-p.Heartbeat), last), sooner(now.Add(p.TTL), last), "a turn is at work"
	case due.IsZero():
		need, want, reason = now.Add(p.TTL-p.Heartbeat), now.Add(p.TTL), "it is kept"
	default:
		need, want, reason = due.Add(p.Settle), due.Add(p.TTL), "it rests until then"
	}
	need = later(need, b.Until) // an attach may have brought it nearer
	end := p.end(b)
	return sooner(need, end), sooner(later(want, need), end), reason
}
