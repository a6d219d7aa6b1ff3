package turn

import (
	"context"
	"time"

	"ship/session"
)

// Places says how many places for boxes at work this process has, and how many
// of its sessions wait for one, by the limit that is reached.
func (w *Worker) Places() (taken int, waiting map[session.Full]int) { return w.slots.count() }

// Heed has sessions that wait for a place look again when they are named, until
// ctx ends or nothing more can be heard. Without it they look by the clock.
func (w *Worker) Heed(ctx context.Context, woken <-chan session.ID) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case id, ok := <-woken:
			if !ok {
				return nil
			}
			w.slots.wake(id)
		}
	}
}

func (s *slots) count() (taken int, waiting map[session.Full]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, until := range s.taken {
		if !until.After(time.Now()) {
			delete(s.taken, id)
		}
	}
	waiting = map[session.Full]int{}
	for _, w := range s.waiting {
		if w.full != "" {
			waiting[w.full]++
		}
	}
	return len(s.taken), waiting
}
