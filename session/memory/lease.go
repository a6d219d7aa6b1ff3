package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ship/session"
)

// Due implements session.Store.
func (s *Store) Due(ctx context.Context, limit int) ([]session.ID, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock()
	var ids []session.ID
	for id, r := range s.sessions {
		if r.isDue(now) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b session.ID) int {
		return cmp.Or(s.sessions[a].due.Compare(s.sessions[b].due), cmp.Compare(a, b))
	})
	return ids[:min(len(ids), max(limit, 0))], nil
}

// Claim implements session.Store. Repeating a claim with the same token
// answers the same and makes the lease good again.
func (s *Store) Claim(ctx context.Context, id session.ID, token string, lease time.Duration) (session.Claim, error) {
	var c session.Claim
	if token == "" {
		return c, fmt.Errorf("claim %s: empty token", id)
	}
	err := s.around(ctx, "claim", func() (err error) {
		c, err = s.claim(id, token, lease)
		return err
	})
	return c, err
}

func (s *Store) claim(id session.ID, token string, lease time.Duration) (session.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock()
	r := s.sessions[id]
	if r == nil || (r.owner != token && !r.isDue(now)) {
		return session.Claim{}, session.ErrNotDue
	}
	if r.tooNew() {
		return session.Claim{}, session.ErrTooNew
	}
	if r.owner != token {
		r.stolen = r.held()
		r.owner = token
		r.epoch = max(r.epoch+1, now.UnixMilli())
		r.tries++
	}
	r.wait(now.Add(lease))
	return r.view(id, token, now)
}

// tooNew: a newer release wrote the state, or an event of the next batch.
func (r *record) tooNew() bool {
	return r.format > session.StateVersion || slices.ContainsFunc(r.after(r.cursor), entry.tooNew)
}

func (e entry) tooNew() bool { return e.v > session.EventVersion }

// view is the session as a claim shows it.
func (r *record) view(id session.ID, token string, now time.Time) (session.Claim, error) {
	c := session.Claim{
		Lease:   session.Lease{ID: id, Token: token, Epoch: r.epoch},
		Version: r.version, Cursor: r.cursor, State: bytes.Clone(r.state),
		Stolen: r.stolen, Tries: r.tries, Now: now,
	}
	var err error
	c.Events, err = decode(r.after(r.cursor))
	if errors.Is(err, session.ErrTooNew) {
		err = nil // only a look, for a claim was refused before
	}
	return c, err
}

// decode returns the events up to the first one of a newer release, and
// ErrTooNew when that is the first of all.
func decode(entries []entry) ([]session.Event, error) {
	var events []session.Event
	for i, e := range entries {
		if e.tooNew() && i == 0 {
			return nil, session.ErrTooNew
		}
		if e.tooNew() {
			return events, nil
		}
		events = append(events, e.event())
	}
	return events, nil
}

// Renew implements session.Store.
func (s *Store) Renew(ctx context.Context, l session.Lease, d time.Duration) (int64, error) {
	var newest int64
	err := s.around(ctx, "renew", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		r := s.sessions[l.ID]
		if r == nil || l.Token == "" || r.owner != l.Token {
			return session.ErrLeaseLost
		}
		now := clock()
		r.wait(now.Add(d))
		if now.Sub(time.UnixMilli(r.epoch)) >= session.ProvenAfter { // an epoch is not before the time of its claim
			r.tries = 0
		}
		newest = r.seq
		return nil
	})
	return newest, err
}

// Read implements session.Store. Events of a newer release and what follows
// them are left out; ErrTooNew when there is nothing before them.
func (s *Store) Read(ctx context.Context, id session.ID, after int64) ([]session.Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.sessions[id]
	if r == nil {
		return nil, nil
	}
	return decode(r.after(after))
}

// Commit implements session.Store.
func (s *Store) Commit(ctx context.Context, l session.Lease, c session.Commit) error {
	dead, err := encode(c.Dead)
	if err != nil {
		return fmt.Errorf("commit %s: %w", l.ID, err)
	}
	return s.around(ctx, "commit", func() error { return s.commit(l, c, dead) })
}

func (s *Store) commit(l session.Lease, c session.Commit, dead [][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.sessions[l.ID]
	if r == nil || l.Token == "" {
		return session.ErrLeaseLost
	}
	done, err := r.check(l, c)
	if done || err != nil {
		return err
	}
	now := clock()
	r.apply(l.Token, c)
	s.bury(dead)
	if !c.Release {
		r.wait(now.Add(c.Lease))
		return nil
	}
	if r.release(now, c.Due) {
		s.wake(l.ID)
	}
	return nil
}

// check says whether a commit was done already, or may not be done. A repeat
// that gave the lease back is done even though somebody else may hold it now.
func (r *record) check(l session.Lease, c session.Commit) (done bool, err error) {
	repeat := r.last == l.Token && r.version == c.Version+1
	switch {
	case r.owner != l.Token && repeat && c.Release:
		return true, nil
	case r.owner != l.Token:
		return false, session.ErrLeaseLost
	case r.version != c.Version && repeat:
		return true, nil
	case r.version != c.Version:
		return false, session.ErrConflict
	case c.Cursor < r.cursor || c.Cursor > r.seq:
		return false, fmt.Errorf("commit %s: cursor %d is outside of %d to %d", l.ID, c.Cursor, r.cursor, r.seq)
	}
	return false, nil
}

func (r *record) apply(token string, c session.Commit) {
	if c.Release || c.Cursor > r.cursor {
		r.tries = 0
	}
	r.inbox = slices.Clone(r.inbox[c.Cursor-r.cursor:])
	r.version++
	r.last, r.cursor, r.format = token, c.Cursor, c.StateVersion
	r.state = bytes.Clone(c.State)
}

// release gives the lease back and says whether somebody must look at once.
func (r *record) release(now time.Time, due time.Duration) (ready bool) {
	r.owner = ""
	switch {
	case r.seq > r.cursor:
		r.wait(now) // mail came in between
	case due >= 0:
		r.wait(now.Add(due))
	default:
		r.waiting = false
	}
	return r.isDue(now)
}

// encode makes dead letters ready to be kept. One without a time gets that of
// its burial.
func encode(dead []session.DeadLetter) ([][]byte, error) {
	letters := make([][]byte, 0, len(dead))
	for _, d := range dead {
		if d.At.IsZero() {
			d.At = clock()
		}
		data, err := json.Marshal(d)
		if err != nil {
			return nil, fmt.Errorf("encode dead letter: %w", err)
		}
		letters = append(letters, data)
	}
	return letters, nil
}

// Wakes implements session.Store. A receiver that does not keep up loses
// hints.
func (s *Store) Wakes(ctx context.Context) <-chan session.ID {
	ch := make(chan session.ID, 256)
	s.mu.Lock()
	s.wakes[ch] = struct{}{}
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.wakes, ch)
		close(ch)
	})
	return ch
}

// wake is called with the lock held, so that it never sends on a channel that
// was closed.
func (s *Store) wake(id session.ID) {
	for ch := range s.wakes {
		select {
		case ch <- id:
		default:
		}
	}
}
