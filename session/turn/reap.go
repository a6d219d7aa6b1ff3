package turn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ship/sandbox"
	"ship/sandbox/lifecycle"
	"ship/session"
)

// reapEvery is how often boxes are held against the sessions.
const reapEvery = 5 * time.Minute

// strayGrace is how young a box is that may be on record in a moment.
const strayGrace = 2 * time.Minute

// States returns a session's state, or session.ErrUnknown.
type States func(context.Context, session.ID) (session.State, error)

// Reap destroys strays at once and every few minutes, until ctx ends: boxes
// that no session has or is about to have. Reaping a box twice is reaping it
// once.
func (w *Worker) Reap(ctx context.Context, state States) error {
	tick := time.NewTicker(reapEvery)
	defer tick.Stop()
	for {
		if err := w.reapOnce(ctx, state); err != nil && ctx.Err() == nil {
			w.Log.WarnContext(ctx, "look for stray boxes", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (w *Worker) reapOnce(ctx context.Context, state States) error {
	l := lifecycle.Listing{At: time.Now()}
	var err error
	if l.Boxes, err = w.Boxes.List(ctx, nil); err != nil {
		return fmt.Errorf("list boxes: %w", err)
	}
	records, unknown, err := recordsOf(ctx, l.Boxes, state)
	errs := []error{err}
	for _, f := range lifecycle.Reconcile(l, records, strayGrace) {
		if f.Verdict != lifecycle.End || unknown[f.Session] {
			continue
		}
		w.Log.InfoContext(ctx, "destroying a stray box", "box", f.ID, "session", f.Session, "reason", f.Reason)
		if err := w.Boxes.Destroy(ctx, f.ID); err != nil {
			errs = append(errs, fmt.Errorf("destroy box %s: %w", f.ID, err))
		}
	}
	return errors.Join(errs...)
}

// recordsOf reads what the sessions of these boxes have on record, and names
// those of which that cannot be read. A record without a box heals by itself:
// whoever looks for the box next finds it gone.
func recordsOf(ctx context.Context, boxes []sandbox.Info, state States) (records []lifecycle.Record, unknown map[string]bool, err error) {
	var errs []error
	seen := map[string]bool{}
	unknown = map[string]bool{}
	for _, b := range boxes {
		if seen[b.Key] {
			continue
		}
		seen[b.Key] = true
		s, err := state(ctx, session.ID(b.Key))
		switch {
		case err == nil:
			records = append(records, recordOf(b.Key, s))
		case !errors.Is(err, session.ErrUnknown):
			unknown[b.Key] = true
			errs = append(errs, err)
		}
	}
	return records, unknown, errors.Join(errs...)
}

// recordOf is what a session has. While a turn is under way it may be making
// any of the boxes that are not on record.
func recordOf(key string, s session.State) lifecycle.Record {
	r := lifecycle.Record{Box: lifeOf(s)}
	r.Box.Session = key
	if s.Busy() {
		r.Lease = 1
	}
	return r
}
