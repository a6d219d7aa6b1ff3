package linear

import (
	"context"
	"sync"
	"time"
)

// Quota shares out, over all gateways, what Linear lets one account do.
// session/redis has one, and MemoryQuota is one.
//
// An account has two buckets, of requests and of points of complexity. A bucket
// holds what may be done in an hour, and fills up at that rate: Linear's own
// limits work so.
type Quota interface {
	// Take takes what is needed from both buckets if that leaves a share of
	// each, or tells how long to wait before asking again. limit counts for an account
	// that is new, until Tell knows better. Repeated, it may take twice.
	Take(ctx context.Context, account string, need, limit [2]int64, share float64) (wait time.Duration, err error)
	// Tell corrects the buckets by what Linear says: limits, zero for one it
	// did not name, and what is left. Linear does not know yet of requests on
	// their way to it, so they are corrected downwards only. For the time of
	// block nobody may take anything. May be repeated.
	Tell(ctx context.Context, account string, limit, left [2]int64, block time.Duration) error
}

// MemoryQuota is a Quota for one process. The zero MemoryQuota is ready.
type MemoryQuota struct {
	mu       sync.Mutex
	accounts map[string]*account // guarded by mu
}

var _ Quota = (*MemoryQuota)(nil)

type account struct {
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
func (b bucket) now(now time.Time, limit int64) bucket {
	if b.limit == 0 {
		b.limit = limit
	}
	if b.at.IsZero() {
		b.left = float64(b.limit)
	} else {
		b.left += max(now.Sub(b.at), 0).Hours() * float64(b.limit)
	}
	b.left, b.at = min(b.left, float64(b.limit)), now
	return b
}

// lacks is how long it takes until need can be taken and the share is left.
// What does not fit beside the share waits for a full bucket.
func (b bucket) lacks(need int64, share float64) time.Duration {
	limit := float64(b.limit)
	short := min(share*limit+float64(need), limit) - b.left
	if need <= 0 || short <= 0 {
		return 0
	}
	return time.Duration(short/limit*float64(time.Hour)).Truncate(time.Millisecond) + time.Millisecond
}

func (q *MemoryQuota) account(name string) *account {
	a := q.accounts[name]
	if a == nil {
		a = &account{}
		if q.accounts == nil {
			q.accounts = make(map[string]*account)
		}
		q.accounts[name] = a
	}
	return a
}

// Take implements Quota.
func (q *MemoryQuota) Take(ctx context.Context, name string, need, limit [2]int64, share float64) (time.Duration, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	a, now := q.account(name), time.Now()
	wait := max(a.blocked.Sub(now), 0)
	var next [2]bucket
	for i, b := range a.buckets {
		next[i] = b.now(now, max(limit[i], 1))
		wait = max(wait, next[i].lacks(need[i], share))
	}
	if wait > 0 {
		return wait, nil
	}
	for i := range next {
		next[i].left -= float64(need[i])
	}
	a.buckets = next
	return 0, nil
}

// Tell implements Quota.
func (q *MemoryQuota) Tell(ctx context.Context, name string, limit, left [2]int64, block time.Duration) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	a, now := q.account(name), time.Now()
	for i, b := range a.buckets {
		if limit[i] <= 0 {
			continue
		}
		b = b.now(now, limit[i])
		grown := max(limit[i]-b.limit, 0) // that much more can be taken as well
		a.buckets[i] = bucket{limit: limit[i], left: min(b.left+float64(grown), float64(left[i])), at: now}
	}
	if until := now.Add(block); until.After(a.blocked) {
		a.blocked = until
	}
	return nil
}
