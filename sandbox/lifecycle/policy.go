package lifecycle

import (
	"errors"
	"fmt"
	"time"
)

// ErrPolicy: these limits contradict each other.
var ErrPolicy = errors.New("not a policy for boxes")

// Policy is what the operator and the provider allow.
type Policy struct {
	// IdlePause is how long a box may be idle before it is paused. Zero: never,
	// as for a provider that cannot.
	IdlePause time.Duration
	// IdleDestroy is how long it may be idle, running or paused, before it is
	// destroyed. Zero: never.
	IdleDestroy time.Duration
	// TurnTimeout is the longest that an agent may work in one turn, and Margin
	// what may come after that: to push, to tell, to let go.
	TurnTimeout time.Duration
	Margin      time.Duration
	// Cap is the longest that the provider lets a box run at a stretch. Zero: as
	// long as one likes. Warn is how long before its end it is told, if a turn is
	// at work then.
	Cap  time.Duration
	Warn time.Duration
	// TTL is how far ahead the expiry of a busy box is kept: how long it lives
	// when all of ship is gone.
	TTL time.Duration
	// Heartbeat is how often a busy box is looked at.
	Heartbeat time.Duration
	// Fresh is how old what the provider said of an expiry may be.
	Fresh time.Duration
	// Settle is how long making, pausing and resuming may take before it counts
	// as not heard of.
	Settle time.Duration
	// Retry is the wait after a pause or an end that failed. It doubles.
	Retry time.Duration
}

// Default is a policy for a provider that can pause and sets no cap.
func Default() Policy {
	return Policy{
		IdlePause: 5 * time.Minute, IdleDestroy: time.Hour,
		TurnTimeout: time.Hour, Margin: 30 * time.Minute, Warn: 20 * time.Minute,
		TTL: 10 * time.Minute, Heartbeat: 3 * time.Minute, Fresh: 30 * time.Second,
		Settle: 2 * time.Minute, Retry: 15 * time.Second,
	}
}

// Validate returns all that is wrong with a policy, each as an error that wraps
// ErrPolicy.
func (p Policy) Validate() error {
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrPolicy}, args...)...))
		}
	}
	for _, d := range p.durations() {
		refuse(d.of < 0, "%s is negative", d.name)
		refuse(d.of == 0 && !d.never, "%s is not set", d.name)
	}
	refuse(p.IdleDestroy > 0 && p.IdlePause >= p.IdleDestroy,
		"a box is paused after %s, but destroyed after %s already", p.IdlePause, p.IdleDestroy)
	refuse(p.Cap > 0 && p.Cap <= p.TurnTimeout+p.Margin,
		"a box runs for at most %s, which is too short for a turn of %s and %s to finish it", p.Cap, p.TurnTimeout, p.Margin)
	refuse(p.Cap > 0 && p.TTL > p.Cap, "a box cannot be kept for %s, as it runs for at most %s", p.TTL, p.Cap)
	refuse(p.Cap > 0 && p.Warn >= p.Cap, "a warning %s before the end comes before the start", p.Warn)
	refuse(3*p.Heartbeat > p.TTL, "a box that expires within %s must be looked at three times in between, not every %s", p.TTL, p.Heartbeat)
	refuse(p.Fresh > p.Heartbeat, "what was said %s ago is older than the last heartbeat", p.Fresh)
	refuse(p.Settle > p.TTL, "a box that expires within %s is gone before %s have passed", p.TTL, p.Settle)
	return errors.Join(errs...)
}

// duration is one of a policy's, with its name for people.
type duration struct {
	name  string
	of    time.Duration
	never bool // zero means that it never happens
}

func (p Policy) durations() []duration {
	return []duration{
		{"idle pause", p.IdlePause, true}, {"idle destroy", p.IdleDestroy, true},
		{"turn timeout", p.TurnTimeout, false}, {"margin", p.Margin, false},
		{"cap", p.Cap, true}, {"warn", p.Warn, p.Cap == 0},
		{"ttl", p.TTL, false}, {"heartbeat", p.Heartbeat, false}, {"fresh", p.Fresh, false},
		{"settle", p.Settle, false}, {"retry", p.Retry, false},
	}
}

// end is when the provider ends the box whatever happens; zero: never.
func (p Policy) end(b Box) time.Time { return after(b.Born, p.Cap) }

// clear is when a resting box should be off before that end; zero: never.
func (p Policy) clear(b Box) time.Time {
	if p.Cap == 0 {
		return time.Time{}
	}
	return p.end(b).Add(-p.Margin)
}

// enough tells whether a whole turn that began now would end before the box.
func (p Policy) enough(b Box, now time.Time) bool {
	return p.Cap == 0 || !now.Add(p.TurnTimeout+p.Margin).After(p.end(b))
}

// waits is how long to wait after so many tries.
func (p Policy) waits(tries int) time.Duration {
	return min(p.Retry<<min(max(tries, 1)-1, 6), 10*time.Minute)
}
