package linear

import (
	"context"
	"errors"
	"testing"
	"time"
)

func onBothQuotas(t *testing.T, test func(*testing.T, Quota)) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) { t.Parallel(); test(t, &MemoryQuota{}) })
	t.Run("redis", func(t *testing.T) { t.Parallel(); test(t, onRedis(t).Quota()) })
}

// quotaTest takes from one account whose buckets fill up so slowly that nothing
// comes in during a test: one request in 36 seconds, one point in 3.6.
type quotaTest struct {
	*testing.T
	Quota
}

var slow = [2]int64{100, 1000}

// take wants a wait, within the second or so that a test may take.
func (q quotaTest) take(need [2]int64, share float64, want time.Duration) {
	q.Helper()
	wait, err := q.Take(q.Context(), "acme", need, slow, share)
	if err != nil || wait > want || wait < want-5*time.Second || (wait == 0) != (want == 0) {
		q.Fatalf("take %v beside %g: wait %s, %v; want %s", need, share, wait, err, want)
	}
}

func (q quotaTest) tell(limit, left [2]int64, block time.Duration) {
	q.Helper()
	if err := q.Tell(q.Context(), "acme", limit, left, block); err != nil {
		q.Fatal(err)
	}
}

func TestQuotaHoldsBack(t *testing.T) {
	onBothQuotas(t, func(t *testing.T, quota Quota) {
		q := quotaTest{t, quota}
		q.take([2]int64{60, 0}, 0.4, 0)
		q.take([2]int64{1, 0}, 0.4, 36*time.Second)
		q.take([2]int64{30, 0}, 0.1, 0)
		q.take([2]int64{2, 0}, 0.1, 72*time.Second)
		q.take([2]int64{10, 0}, 0, 0)
		q.take([2]int64{1, 0}, 0, 36*time.Second)
		if wait, err := q.Take(t.Context(), "other", [2]int64{60, 0}, slow, 0.4); err != nil || wait != 0 {
			t.Errorf("another account waits %s, %v", wait, err)
		}
	})
}

func TestQuotaTakesAllOrNothing(t *testing.T) {
	onBothQuotas(t, func(t *testing.T, quota Quota) {
		q := quotaTest{t, quota}
		q.take([2]int64{1, 900}, 0, 0)
		q.take([2]int64{99, 200}, 0, 6*time.Minute) // 100 points are lacking
		q.take([2]int64{99, 0}, 0.01, 36*time.Second)
		q.take([2]int64{99, 0}, 0, 0)                 // the refusals took nothing
		q.take([2]int64{0, 100}, 0.9, 54*time.Minute) // 900 points are lacking, requests are not asked for
	})
}

// TestQuotaNeverWaitsForever: what does not fit beside the share waits for a
// full bucket, and what does not fit at all empties it.
func TestQuotaNeverWaitsForever(t *testing.T) {
	onBothQuotas(t, func(t *testing.T, quota Quota) {
		q := quotaTest{t, quota}
		q.take([2]int64{500, 0}, 0.4, 0)
		q.take([2]int64{1, 0}, 0, 401*36*time.Second)
	})
}

func TestQuotaFillsUp(t *testing.T) {
	onBothQuotas(t, func(t *testing.T, quota Quota) {
		fast := [2]int64{3_600_000, 3_600_000} // one in a millisecond
		begun := time.Now()
		if wait, err := quota.Take(t.Context(), "acme", fast, fast, 0); err != nil || wait != 0 {
			t.Fatal(wait, err)
		}
		for i := range 3 {
			await(t, func() bool {
				wait, err := quota.Take(t.Context(), "acme", [2]int64{20, 20}, fast, 0)
				if wait > 20*time.Millisecond {
					t.Errorf("wait %s", wait)
				}
				return err == nil && wait == 0
			})
			if took, least := time.Since(begun), time.Duration(i+1)*20*time.Millisecond; took < least {
				t.Errorf("filled up after %s, want %s", took, least)
			}
		}
	})
}

func TestQuotaIsTold(t *testing.T) {
	onBothQuotas(t, func(t *testing.T, quota Quota) {
		q := quotaTest{t, quota}
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
	})
}

func TestQuotaIsToldFirst(t *testing.T) {
	onBothQuotas(t, func(t *testing.T, quota Quota) {
		q := quotaTest{t, quota}
		q.tell([2]int64{200, 0}, [2]int64{150, 0}, 0)
		q.take([2]int64{150, 1000}, 0, 0)
		q.take([2]int64{1, 0}, 0, 18*time.Second)
	})
}

// TestQuotaIsToldLate: of a limit that is larger than thought, all the rest can
// be taken.
func TestQuotaIsToldLate(t *testing.T) {
	onBothQuotas(t, func(t *testing.T, quota Quota) {
		q := quotaTest{t, quota}
		q.take([2]int64{60, 0}, 0, 0)
		q.tell([2]int64{200, 0}, [2]int64{150, 0}, 0) // ten have not come there yet
		q.take([2]int64{140, 0}, 0, 0)
		q.take([2]int64{1, 0}, 0, 18*time.Second)
	})
}

func TestQuotaBlocks(t *testing.T) {
	onBothQuotas(t, func(t *testing.T, quota Quota) {
		q := quotaTest{t, quota}
		q.tell([2]int64{}, [2]int64{}, time.Minute)
		q.tell([2]int64{}, [2]int64{}, time.Second) // does not shorten it
		q.take([2]int64{1, 1}, 0, time.Minute)
		if err := q.Tell(t.Context(), "other", [2]int64{}, [2]int64{}, 20*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		await(t, func() bool {
			wait, err := q.Take(t.Context(), "other", [2]int64{100, 1000}, slow, 0)
			return err == nil && wait == 0
		})
	})
}

func TestQuotaEndsWithContext(t *testing.T) {
	onBothQuotas(t, func(t *testing.T, quota Quota) {
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		_, taken := quota.Take(ctx, "acme", slow, slow, 0)
		for _, err := range []error{taken, quota.Tell(ctx, "acme", slow, slow, 0)} {
			if !errors.Is(err, gone) && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
	})
}
