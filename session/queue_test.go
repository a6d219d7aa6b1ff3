package session_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ship/session"
	"ship/session/memory"
)

// ofTwo is an allowance of an account that holds two, and gets one in a second.
func ofTwo(account string, share float64) session.Demand {
	return session.Demand{Account: account, Allowance: session.Allowance{
		Need: [2]int64{1, 0}, Limit: [2]int64{2, 0}, Window: 2 * time.Second, Share: share,
	}}
}

// counted is a quota that counts how often it was asked.
type counted struct {
	memory.Quota
	mu    sync.Mutex
	taken int
}

func (q *counted) Take(ctx context.Context, account string, a session.Allowance) (time.Duration, error) {
	q.mu.Lock()
	q.taken++
	q.mu.Unlock()
	return q.Quota.Take(ctx, account, a)
}

// TestQueueHasOneHead: of many that wait in a line only one asks the quota, and
// they come to their turns in their order.
func TestQueueHasOneHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var quota counted
		q := session.NewQueue(&quota)
		var mu sync.Mutex
		var order []int
		var all sync.WaitGroup
		begun := time.Now()
		for i := range 30 {
			all.Go(func() {
				if err := q.Wait(t.Context(), ofTwo("a", 0)); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
			synctest.Wait() // it stands in the line
		}
		all.Wait()
		if !slices.IsSorted(order) {
			t.Errorf("order %v", order)
		}
		if took := time.Since(begun).Round(time.Second); took != 28*time.Second {
			t.Errorf("took %s, want 28s", took)
		}
		if quota.taken > 2*30 {
			t.Errorf("asked %d times", quota.taken)
		}
	})
}

// TestQueueUrgentFirst: whoever leaves a larger share is overtaken.
func TestQueueUrgentFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := session.NewQueue(&memory.Quota{})
		var mu sync.Mutex
		var order []float64
		var all sync.WaitGroup
		for _, share := range []float64{0.5, 0.2, 0} {
			for range 3 {
				all.Go(func() {
					if err := q.Wait(t.Context(), ofTwo("a", share)); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					order = append(order, share)
				})
			}
		}
		all.Wait()
		slices.Reverse(order)
		if rest := order[:len(order)-2]; !slices.IsSortedFunc(rest, func(a, b float64) int { // two were there at once
			return int(10*b) - int(10*a)
		}) {
			t.Errorf("from the last to the first: %v", order)
		}
	})
}

// TestQueueHoardsNothing: of many that want two allowances only the one at the
// head takes the first while the second cannot be had, so that others have what
// is left of it.
func TestQueueHoardsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quota := &memory.Quota{}
		if err := quota.Tell(t.Context(), "method", session.Rate{Window: time.Second, Block: time.Hour}); err != nil {
			t.Fatal(err)
		}
		q := session.NewQueue(quota)
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if err := q.Wait(ctx, ofTwo("channel", 0), ofTwo("method", 0)); !errors.Is(err, enough) {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		if wait, err := q.Try(t.Context(), ofTwo("channel", 0)); err != nil || wait != 0 {
			t.Errorf("the second of two: wait %s, %v", wait, err)
		}
		if wait, err := q.Try(t.Context(), ofTwo("channel", 0), ofTwo("method", 0)); err != nil || wait != time.Second+time.Millisecond {
			t.Errorf("the third of two: wait %s, %v", wait, err)
		}
		if wait, err := q.Try(t.Context(), ofTwo("another", 0), ofTwo("method", 0)); err != nil || wait != time.Hour {
			t.Errorf("what is blocked: wait %s, %v", wait, err)
		}
		cancel(enough)
		all.Wait()
	})
}

// TestQueueLooksAgain: while it waits long, somebody may tell of more.
func TestQueueLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quota := &memory.Quota{}
		d := session.Demand{Account: "a", Allowance: session.Allowance{Need: [2]int64{1, 0}, Limit: [2]int64{1, 0}, Window: time.Hour}}
		q := session.NewQueue(quota)
		if wait, err := q.Try(t.Context(), d); err != nil || wait != 0 {
			t.Fatal(wait, err)
		}
		begun := time.Now()
		time.AfterFunc(90*time.Second, func() {
			if err := quota.Tell(t.Context(), "a", session.Rate{Limit: [2]int64{9, 0}, Left: [2]int64{5, 0}, Window: time.Hour}); err != nil {
				t.Error(err)
			}
		})
		if err := q.Wait(t.Context(), d); err != nil || time.Since(begun) != 2*time.Minute {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
	})
}

func TestQueueWithoutQuota(t *testing.T) {
	t.Parallel()
	q := session.NewQueue(&memory.Quota{})
	nothing := session.Demand{Account: "a"} // names no window
	if err := q.Wait(t.Context(), nothing); !errors.Is(err, session.ErrNoWindow) {
		t.Errorf("Wait: %v", err)
	}
	if _, err := q.Try(t.Context(), nothing); !errors.Is(err, session.ErrNoWindow) {
		t.Errorf("Try: %v", err)
	}
}
