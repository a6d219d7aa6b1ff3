package redis

import (
	"context"
	"fmt"
	"time"

	"ship/session"
)

// Quota is a session.Quota.
//
// An account is kept for two windows after its last use: longer than it takes
// until it is full again, and as good as new. The window is not kept with it, so
// a release that knew only hours and this one can share an account whose window
// is an hour: they read and write the same.
type Quota struct{ store *Store }

var _ session.Quota = (*Quota)(nil)

// Quota returns the store's quota. It is as good as the store, and closes with
// it.
func (s *Store) Quota() *Quota { return &Quota{s} }

// Take implements session.Quota. When the answer was lost it may have been
// taken.
func (q *Quota) Take(ctx context.Context, account string, a session.Allowance) (time.Duration, error) {
	key, err := quotaKey(account, a.Window)
	if err != nil {
		return 0, err
	}
	res, err := q.store.run(ctx, takeScript, []string{key},
		a.Window.Milliseconds(), a.Share, a.Need[0], max(a.Limit[0], 1), a.Need[1], max(a.Limit[1], 1))
	if err != nil {
		return 0, fmt.Errorf("take from the quota of %s: %w", account, err)
	}
	ms, ok := res.(int64)
	if !ok || ms < 0 {
		return 0, fmt.Errorf("take from the quota of %s: unexpected answer %v", account, res)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// Tell implements session.Quota.
func (q *Quota) Tell(ctx context.Context, account string, r session.Rate) error {
	key, err := quotaKey(account, r.Window)
	if err != nil {
		return err
	}
	_, err = q.store.run(ctx, tellScript, []string{key},
		r.Window.Milliseconds(), wholeMS(r.Block), r.Limit[0], r.Left[0], r.Limit[1], r.Left[1])
	if err != nil {
		return fmt.Errorf("tell the quota of %s: %w", account, err)
	}
	return nil
}

func quotaKey(account string, window time.Duration) (string, error) {
	if window < time.Millisecond {
		return "", session.ErrNoWindow
	}
	return vaultKey("quota", account)
}
