package sessiontest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ship/session"
)

// RunQuota runs the contract of a session.Quota. open is as for RunStore.
func RunQuota(t *testing.T, open func(t *testing.T) session.Quota) {
	for name, test := range map[string]func(*quotaTest){
		"holds back":                 holdsBack,
		"takes all or nothing":       takesAllOrNothing,
		"never waits forever":        neverWaitsForever,
		"fills up":                   fillsUp,
		"gives no more than a limit": givesNoMore,
		"is told":                    isTold,
		"is told first":              isToldFirst,
		"is told late":               isToldLate,
		"blocks":                     blocks,
		"wants a window":             wantsWindow,
		"ends with ctx":              quotaEnds,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&quotaTest{t, open(t)})
		})
	}
}

// quotaTest takes from one account whose buckets fill up so slowly that nothing
// comes in during a test: one request in 36 seconds, one point in 3.6.
type quotaTest struct {
	*testing.T
	session.Quota
}

var slow = [2]int64{100, 1000}

// slowly asks for something of such an account.
func slowly(need [2]int64, share float64) session.Allowance {
	return session.Allowance{Need: need, Limit: slow, Window: time.Hour, Share: share}
}

// take wants a wait, within the second or so that a test may take.
func (q *quotaTest) take(need [2]int64, share float64, want time.Duration) {
	q.Helper()
	wait, err := q.Take(q.Context(), "acme", slowly(need, share))
	if err != nil || wait > want || wait < want-5*time.Second || (wait == 0) != (want == 0) {
		q.Fatalf("take %v beside %g: wait %s, %v; want %s", need, share, wait, err, want)
	}
}

func (q *quotaTest) tell(limit, left [2]int64, block time.Duration) {
	q.Helper()
	if err := q.Tell(q.Context(), "acme", session.Rate{Limit: limit, Left: left, Window: time.Hour, Block: block}); err != nil {
		q.Fatal(err)
	}
}

func holdsBack(q *quotaTest) {
	q.take([2]int64{60, 0}, 0.4, 0)
	q.take([2]int64{1, 0}, 0.4, 36*time.Second)
	q.take([2]int64{30, 0}, 0.1, 0)
	q.take([2]int64{2, 0}, 0.1, 72*time.Second)
	q.take([2]int64{10, 0}, 0, 0)
	q.take([2]int64{1, 0}, 0, 36*time.Second)
	if wait, err := q.Take(q.Context(), "other", slowly([2]int64{60, 0}, 0.4)); err != nil || wait != 0 {
		q.Errorf("another account waits %s, %v", wait, err)
	}
}

func takesAllOrNothing(q *quotaTest) {
	q.take([2]int64{1, 900}, 0, 0)
	q.take([2]int64{99, 200}, 0, 6*time.Minute) // 100 points are lacking
	q.take([2]int64{99, 0}, 0.01, 36*time.Second)
	q.take([2]int64{99, 0}, 0, 0)                 // the refusals took nothing
	q.take([2]int64{0, 100}, 0.9, 54*time.Minute) // 900 points are lacking, requests are not asked for
}

// neverWaitsForever: what does not fit beside the share waits for a full
// bucket, and what does not fit at all empties it.
func neverWaitsForever(q *quotaTest) {
	q.take([2]int64{500, 0}, 0.4, 0)
	q.take([2]int64{1, 0}, 0, 401*36*time.Second)
}

func fillsUp(q *quotaTest) {
	quick := session.Allowance{Limit: [2]int64{60_000, 60_000}, Window: time.Minute} // one in a millisecond
	begun := time.Now()
	quick.Need = quick.Limit
	if wait, err := q.Take(q.Context(), "acme", quick); err != nil || wait != 0 {
		q.Fatal(wait, err)
	}
	quick.Need = [2]int64{20, 20}
	for i := range 3 {
		await(q.T, "the buckets to fill up", func() bool {
			wait, err := q.Take(q.Context(), "acme", quick)
			if wait > 20*time.Millisecond {
				q.Errorf("wait %s", wait)
			}
			return err == nil && wait == 0
		})
		if took, least := time.Since(begun), time.Duration(i+1)*20*time.Millisecond; took < least {
			q.Errorf("filled up after %s, want %s", took, least)
		}
	}
}

