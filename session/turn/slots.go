package turn

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"ship/session"
)

// slots are this process's part of the places for boxes at work: it waits in
// the line of all workers for its sessions, and tells them where they are.
type slots struct {
	places session.Places
	// worker names this process: the one after it counts its own boxes.
	worker string
	most   session.Most
	log    *slog.Logger

	mu      sync.Mutex
	taken   map[session.ID]time.Time // until when
	waiting map[session.ID]*waiter
}

type waiter struct {
	// nudge says that it is worth asking again. Room for one.
	nudge chan struct{}
	full  session.Full
}

const (
	// stayInLine is how long a session that nobody asks for keeps others from
	// passing it: longer than it takes until another worker has it.
	stayInLine = 2 * time.Minute
	// releaseTime is how long giving a place back may take.
	releaseTime = 5 * time.Second
)

func newSlots(c Config) *slots {
	return &slots{
		places: c.Places, worker: rand.Text(), most: session.Most{Worker: c.Slots, Person: c.PerPerson, All: c.Total}, log: c.Log,
		taken: map[session.ID]time.Time{}, waiting: map[session.ID]*waiter{},
	}
}

// stake is what a turn asks for.
func (s *slots) stake(job session.Job, keep time.Duration) session.Stake {
	st := session.Stake{ID: job.State.ID, Epoch: job.Lease.Epoch, Worker: s.worker, Keep: keep, Wait: stayInLine, Most: s.most}
	if t := job.State.Turn; t != nil && len(t.Requests) > 0 {
		st.Person = t.Requests[0].By.Identity()
	}
	return st
}

// acquire returns once the session has a place, and calls tell with its place in
// the line whenever that is another. A store that does not answer is waited for.
// When ctx ends the session leaves the line, unless another owner goes on.
func (s *slots) acquire(ctx context.Context, st session.Stake, tell func(int)) error {
	w := s.join(st.ID)
	defer s.leave(st.ID)
	line, told, failed := 0, 0, false
	for {
		at, err := s.take(ctx, st)
		switch {
		case err == nil && at.Line == 0:
			return nil
		case err == nil:
			line, failed = at.Line, false
			s.note(w, at.Full)
			if n := roundPlace(line); n != told {
				told = n
				tell(n)
			}
		case !failed && ctx.Err() == nil:
			failed = true
			s.log.WarnContext(ctx, "ask for a place for a box, and again until there is an answer", "err", err)
		}
		select {
		case <-w.nudge:
		case <-time.After(askAgain(line)):
		case <-ctx.Done():
			s.letGo(ctx, st)
			return context.Cause(ctx)
		}
	}
}

// askAgain is how long who has a place in the line waits before asking whether
// it is another: whoever has got a place is told of it, but the word may be
// lost. Those far behind ask less often, so that thousands cost little.
func askAgain(line int) time.Duration {
	return min(2*time.Second+time.Duration(line)*20*time.Millisecond, 40*time.Second)
}

// hold takes a place even when none is free: the agent is at work already, set
// to it by an earlier process perhaps, and has to be watched. If the store does
// not answer, the place that was taken to prepare the box stays.
func (s *slots) hold(ctx context.Context, st session.Stake) {
	st.AtWork = true
	if _, err := s.take(ctx, st); err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "keep the place of a box", "err", err)
	}
}

func (s *slots) take(ctx context.Context, st session.Stake) (session.Standing, error) {
	at, err := s.places.Take(ctx, st)
	if err != nil {
		return at, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.Line == 0 {
		s.taken[st.ID] = time.Now().Add(st.Keep)
	}
	s.rouse(at.Next)
	return at, nil
}

// release gives the place to whoever waits longest and may have it. Twice is
// fine. When it fails, the place is free when its time is over.
func (s *slots) release(ctx context.Context, id session.ID, epoch int64) error {
	next, err := s.places.Release(ctx, id, epoch)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.taken, id)
	s.rouse(next)
	return err
}

// letGo gives the place back because of an error, or the end of ctx. When
// another owner goes on with the session, the place is that one's.
func (s *slots) letGo(ctx context.Context, st session.Stake) {
	if passedOn(ctx) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.taken, st.ID)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime) // a stop has ended it
	defer cancel()
	if err := s.release(ctx, st.ID, st.Epoch); err != nil {
		s.log.WarnContext(ctx, "give the place of a box back", "err", err)
	}
}

// passedOn: another owner goes on with the session.
func passedOn(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, session.ErrLeaseLost) || errors.Is(cause, session.ErrShutdown)
}

func (s *slots) join(id session.ID) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &waiter{nudge: make(chan struct{}, 1)}
	s.waiting[id] = w
	return w
}

func (s *slots) leave(id session.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, id)
}

func (s *slots) note(w *waiter, full session.Full) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.full = full
}

// wake has sessions ask again that wait here.
func (s *slots) wake(ids ...session.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rouse(ids)
}

// rouse is called with the lock held.
func (s *slots) rouse(ids []session.ID) {
	for _, id := range ids {
		w := s.waiting[id]
		if w == nil {
			continue
		}
		select {
		case w.nudge <- struct{}{}:
		default:
		}
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
