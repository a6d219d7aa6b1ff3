package memory

import (
	"context"
	"sync"
	"time"

	"ship/session"
)

// Quota is a session.Quota for one process. The zero Quota is ready.
type Quota struct {
	mu    sync.Mutex
	tanks map[string]*tank // guarded by mu
}

var _ session.Quota = (*Quota)(nil)

// tank is an account's.
type tank struct {
	buckets [2]bucket
	blocked time.Time
}

// bucket holds left at a time. The zero bucket was never used.
type bucket struct {
	limit int64
	left  float64
	at    time.Time
}

// now is the bucket as it is by now, full if it was never used.
func (b bucket) now(now time.Time, limit int64, window time.Duration) bucket {
	if b.limit == 0 {
		b.limit = limit
	}
	if b.at.IsZero() {
		b.left = float64(b.limit)
	} else {
		b.left += float64(max(now.Sub(b.at), 0)) / float64(window) * float64(b.limit)
	}
	b.left, b.at = min(b.left, float64(b.limit)), now
	return b
}

// lacks is the part of a window until need can be taken and the share is left.
func (b bucket) lacks(need int64, share float64) float64 {
	limit := float64(b.limit)
	short := min(share*limit+float64(need), limit) - b.left
	if need <= 0 || short <= 0 {
		return 0
	}
	return short / limit
}

// The caller holds mu.
func (q *Quota) tank(name string) *tank {
	t := q.tanks[name]
	if t == nil {
		t = &tank{}
		if q.tanks == nil {
			q.tanks = make(map[string]*tank)
		}
		q.tanks[name] = t
	}
	return t
}

// Take implements session.Quota.
func (q *Quota) Take(ctx context.Context, account string, a session.Allowance) (time.Duration, error) {
	if err := askable(ctx, a.Window); err != nil {
		return 0, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	t, now := q.tank(account), time.Now()
	wait := max(t.blocked.Sub(now), 0)
	var next [2]bucket
	for i, b := range t.buckets {
		next[i] = b.now(now, max(a.Limit[i], 1), a.Window)
		if part := next[i].lacks(a.Need[i], a.Share); part > 0 {
			wait = max(wait, time.Duration(part*float64(a.Window)).Truncate(time.Millisecond)+time.Millisecond)
		}
	}
	if wait > 0 {
		return wait, nil
	}
	for i := range next {
		next[i].left -= float64(a.Need[i])
	}
	t.buckets = next
	return 0, nil
}

// Tell implements session.Quota.
func (q *Quota) Tell(ctx context.Context, account string, r session.Rate) error {
	if err := askable(ctx, r.Window); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	t, now := q.tank(account), time.Now()
	for i, b := range t.buckets {
		limit := r.Limit[i]
		if limit <= 0 {
			continue
		}
		b = b.now(now, limit, r.Window)
		grown := max(limit-b.limit, 0) // that much more can be taken as well
		t.buckets[i] = bucket{limit: limit, left: min(b.left+float64(grown), float64(r.Left[i])), at: now}
	}
	if until := now.Add(r.Block); until.After(t.blocked) {
		t.blocked = until
	}
	return nil
}

func askable(ctx context.Context, window time.Duration) error {
	if window < time.Millisecond {
		return session.ErrNoWindow
	}
	return context.Cause(ctx)
}
