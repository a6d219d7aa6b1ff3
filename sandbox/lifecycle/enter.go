package lifecycle

import "time"

// Step is how a turn gets into a box.
type Step string

// The ways into a box.
const (
	// Make one: there is none. Create finds one that was made and not heard of.
	Make Step = "make"
	// Use the one that runs: attach, which probes it, then begin.
	Use Step = "use"
	// Resume the one that is paused: ResumeAsked, attach with the TTL, compare
	// the marker (Box.Woken), extend what the attach has set, then begin.
	Resume Step = "resume"
	// Rebuild: destroy the one that there is, and make another.
	Rebuild Step = "rebuild"
	// Wait until Entry.At: it is changing its state.
	Wait Step = "wait"
)

// Entry is how the next turn gets into a box, and why so.
type Entry struct {
	Step   Step
	At     time.Time
	Reason string
}

// Enter says how a turn that begins now gets into the session's box; the zero
// Box is none. It is the only thing that ever resumes a box. A box whose time
// may not last for the whole turn is replaced here, because in the middle of
// the turn it is too late. Asked again for a turn at work, after a restart, it
// says Use.
func Enter(b Box, p Policy, now time.Time) Entry {
	settled := b.Since.Add(p.Settle)
	switch b.State {
	case Creating:
		return Entry{Step: Make, Reason: "it was asked for before"}
	case Busy:
		return Entry{Step: Use, Reason: "the turn is at work in it"}
	case Ready, Idle:
		if !p.enough(b, now) {
			return Entry{Step: Rebuild, Reason: "it may not run for as long as a turn may take"}
		}
		return Entry{Step: Use, Reason: "it runs"}
	case Pausing:
		if now.Before(settled) {
			return Entry{Step: Wait, At: settled, Reason: "it is being paused"}
		}
		return Entry{Step: Rebuild, Reason: "nobody heard that it was paused"}
	case Paused:
		return Entry{Step: Resume, Reason: "it is paused"}
	case Resuming:
		if !p.enough(b, now) {
			return Entry{Step: Rebuild, Reason: "it may not run for as long as a turn may take"}
		}
		return Entry{Step: Resume, Reason: "it is waking"}
	case Lost, Destroying:
		return Entry{Step: Rebuild, Reason: "it is not to be used again"}
	}
	return Entry{Step: Make, Reason: "there is none"}
}