// givesNoMore: of many that take at once from a bucket that is used up again and
// again, no more have it than it holds and what came in.
func givesNoMore(q *quotaTest) {
	const limit, window, life = 10, 100 * time.Millisecond, 300 * time.Millisecond
	var given atomic.Int64
	var all sync.WaitGroup
	begun := time.Now()
	for range 4 {
		all.Go(func() {
			for time.Since(begun) < life {
				wait, err := q.Take(q.Context(), "acme", session.Allowance{Need: [2]int64{1, 0}, Limit: [2]int64{limit, 0}, Window: window})
				if err != nil {
					q.Error(err)
					return
				}
				if wait == 0 {
					given.Add(1)
				}
				time.Sleep(wait) // as it was told
			}
		})
	}
	all.Wait()
	most := limit + int64(time.Since(begun)*limit/window)
	if n := given.Load(); n > most || n < limit+1 {
		q.Errorf("%d were given, at most %d could be and some more than %d had to", n, most, limit)
	}
}

func isTold(q *quotaTest) {
	q.take([2]int64{10, 0}, 0, 0)
	q.tell([2]int64{50, 0}, [2]int64{20, 0}, 0) // less than thought: 20 of 50
	q.take([2]int64{21, 0}, 0, 72*time.Second)
	q.take([2]int64{15, 0}, 0, 0)
	q.tell([2]int64{50, 0}, [2]int64{19, 0}, 0) // an old answer: still 5
	q.take([2]int64{6, 0}, 0, 72*time.Second)
	q.tell([2]int64{150, 0}, [2]int64{130, 0}, 0) // grown by 100: 105
	q.take([2]int64{106, 0}, 0, 24*time.Second)
	q.take([2]int64{105, 0}, 0, 0)
	q.take([2]int64{0, 1000}, 0, 0) // the other bucket was never named
	q.take([2]int64{0, 1}, 0, 4*time.Second)
}

func isToldFirst(q *quotaTest) {
	q.tell([2]int64{200, 0}, [2]int64{150, 0}, 0)
	q.take([2]int64{150, 1000}, 0, 0)
	q.take([2]int64{1, 0}, 0, 18*time.Second)
}

// isToldLate: of a limit that is larger than thought, all the rest can be
// taken.
func isToldLate(q *quotaTest) {
	q.take([2]int64{60, 0}, 0, 0)
	q.tell([2]int64{200, 0}, [2]int64{150, 0}, 0) // ten have not come there yet
	q.take([2]int64{140, 0}, 0, 0)
	q.take([2]int64{1, 0}, 0, 18*time.Second)
}

func blocks(q *quotaTest) {
	q.tell([2]int64{}, [2]int64{}, time.Minute)
	q.tell([2]int64{}, [2]int64{}, time.Second) // does not shorten it
	q.take([2]int64{1, 1}, 0, time.Minute)
	if err := q.Tell(q.Context(), "other", session.Rate{Window: time.Hour, Block: 20 * time.Millisecond}); err != nil {
		q.Fatal(err)
	}
	await(q.T, "the block to end", func() bool {
		wait, err := q.Take(q.Context(), "other", slowly(slow, 0))
		return err == nil && wait == 0
	})
	// A block outlives a window that is short beside it, and what is said later.
	for _, block := range []time.Duration{time.Minute, 0} {
		if err := q.Tell(q.Context(), "third", session.Rate{Window: time.Millisecond, Block: block}); err != nil {
			q.Fatal(err)
		}
	}
	never := time.Now().Add(50 * time.Millisecond)
	for time.Now().Before(never) {
		wait, err := q.Take(q.Context(), "third", session.Allowance{Need: slow, Limit: slow, Window: time.Millisecond})
		if err != nil || wait < 50*time.Second {
			q.Fatalf("blocked for a minute, it waits %s, %v", wait, err)
		}
	}
}

func wantsWindow(q *quotaTest) {
	if _, err := q.Take(q.Context(), "acme", session.Allowance{Need: slow, Limit: slow}); !errors.Is(err, session.ErrNoWindow) {
		q.Errorf("Take: %v, want ErrNoWindow", err)
	}
	if err := q.Tell(q.Context(), "acme", session.Rate{Limit: slow, Left: slow, Window: time.Microsecond}); !errors.Is(err, session.ErrNoWindow) {
		q.Errorf("Tell: %v, want ErrNoWindow", err)
	}
}

func quotaEnds(q *quotaTest) {
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(q.Context())
	cancel(gone)
	_, taken := q.Take(ctx, "acme", slowly(slow, 0))
	for _, err := range []error{taken, q.Tell(ctx, "acme", session.Rate{Limit: slow, Left: slow, Window: time.Hour})} {
		if !errors.Is(err, gone) && !errors.Is(err, context.Canceled) {
			q.Errorf("got %v", err)
		}
	}
}
