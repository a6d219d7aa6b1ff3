package lifecycle

import (
	"errors"
	"fmt"
	"time"
)

// ErrUnprobed: a turn would begin in a box that nobody probed since it came to
// rest, so nobody knows whether it answers.
var ErrUnprobed = errors.New("the box was not probed")

// Box is what we know of one box. It is a value: each method returns what it
// becomes. All times are by one clock, that of whoever keeps the record; what
// a provider says by its own has to be converted before.
type Box struct {
	// Session whose box it is: sandbox.Spec.Key.
	Session string
	// ID by the provider; empty before it is Made.
	ID string
	// Generation of the lease under which it was made, as in its label.
	Generation int64
	State      State
	// Since is when it came into its state, or when it was last asked for what
	// the state is about.
	Since time.Time
	// Born is when it was made or resumed: it was not running before, so the
	// provider's cap is counted from here. A resume starts a new span.
	Born time.Time
	// Begun is when the turn at work began, or the last one.
	Begun time.Time
	// Ended is when the last turn ended.
	Ended time.Time
	// Active is when something last happened that counts. See Activity.
	Active time.Time
	// Attached is when somebody last connected to it and got an answer. That may
	// have changed its expiry.
	Attached time.Time
	// Until is what we last set its expiry to, and Set when we did.
	Until time.Time
	Set   time.Time
	// Marker counts the turns that ended in it. The same number is written into
	// the box, so that one which woke up without its last files can be told.
	Marker int64
	// Tries to pause or to destroy it that were not heard of or failed, in a row.
	Tries int
	// Warned: that its time is nearly over was told.
	Warned bool
}

// New is a box that is about to be asked for, because somebody asked for work.
func New(session string, generation int64, at time.Time) Box {
	return Box{Session: session, Generation: generation, State: Creating, Since: at, Born: at, Active: at}
}

// Apply returns the box after an event at that time. A look (SeenRunning,
// SeenPaused, Gone) that was begun before the box came into its state says
// nothing of it, and changes nothing. The error wraps ErrRefused or
// ErrUnprobed; the box is then what it was.
func (b Box) Apply(e Event, at time.Time) (Box, error) {
	to, err := Next(b.State, e)
	if err != nil {
		return b, fmt.Errorf("box %q of %s: %w", b.ID, b.Session, err)
	}
	if isLook(e) && at.Before(b.Since) {
		return b, nil
	}
	if e == TurnBegun && b.State != Busy && b.Attached.Before(b.Since) {
		return b, fmt.Errorf("box %q of %s: %w", b.ID, b.Session, ErrUnprobed)
	}
	at = later(at, b.Since) // a clock that was set back ages nothing
	if to != b.State {
		return b.enter(to, e, at), nil
	}
	return b.again(e, at), nil
}

// isLook: the event is what the provider said when it was looked at.
func isLook(e Event) bool { return e == SeenRunning || e == SeenPaused || e == Gone }

// enter notes what a new state brings with it.
func (b Box) enter(to State, e Event, at time.Time) Box {
	since := b.Since
	b.State, b.Since = to, at
	switch to {
	case Busy:
		b.Begun, b.Active, b.Tries = at, later(b.Active, at), 0 // a turn begins with a message
	case Idle:
		if e == TurnEnded {
			b.Ended, b.Marker = at, b.Marker+1
		}
	case Pausing:
		b.Tries++
	case Paused:
		b.Tries, b.Until = 0, time.Time{} // what is paused does not expire
	case Resuming:
		b.Born, b.Warned = at, false
		if e == SeenRunning { // nobody knows since when: the worst of it
			b.Born = since
		}
	case Destroying:
		b.Tries = 1
	}
	return b
}

// again notes what is told of a state that the box is in already: one more try.
func (b Box) again(e Event, at time.Time) Box {
	switch e {
	case PauseAsked, DestroyAsked:
		b.Since, b.Tries = at, b.Tries+1
	case ResumeAsked, DestroyFailed:
		b.Since = at
	}
	return b
}

// Attach notes that somebody connected to the box at that time, when the call
// was begun, and that it answered a probe.
func (b Box) Attach(at time.Time) Box {
	b.Attached = later(b.Attached, at)
	return b
}

// Extend notes that its expiry was set at that time, when the call was begun.
func (b Box) Extend(until, at time.Time) Box {
	b.Until, b.Set = later(b.Until, until), later(b.Set, at)
	return b
}

// Warn notes that the end of its time was told.
func (b Box) Warn() Box {
	b.Warned = true
	return b
}

// Woken is what a resume led to, by the marker that the box holds.
func (b Box) Woken(marker int64) Event {
	if marker < b.Marker {
		return Behind
	}
	return ResumeDone
}

// Activity is a kind of thing that happens around a box.
type Activity string

// What happens around a box. Only the first three are work. The others are us
// and people who look on, and a box that is looked at is still idle.
const (
	Message    Activity = "message"
	ToolCall   Activity = "tool call"
	FileChange Activity = "file change"
	Probe      Activity = "probe"
	Poll       Activity = "poll"
	Preview    Activity = "preview"
	StatusLook Activity = "status look"
)

// Counts tells whether it starts the idle clock anew.
func (a Activity) Counts() bool { return a == Message || a == ToolCall || a == FileChange }

// Touch notes an activity. The idle clock never goes back.
func (b Box) Touch(a Activity, at time.Time) Box {
	if a.Counts() {
		b.Active = later(b.Active, at)
	}
	return b
}

// Rests is since when nothing was done in it: its idle clock.
func (b Box) Rests() time.Time { return later(b.Active, b.Ended) }

// runs: the provider keeps it running, for money and up to its expiry.
func (b Box) runs() bool { return b.State == Ready || b.State == Busy || b.State == Idle }

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sooner returns the earlier of two times, where zero means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// after returns a time so much later, where zero means never.
func after(t time.Time, d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return t.Add(d)
}
