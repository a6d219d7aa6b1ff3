package session

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Step folds one event into a state. It is a pure function: no clock but the
// event's, no randomness, and the state given is not changed.
func Step(s State, e Event, p Policy) State {
	n := &step{State: s.clone(), policy: p, now: e.At.Truncate(time.Millisecond)}
	switch e.Kind {
	case Asked:
		n.asked(*e.Request)
	case Amended:
		n.amended(*e.Request, e.Before)
	case Ordered:
		n.obey(*e.Request, "")
	case Done:
		n.done(*e.Performed)
	case Broke:
		n.broke(*e.Failed)
	case Moved:
		n.moved(*e.Progress)
	case Taken:
		n.taken()
	case Closed:
		n.closed(e)
	case Vanished:
		n.vanished(*e.Lost)
	case Poisoned:
		n.poisoned(e)
	case Replayed:
		n.replayed(e)
	case Tick: // the clock alone: what follows is below
	}
	n.follow()
	return n.State
}

// step is a state on its way to the next.
type step struct {
	State
	policy Policy
	now    time.Time
}

// clone copies all that Step may write to.
func (s State) clone() State {
	s.Threads = slices.Clone(s.Threads)
	if s.Asking != nil {
		a := *s.Asking
		s.Asking = &a
	}
	s.Pending = slices.Clone(s.Pending)
	s.Waiting = slices.Clone(s.Waiting)
	s.Refused = slices.Clone(s.Refused)
	s.Left = slices.Clone(s.Left)
	if s.Life != nil {
		life := *s.Life
		s.Life = &life
	}
	if s.PR != nil {
		pr := *s.PR
		s.PR = &pr
	}
	if s.Check != nil {
		c := *s.Check
		s.Check = &c
	}
	if s.Turn != nil {
		t := *s.Turn
		t.Requests = slices.Clone(t.Requests)
		if t.Outcome != nil {
			o := *t.Outcome
			t.Outcome = &o
		}
		s.Turn = &t
	}
	return s
}

// effectID derives an id from the session and a cause. Its shape is a UUID of
// version 4, because some platforms accept a client's id only in that shape.
func effectID(id ID, cause ...string) string {
	sum := sha256.Sum256([]byte("ship\x00" + string(id) + "\x00" + strings.Join(cause, "\x00")))
	b := sum[:16]
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func hash32(parts ...string) uint32 {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return binary.BigEndian.Uint32(sum[:4])
}

// add decides an effect. The cause makes its id: the same cause, the same id,
// and an effect that is pending already is not decided twice.
func (n *step) add(e Effect, cause ...string) {
	e.ID = effectID(n.ID, append(cause, string(e.Kind))...)
	if slices.ContainsFunc(n.Pending, func(p Effect) bool { return p.ID == e.ID }) {
		return
	}
	e.Since, e.Turn = n.now, n.Turns
	n.Pending = append(n.Pending, e)
}

// drop removes an effect and returns it.
func (n *step) drop(id string) (Effect, bool) {
	i := slices.IndexFunc(n.Pending, func(p Effect) bool { return p.ID == id })
	if i < 0 {
		return Effect{}, false
	}
	e := n.Pending[i]
	n.Pending = slices.Delete(n.Pending, i, i+1)
	return e, true
}

// say posts a sentence of ours where r was asked, once.
func (n *step) say(r Request, text string) {
	n.add(Effect{Kind: Say, By: r.Thread.Platform, Thread: &r.Thread, Text: text, Ref: r.Ref},
		"request", r.ID)
}

// deny says that something will not be done.
func (n *step) deny(r Request, text string) {
	n.add(Effect{Kind: Say, By: r.Thread.Platform, Thread: &r.Thread, Text: text, Ref: r.Ref, Refusal: true},
		"request", r.ID)
}

// taken: the last owner vanished. It may be frozen in the middle of a request
// and wake later, so what it doubles is looked for after that.
func (n *step) taken() {
	for _, v := range n.Threads {
		n.add(Effect{Kind: Sweep, By: v.Platform, Thread: &v.Thread, Check: n.Check, Due: n.now.Add(sweepAfter)},
			"sweep", v.Key, n.now.UTC().Format(time.RFC3339))
	}
}

// closed: a pull request was closed or merged. Unless it is one of the past,
// nobody waits for the work. Another repository has pull requests of the same
// numbers, and whoever may write there can name a branch as this session's.
func (n *step) closed(e Event) {
	if n.PR == nil || e.PR != 0 && e.PR != n.PR.Number || e.Key != "" && n.PR.Key != "" && e.Key != n.PR.Key {
		return
	}
	n.dismiss("The pull request was closed")
	n.Closed = true
	if n.Busy() {
		n.halt(byClosing)
		return
	}
	n.discard()
}

func (n *step) poisoned(e Event) {
	if e.Request != nil {
		n.deny(*e.Request, "Something in that request makes me fail again and again, so I put it aside. Please ask in other words; whoever runs me finds the cause in `ship deliveries`.")
	}
}
