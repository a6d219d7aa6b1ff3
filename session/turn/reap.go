package turn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ship/sandbox"
	"ship/session"
)

// reapEvery is how often boxes are held against the sessions.
const reapEvery = 5 * time.Minute

// Reap destroys strays at once and every few minutes, until ctx ends: boxes
// that no session has or is about to have. Reaping a box twice is reaping it
// once. state returns a session's state, or session.ErrUnknown.
func (w *Worker) Reap(ctx context.Context, state func(context.Context, session.ID) (session.State, error)) error {
	tick := time.NewTicker(reapEvery)
	defer tick.Stop()
	for {
		if err := w.reapOnce(ctx, state); err != nil && ctx.Err() == nil {
			w.Log.Warn("look for stray boxes", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (w *Worker) reapOnce(ctx context.Context, state func(context.Context, session.ID) (session.State, error)) error {
	boxes, err := w.Boxes.List(ctx, nil)
	if err != nil {
		return fmt.Errorf("list boxes: %w", err)
	}
	var errs []error
	for _, b := range boxes {
		s, err := state(ctx, session.ID(b.Key))
		switch {
		case errors.Is(err, session.ErrUnknown):
		case err != nil:
			errs = append(errs, err)
			continue
		case !stray(b, s):
			continue
		}
		w.Log.Info("destroying a stray box", "box", b.ID, "session", b.Key)
		if err := w.Boxes.Destroy(ctx, b.ID); err != nil {
			errs = append(errs, fmt.Errorf("destroy box %s: %w", b.ID, err))
		}
	}
	return errors.Join(errs...)
}

// stray: the session has another box or none, and no turn that may just be
// making this one.
func stray(b sandbox.Info, s session.State) bool {
	working := s.Turn != nil && s.Turn.Stage != session.Ended
	return b.ID != s.Box && !working
}
