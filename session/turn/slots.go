package turn

import (
	"context"
	"slices"
	"sync"
	"time"

	"ship/session"
)

// slots are the places for boxes at work on this machine: first come, first
// served, and who waits can be told the place in the queue.
type slots struct {
	mu      sync.Mutex
	max     int
	held    map[session.ID]time.Time // until when at most
	waiting []*waiter
}

type waiter struct {
	id    session.ID
	until time.Time
	// news carries the place, zero for "it's your turn". Room for one: a newer
	// place replaces an older one.
	news chan int
	last int
}

func newSlots(limit int) *slots {
	return &slots{max: limit, held: map[session.ID]time.Time{}}
}

// acquire returns once the session has a place, which it keeps until release,
// or until the time given: a session whose lease went elsewhere cannot release
// it. Acquiring what is held already returns at once.
func (s *slots) acquire(ctx context.Context, id session.ID, until time.Time, place func(int)) error {
	w, ok := s.enter(id, until)
	if ok {
		return nil
	}
	defer s.leave(w)
	for {
		select {
		case n := <-w.news:
			if n == 0 {
				return nil
			}
			place(n)
		case <-ctx.Done():
			if s.has(w) {
				s.release(id)
			}
			return context.Cause(ctx)
		}
	}
}

func (s *slots) enter(id session.ID, until time.Time) (*waiter, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	_, again := s.held[id]
	if again || len(s.held) < s.max && len(s.waiting) == 0 {
		s.held[id] = until
		return nil, true
	}
	w := &waiter{id: id, until: until, news: make(chan int, 1)}
	s.waiting = append(s.waiting, w)
	s.tell()
	return w, false
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
	s.expire()
	s.grant()
	s.tell()
}

func (s *slots) grant() {
	for len(s.waiting) > 0 && len(s.held) < s.max {
		w := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.held[w.id] = w.until
		w.hear(0)
	}
}

func (s *slots) expire() {
	now := time.Now()
	for id, until := range s.held {
		if now.After(until) {
			delete(s.held, id)
		}
	}
}

func (s *slots) tell() {
	for i, w := range s.waiting {
		w.hear(i + 1)
	}
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
