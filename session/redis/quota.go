package redis

import (
	"context"
	"fmt"
	"time"
)

// keepQuota is how long an account lives after its last use: longer than the
// hour in which it is full again, and as good as new.
const keepQuota = 2 * time.Hour

// Quota shares out, over all gateways, what a platform lets one account do.
// An account has two buckets, of requests and of points. A bucket holds what
// may be done in an hour, and fills up at that rate.
type Quota struct{ store *Store }

// Quota returns the store's quota. It is as good as the store, and closes with
// it.
func (s *Store) Quota() *Quota { return &Quota{s} }

// Take takes what is needed from both buckets if that leaves a share of each,
// or tells how long to wait before asking again. limit counts for an account
// that is new, until Tell knows better. When the answer was lost it may have been taken.
func (q *Quota) Take(ctx context.Context, account string, need, limit [2]int64, share float64) (time.Duration, error) {
	key, err := vaultKey("quota", account)
	if err != nil {
		return 0, err
	}
	res, err := q.store.run(ctx, takeScript, []string{key},
		keepQuota.Milliseconds(), share, need[0], max(limit[0], 1), need[1], max(limit[1], 1))
	if err != nil {
		return 0, fmt.Errorf("take from the quota of %s: %w", account, err)
	}
	ms, ok := res.(int64)
	if !ok || ms < 0 {
		return 0, fmt.Errorf("take from the quota of %s: unexpected answer %v", account, res)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// Tell corrects the buckets by what the platform says: limits, zero for one it
// did not name, and what is left. For the time of block nobody may take
// anything.
func (q *Quota) Tell(ctx context.Context, account string, limit, left [2]int64, block time.Duration) error {
	key, err := vaultKey("quota", account)
	if err != nil {
		return err
	}
	_, err = q.store.run(ctx, tellScript, []string{key},
		keepQuota.Milliseconds(), wholeMS(block), limit[0], left[0], limit[1], left[1])
	if err != nil {
		return fmt.Errorf("tell the quota of %s: %w", account, err)
	}
	return nil
}
