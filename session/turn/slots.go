package turn

import (
	"context"
	"slices"
	"sync"
	"time"

	"ship/session"
)

// slots are the places for boxes at work on this machine: first come, first
// served, and who waits can be told the place in the queue. Who has as many
// places as one person may have lets others pass.
type slots struct {
	mu        sync.Mutex
	max       int
	perPerson int // zero: no limit
	held      map[session.ID]holding
	waiting   []*waiter
}

// claim is what a session asks for: a place for a person's turn, for how long
// at most once it has it.
type claim struct {
	id     session.ID
	person string
	keep   time.Duration
}

// holding is a place that is taken.
type holding struct {
	person string
	until  time.Time
}

type waiter struct {
	claim
	// news carries the place, zero for "it's your turn". Room for one: a newer
	// place replaces an older one.
	news chan int
	last int
}

// lookForLapsed is how often somebody who waits looks for a place that nobody
// released.
const lookForLapsed = time.Minute

func newSlots(limit, perPerson int) *slots {
	return &slots{max: limit, perPerson: perPerson, held: map[session.ID]holding{}}
}

// acquire returns once the session has a place, which it keeps until release,
// or for the time given: a session whose lease went elsewhere cannot release
// it. Acquiring what is held already returns at once.
func (s *slots) acquire(ctx context.Context, c claim, place func(int)) error {
	w, ok := s.enter(c)
	if ok {
		return nil
	}
	defer s.leave(w)
	lapse := time.NewTicker(lookForLapsed)
	defer lapse.Stop()
	for {
		select {
		case <-lapse.C:
			s.serve()
		case n := <-w.news:
			if n == 0 {
				return nil
			}
			place(n)
		case <-ctx.Done():
			if s.has(w) {
				s.release(c.id)
			}
			return context.Cause(ctx)
		}
	}
}

// hold gives the session a place even when none is free: its agent is at work
// already, set to it by an earlier process perhaps, and has to be watched.
func (s *slots) hold(c claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(c)
}

// take is called with the lock held.
func (s *slots) take(c claim) {
	s.held[c.id] = holding{person: c.person, until: time.Now().Add(c.keep)}
}

func (s *slots) enter(c claim) (*waiter, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	if _, again := s.held[c.id]; again {
		s.take(c)
		return nil, true
	}
	w := &waiter{claim: c, news: make(chan int, 1)}
	s.waiting = append(s.waiting, w)
	s.grant()
	s.tell()
	_, granted := s.held[c.id]
	return w, granted
}

func (s *slots) leave(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.tell()
	}
}

// has: the place was given although the waiter did not hear of it.
func (s *slots) has(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.Contains(s.waiting, w)
}

// release gives the place to whoever waits longest. Releasing twice is fine.
func (s *slots) release(id session.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, id)
	s.next()
}

// serve gives places that have lapsed to those who wait.
func (s *slots) serve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next()
}

// next is called with the lock held.
func (s *slots) next() {
	s.expire()
	s.grant()
	s.tell()
}

func (s *slots) grant() {
	for i := 0; i < len(s.waiting) && len(s.held) < s.max; {
		w := s.waiting[i]
		if s.full(w.person) {
			i++
			continue
		}
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.take(w.claim)
		w.hear(0)
	}
}

// full: the person has as many places as one may have.
func (s *slots) full(person string) bool {
	n := 0
	for _, h := range s.held {
		if h.person == person {
			n++
		}
	}
	return s.perPerson > 0 && n >= s.perPerson
}

func (s *slots) expire() {
	now := time.Now()
	for id, h := range s.held {
		if now.After(h.until) {
			delete(s.held, id)
		}
	}
}

func (s *slots) tell() {
	for i, w := range s.waiting {
		w.hear(roundPlace(i + 1))
	}
}

// roundPlace is a place as it is told: up to ten as it is, and from there rounded up
// to its first figure. Whenever somebody leaves the queue all others move up, and
// each word of that is a commit and a message, of which platforms take few.
func roundPlace(place int) int {
	step := 1
	for place > 10*step {
		step *= 10
	}
	return (place + step - 1) / step * step
}

// hear is called with the lock held, so that there is one sender at a time.
func (w *waiter) hear(place int) {
	if place == w.last && place != 0 {
		return
	}
	w.last = place
	select {
	case <-w.news:
	default:
	}
	w.news <- place
}
