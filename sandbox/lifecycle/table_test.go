package lifecycle

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestTableHasNoEntryTwice(t *testing.T) {
	t.Parallel()
	seen := map[[2]string]bool{}
	for _, tr := range table() {
		key := [2]string{string(tr.from), string(tr.on)}
		if seen[key] {
			t.Errorf("%s × %s is there twice", tr.from, tr.on)
		}
		seen[key] = true
		if !slices.Contains(States(), tr.from) || !slices.Contains(States(), tr.to) || !slices.Contains(Events(), tr.on) {
			t.Errorf("%+v: not a state or an event", tr)
		}
	}
}

// TestEveryPair: every state with every event either leads somewhere, and then
// the same event told again leads nowhere else, or is refused by name.
func TestEveryPair(t *testing.T) {
	t.Parallel()
	allowed := 0
	for _, s := range States() {
		for _, e := range Events() {
			to, err := Next(s, e)
			if err != nil {
				if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), string(s)) || !strings.Contains(err.Error(), string(e)) || to != s {
					t.Errorf("%s × %s: %q, %v", s, e, to, err)
				}
				continue
			}
			allowed++
			if again, err := Next(to, e); err != nil || again != to {
				t.Errorf("%s × %s is %s, but told twice it is %s, %v", s, e, to, again, err)
			}
		}
	}
	entries := 0
	for _, tr := range table() {
		if tr.to != "" {
			entries++
		}
	}
	if allowed != entries {
		t.Errorf("%d pairs are allowed, the table has %d", allowed, entries)
	}
	if _, err := Next("", Made); !errors.Is(err, ErrRefused) {
		t.Errorf("no state at all: %v", err)
	}
}

// into returns the states from which an event leads into a state, repeats apart.
func into(to State) map[Event][]State {
	m := map[Event][]State{}
	for _, tr := range table() {
		if tr.to == to && tr.from != to {
			m[tr.on] = append(m[tr.on], tr.from)
		}
	}
	return m
}

// TestShape holds what the package promises by the table's shape alone.
func TestShape(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		to   State
		from map[Event][]State
	}{
		{Creating, map[Event][]State{}},
		{Ready, map[Event][]State{Made: {Creating}, ResumeDone: {Resuming}}},
		{Busy, map[Event][]State{TurnBegun: {Ready, Idle}}},
		{Idle, map[Event][]State{TurnEnded: {Busy}, PauseFailed: {Pausing}}},
		{Pausing, map[Event][]State{PauseAsked: {Idle}}},
		{Resuming, map[Event][]State{ResumeAsked: {Paused}, SeenRunning: {Paused}}},
		{Destroyed, map[Event][]State{DestroyDone: {Destroying}, Gone: {Destroying}}},
	} {
		got := into(c.to)
		if len(got) != len(c.from) {
			t.Errorf("into %s: %v, want %v", c.to, got, c.from)
		}
		for e, states := range c.from {
			if !slices.Equal(got[e], states) {
				t.Errorf("into %s by %q: from %v, want %v", c.to, e, got[e], states)
			}
		}
	}
}

// TestEverythingCanEnd: whatever state a box is in, it can be asked to end, and
// then ends.
func TestEverythingCanEnd(t *testing.T) {
	t.Parallel()
	for _, s := range States() {
		if s == Destroyed {
			continue
		}
		asked, err := Next(s, DestroyAsked)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if ended, err := Next(asked, DestroyDone); err != nil || ended != Destroyed {
			t.Errorf("%s ends as %s, %v", s, ended, err)
		}
	}
	for _, e := range Events() {
		if to, err := Next(Destroyed, e); err == nil && to != Destroyed {
			t.Errorf("a destroyed box becomes %s by %q", to, e)
		}
	}
}
