package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ship/session"
	"ship/session/memory"
	"ship/session/redis/redistest"
	"ship/session/sessiontest"
)

// TestTwin does the same random things to both stores and wants the same
// answers: what is tested on the one holds on the other.
func TestTwin(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			tw := &twin{
				T: t, rng: rand.New(rand.NewPCG(seed, 1)),
				stores: [2]sessiontest.Stores{memory.New(), open(t, redistest.Start(t, "--appendfsync", "no"))},
			}
			for range 400 {
				tw.step()
			}
		})
	}
}

type twin struct {
	*testing.T
	rng    *rand.Rand
	stores [2]sessiontest.Stores
}

// step does one thing to both. Leases and timers are over at once or not
// during the test, so that the two clocks do not matter.
func (tw *twin) step() {
	id := session.ID(fmt.Sprintf("gh.1.%d", tw.rng.IntN(3)))
	token := fmt.Sprintf("t%d", tw.rng.IntN(4))
	lease := session.Lease{ID: id, Token: token}
	span := time.Hour * time.Duration(tw.rng.IntN(2))
	switch tw.rng.IntN(10) {
	case 0, 1, 2:
		d := delivery(fmt.Sprintf("%s-%d", id, tw.rng.IntN(300)))
		d.Session, d.Keys = id, append(d.Keys, fmt.Sprintf("%s+%d", id, tw.rng.IntN(300)))
		tw.both("append", func(s sessiontest.Stores) (any, error) { return s.Append(tw.Context(), d) })
	case 3, 4:
		tw.both("claim", func(s sessiontest.Stores) (any, error) { return s.Claim(tw.Context(), id, token, span) })
	case 5:
		tw.both("renew", func(s sessiontest.Stores) (any, error) { return s.Renew(tw.Context(), lease, span) })
	case 6, 7, 8:
		k := tw.commit(id, span)
		tw.both("commit", func(s sessiontest.Stores) (any, error) { return nil, s.Commit(tw.Context(), lease, k) })
	default:
		tw.rare(id)
	}
	tw.both("peek", func(s sessiontest.Stores) (any, error) { return s.Peek(tw.Context(), id) })
	tw.both("due", func(s sessiontest.Stores) (any, error) {
		ids, err := s.Due(tw.Context(), 100)
		slices.Sort(ids)
		return ids, err
	})
}

// rare things: they empty sessions, or only look.
func (tw *twin) rare(id session.ID) {
	after := tw.rng.Int64N(20)
	tw.both("read", func(s sessiontest.Stores) (any, error) { return s.Read(tw.Context(), id, after) })
	tw.both("dead letters", func(s sessiontest.Stores) (any, error) {
		dead, err := s.DeadLetters(tw.Context(), 1000)
		return len(dead), err
	})
	if tw.rng.IntN(8) == 0 {
		tw.both("forget", func(s sessiontest.Stores) (any, error) { return nil, s.Forget(tw.Context(), id) })
	}
}

// commit is mostly one that fits the session, and sometimes one that does not.
func (tw *twin) commit(id session.ID, span time.Duration) session.Commit {
	p, err := tw.stores[0].Peek(tw.Context(), id)
	if err != nil && !errors.Is(err, session.ErrUnknown) {
		tw.Fatal(err)
	}
	k := commit(p.Version, p.Cursor+tw.rng.Int64N(int64(len(p.Events)+1)), tw.rng.IntN(2) == 0)
	k.Lease, k.Due = span, span-time.Hour*time.Duration(tw.rng.IntN(2))
	k.State = fmt.Appendf(nil, `{"n":%d}`, tw.rng.IntN(1000))
	switch tw.rng.IntN(6) {
	case 0:
		k.Version += tw.rng.Int64N(3) - 1
	case 1:
		k.Cursor += tw.rng.Int64N(5) - 2
	case 2:
		k.Dead = []session.DeadLetter{{Session: id, Cause: "test"}}
	}
	return k
}

func (tw *twin) both(what string, do func(sessiontest.Stores) (any, error)) {
	tw.Helper()
	a, errA := do(tw.stores[0])
	b, errB := do(tw.stores[1])
	if kind(errA) != kind(errB) {
		tw.Fatalf("%s: memory says %v, redis says %v", what, errA, errB)
	}
	clocks := cmp.Options{
		cmpopts.IgnoreFields(session.Claim{}, "Now"), cmpopts.IgnoreFields(session.Lease{}, "Epoch"),
		cmpopts.IgnoreFields(session.Event{}, "At"), cmpopts.EquateEmpty(),
	}
	if diff := cmp.Diff(a, b, clocks); diff != "" {
		tw.Fatalf("%s (-memory +redis):\n%s", what, diff)
	}
}

// kind is what a caller can tell an error by.
func kind(err error) string {
	for _, known := range []error{
		session.ErrNotDue, session.ErrConflict, session.ErrTooNew, session.ErrUnknown, session.ErrLeaseLost, context.Canceled,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if err != nil {
		return "another error"
	}
	return "none"
}
