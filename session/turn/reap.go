package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ship/sandbox"
	"ship/sandbox/lifecycle"
	"ship/session"
)

// Rounds are the times by which boxes and sessions are held against each other.
type Rounds struct {
	// Every is how often; zero: 5 minutes.
	Every time.Duration
	// Grace is how young a box is that may be on record in a moment, and how long
	// the box of a record has to be missing; zero: 2 minutes.
	Grace time.Duration
}

func (r Rounds) every() time.Duration { return cmp.Or(r.Every, 5*time.Minute) }
func (r Rounds) grace() time.Duration { return cmp.Or(r.Grace, 2*time.Minute) }

// Sessions are what boxes are held against.
type Sessions interface {
	// State returns a session's state, or session.ErrUnknown.
	State(context.Context, session.ID) (session.State, error)
	session.Register
	session.Inbox
}

// Reap holds the provider's boxes against the sessions at once and every few
// minutes, until ctx ends. It destroys strays, boxes that no session has or is
// about to have; and it tells sessions whose box the provider does not have. Both
// may be done twice, and by several workers at a time.
func (w *Worker) Reap(ctx context.Context, sessions Sessions) error {
	r := &reaper{Worker: w, sessions: sessions}
	for {
		if err := r.round(ctx); err != nil && ctx.Err() == nil {
			w.Log.WarnContext(ctx, "hold boxes against sessions", "err", err)
		}
		wait := w.Rounds.every()
		if len(r.suspects) > 0 {
			wait = min(wait, w.Rounds.grace())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// reaper remembers from one round to the next which boxes it missed.
type reaper struct {
	*Worker
	sessions Sessions
	suspects map[session.ID]suspect
}

// suspect is a record whose box was not listed, and since when.
type suspect struct {
	box   session.LostBox
	since time.Time
}

// round looks once. A list that failed says nothing of any box.
func (r *reaper) round(ctx context.Context) error {
	l := lifecycle.Listing{At: time.Now()}
	var err error
	if l.Boxes, err = r.Boxes.List(ctx, nil); err != nil {
		return fmt.Errorf("list boxes: %w", err)
	}
	scheduled, err := r.sessions.Scheduled(ctx)
	errs := []error{err}
	k, err := r.read(ctx, l.Boxes, scheduled)
	errs = append(errs, err)
	var missing []session.ID
	for _, f := range lifecycle.Reconcile(l, k.records, r.Rounds.grace()) {
		switch {
		case k.unread[f.Session]:
		case f.Verdict == lifecycle.End:
			errs = append(errs, r.end(ctx, f))
		case f.Verdict == lifecycle.Lose:
			missing = append(missing, session.ID(f.Session))
		}
	}
	return errors.Join(append(errs, r.miss(ctx, k, missing, l.At))...)
}

func (r *reaper) end(ctx context.Context, f lifecycle.Finding) error {
	r.Log.InfoContext(ctx, "destroying a stray box", "box", f.ID, "session", f.Session, "reason", f.Reason)
	if err := r.Boxes.Destroy(ctx, f.ID); err != nil {
		return fmt.Errorf("destroy box %s: %w", f.ID, err)
	}
	return nil
}

// known is what the sessions have on record.
type known struct {
	states  map[session.ID]session.State
	records []lifecycle.Record
	// unread are the sessions of which nothing can be told.
	unread map[string]bool
}

// read asks for the sessions of these boxes, and for those that may have others.
func (r *reaper) read(ctx context.Context, boxes []sandbox.Info, scheduled []session.ID) (known, error) {
	ids := slices.Clone(scheduled)
	for _, b := range boxes {
		ids = append(ids, session.ID(b.Key))
	}
	slices.Sort(ids)
	k := known{states: map[session.ID]session.State{}, unread: map[string]bool{}}
	var errs []error
	for _, id := range slices.Compact(ids) {
		s, err := r.sessions.State(ctx, id)
		switch {
		case err == nil:
			k.states[id] = s
			k.records = append(k.records, r.recordOf(id, s))
		case !errors.Is(err, session.ErrUnknown):
			k.unread[string(id)] = true
			errs = append(errs, err)
		}
	}
	return k, errors.Join(errs...)
}

// recordOf is what a session has. While a turn is under way it may be making
// any of the boxes that are not on record.
func (w *Worker) recordOf(id session.ID, s session.State) lifecycle.Record {
	r := lifecycle.Record{Box: lifeOf(s), Away: w.Site == "" || s.Site != w.Site}
	r.Box.Session = string(id)
	if s.Busy() {
		r.Lease = 1
	}
	return r
}

// miss remembers the sessions whose box was not listed, and tells those of which
// that was so before, a grace time ago. Their records did not change in between,
// so they were there when this list was asked for.
func (r *reaper) miss(ctx context.Context, k known, missing []session.ID, at time.Time) error {
	suspects := map[session.ID]suspect{}
	var errs []error
	for _, id := range missing {
		box := k.states[id].OnRecord()
		if box == nil {
			continue
		}
		s := suspect{box: *box, since: at}
		if before, ok := r.suspects[id]; ok && before.box.Box == box.Box && before.box.Since.Equal(box.Since) {
			s.since = before.since
		}
		suspects[id] = s
		if at.Sub(s.since) >= r.Rounds.grace() {
			errs = append(errs, r.lose(ctx, id, s.box))
		}
	}
	r.suspects = suspects
	return errors.Join(errs...)
}

// lose tells a session that its box is gone, if the provider says that of this
// very box as well: a list may leave something out. Told twice, it is told once;
// if it is not heeded, as that was the wrong moment, the next round tells it anew.
func (r *reaper) lose(ctx context.Context, id session.ID, box session.LostBox) error {
	_, err := r.Boxes.Info(ctx, box.Box)
	switch {
	case err == nil:
		return fmt.Errorf("the provider has the box %s, and does not list it", box.Box)
	case !errors.Is(err, sandbox.ErrGone):
		return fmt.Errorf("ask for the box %s, which is not listed: %w", box.Box, err)
	}
	r.Log.WarnContext(ctx, "a box is lost", "box", box.Box, "session", string(id))
	_, err = r.sessions.Append(ctx, session.Delivery{
		Session: id, Keys: []string{fmt.Sprintf("vanished:%s:%s:%d", id, box.Box, box.Since.UnixMilli())},
		Keep: r.Rounds.every() / 2, Known: true,
		Event: session.Event{V: session.EventVersion, Kind: session.Vanished, Lost: &box},
	})
	if err != nil {
		return fmt.Errorf("tell %s that its box is lost: %w", id, err)
	}
	return nil
}
