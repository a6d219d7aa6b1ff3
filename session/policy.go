package session

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ship/sandbox/lifecycle"
)

// Policy is what the operator decided, as far as Step needs it.
type Policy struct {
	// Model is the default, "provider/name"; Models are all that may be chosen.
	Model  string
	Models []string
	// BudgetUSD is what a turn may spend unless a person set another budget,
	// and MaxBudgetUSD what a person may set.
	BudgetUSD    float64
	MaxBudgetUSD float64
	// Extend: people may have it go on past a budget.
	Extend bool
	// BoxUSDPerHour is what an hour of a box costs.
	BoxUSDPerHour float64
	// TurnTimeout is a turn's wall clock.
	TurnTimeout time.Duration
	// Boxes says when a box is paused, destroyed or replaced.
	Boxes lifecycle.Policy
	// Pace of reports to a platform's threads, in a turn that has been running
	// for a while.
	Pace func(platform string, running time.Duration) Pace
	// Help and Status render the answers to the help and the status verb.
	Help   func(platform string) string
	Status func(platform string, v View) string
}

// Pace says how often a thread is reported to.
type Pace struct {
	// Every is the least time between two reports. A change of phase does not
	// wait for it.
	Every time.Duration
	// Least is what even a change of phase waits for.
	Least time.Duration
	// Silence is the most time between two reports while a turn runs, for
	// platforms that take silence for death. Zero: there is none.
	Silence time.Duration
}

// Limits of a session's own growth.
const (
	maxWaiting = 20
	// maxAsking is how many bytes a request may have that waits for the answer to
	// a question: what is said beside that is added to it.
	maxAsking = 64 << 10
	// maxSaid bounds the ids of what such a request was said in, in bytes. What is
	// edited beyond that is not heard.
	maxSaid     = 2 << 10
	maxRefused  = 32
	maxVoices   = 8
	maxPrepares = 4
	maxLeft     = 4
	maxLegs     = 20
	// maxKept is how many bytes the requests of a turn that succeeded may take
	// afterwards, with keptRequest for each that is not the first.
	maxKept     = 200
	keptRequest = 60
	// giveUp is when an effect that keeps failing is put aside.
	giveUp = 24 * time.Hour
	// sweepAfter is longer than the freeze of an owner that we promise to heal
	// plus the time-out of an effect.
	sweepAfter = 90 * time.Second
	// maxWorkerAttempts bounds repeats of what happens in a box, but for what
	// waits for the code host: a turn's beginning and, its rights being good for
	// half an hour more, its end.
	maxWorkerAttempts = 5
	prepareWaits      = 5 * time.Minute
	publishWaits      = 20 * time.Minute
)

// choose returns the model that a request or the session names, or the
// sentence that says why it cannot be used.
func (p Policy) choose(name string) (model, problem string) {
	if name == "" {
		return p.Model, ""
	}
	if slices.Contains(p.Models, name) {
		return name, ""
	}
	for _, m := range p.Models {
		if _, short, ok := strings.Cut(m, "/"); ok && short == name {
			return m, ""
		}
	}
	return "", fmt.Sprintf("I don't have a model called `%s`. Choose one of: `%s`.",
		printable(name), strings.Join(p.Models, "`, `"))
}

// printable keeps a foreign word harmless inside a sentence of ours.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune("`<>@[]()*_|", r) {
			return -1
		}
		return r
	}, s)
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

// backoff is the wait before the next attempt: exponential with jitter that
// is derived from the effect, so that Step stays a function.
func backoff(e Effect) time.Duration {
	d := time.Second << min(e.Attempts, 8)
	d = min(d, 5*time.Minute)
	jitter := time.Duration(hash32(e.ID, fmt.Sprint(e.Attempts))%1000) * d / 2000
	return d/2 + jitter
}
