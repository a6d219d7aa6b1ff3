// Package lifecycle says what may happen to a box, and when something has to:
// as data and as pure functions. It asks no clock and no provider. Who uses it
// hands in the time and what the provider just said, performs at most one
// action, and tells what came of it.
//
// Four questions are answered here. Next and Box.Apply: what does this event
// make of a box? Decide: what has to be done with it now, if anything? Enter:
// how does a new turn get into it? Reconcile: what of all that the provider
// lists, and of all that we have on record, is right?
//
// A box is a cache: the branch on the remote is the truth. So whatever cannot
// be told for sure ends in Lost and is destroyed, and the next turn starts
// from the branch. What costs more than that is guarded instead: a turn at
// work is neither paused nor destroyed, and its time never runs out while
// somebody looks after it.
package lifecycle

import (
	"errors"
	"fmt"
)

// ErrRefused: the table has no such transition. The error that wraps it names
// the state and the event.
var ErrRefused = errors.New("a box does not do that")

// State of a box, as we know it.
type State string

// The states. A box is in Creating from the moment that it is asked for.
const (
	// Creating: it was asked for, and has not answered yet.
	Creating State = "creating"
	// Ready: it was made or resumed, and no turn has begun in it since. Such a
	// box is never paused: there is nothing in it that was not there before.
	Ready State = "ready"
	// Busy: a turn is at work in it.
	Busy State = "busy"
	// Idle: it runs, and its last turn has ended.
	Idle State = "idle"
	// Pausing: it was asked to pause.
	Pausing State = "pausing"
	// Paused: its files are kept, nothing runs and nothing is paid.
	Paused State = "paused"
	// Resuming: it was asked to wake for a turn, or woke without being asked. In
	// either case it was not probed yet.
	Resuming State = "resuming"
	// Lost: it is gone, or it is not what was left. It is never used again.
	Lost State = "lost"
	// Destroying: it was asked to end. A try that fails is repeated.
	Destroying State = "destroying"
	// Destroyed is the end.
	Destroyed State = "destroyed"
)

// Event is something that happened to a box.
type Event string

// The events. Each may be told twice: in the state that it leads to, it changes
// nothing.
const (
	// Made: the provider has it, and it has an id.
	Made Event = "made"
	// MakeFailed: nobody knows whether there is one now. If so, Reconcile finds it.
	MakeFailed Event = "make failed"
	// TurnBegun comes after an attach with a probe. See Box.Attach.
	TurnBegun Event = "turn begun"
	TurnEnded Event = "turn ended"
	// PauseAsked, like all that is asked, comes before the provider is called.
	PauseAsked  Event = "pause asked"
	PauseDone   Event = "pause done"
	PauseFailed Event = "pause failed"
	// ResumeAsked: a new turn wants it. Nothing else is a reason to wake a box.
	ResumeAsked Event = "resume asked"
	// ResumeDone: it runs, it was probed, and its marker is ours. See Box.Woken.
	ResumeDone   Event = "resume done"
	ResumeFailed Event = "resume failed"
	// Behind: it runs, and its marker is older than ours.
	Behind Event = "behind"
	// SeenRunning, SeenPaused and Gone are what the provider says when it is
	// looked at, at the time when the look was begun.
	SeenRunning Event = "seen running"
	SeenPaused  Event = "seen paused"
	Gone        Event = "gone"

	DestroyAsked  Event = "destroy asked"
	DestroyDone   Event = "destroy done"
	DestroyFailed Event = "destroy failed"
)

// States returns all states in the order of a box's life.
func States() []State {
	return []State{Creating, Ready, Busy, Idle, Pausing, Paused, Resuming, Lost, Destroying, Destroyed}
}

// Events returns all events.
func Events() []Event {
	return []Event{
		Made, MakeFailed, TurnBegun, TurnEnded, PauseAsked, PauseDone, PauseFailed,
		ResumeAsked, ResumeDone, ResumeFailed, Behind, SeenRunning, SeenPaused, Gone,
		DestroyAsked, DestroyDone, DestroyFailed,
	}
}

// Next returns the state that an event leads to. The error wraps ErrRefused.
func Next(from State, on Event) (State, error) {
	for _, t := range table() {
		if t.on == on && t.from == from {
			return t.to, nil
		}
	}
	return from, fmt.Errorf("%w: %q while %q", ErrRefused, on, from)
}
