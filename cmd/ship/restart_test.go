package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"ship/session/redis"
)

// epoch is that of the one session's newest lease.
func (r *rig) epoch() (epoch int64) {
	r.t.Helper()
	r.withStore(func(ctx context.Context, store *redis.Store) {
		ids, err := store.Sessions(ctx)
		if err != nil || len(ids) != 1 {
			r.t.Fatalf("sessions %v, %v", ids, err)
		}
		c, err := store.Peek(ctx, ids[0])
		if err != nil {
			r.t.Fatal(err)
		}
		epoch = c.Lease.Epoch
	})
	return epoch
}

// withStore looks at Redis from outside.
func (r *rig) withStore(look func(context.Context, *redis.Store)) {
	r.t.Helper()
	r.look(func(ctx context.Context, store *redis.Store) error {
		look(ctx, store)
		return nil
	})
}

// begin asks for work that takes some time on a pull request, and waits until
// the agent is at it.
func (r *rig) begin(text string) int {
	r.t.Helper()
	n := r.draft().Number
	r.start()
	r.deliver(r.says(n, "/ship "+text))
	r.await("the agent to be at work", patience, func() bool { return r.working(1) })
	return n
}

// TestRollingRestarts: in one turn ship is replaced ten times, as an upgrade
// does, or fewer times on a machine that has no time for ten. The next is at the
// session long before a lease would lapse, and the agent hears of none of it.
func TestRollingRestarts(t *testing.T) {
	const leaseLapses = 15 * time.Second
	t.Parallel()
	r := newRig(t, rigOptions{})
	pr := r.begin("turn TAKING 45s")
	var took []time.Duration
	for len(took) < 10 && !r.quiet() {
		before, began := r.epoch(), time.Now()
		r.stop()
		r.start()
		r.await("the next to take over", patience, func() bool { return r.epoch() > before || r.quiet() })
		took = append(took, time.Since(began))
	}
	if slices.Sort(took); took[0] > leaseLapses {
		t.Errorf("taking over took %s", took)
	}
	t.Logf("from SIGTERM to the next owner: %s", took)
	r.endedTurns(1, patience)
	r.once(t, pr, "began: turn TAKING 45s", "turn TAKING 45s")
	r.check(t, "success", "retry", "ready")
	r.stop()
}

// TestRedisDies in the middle of a turn, is back soon, dies again and is back
// only when the owner has let go: the turn ends as if nothing had happened.
func TestRedisDies(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	pr := r.begin("turn TAKING 40s")
	for _, away := range []time.Duration{time.Second, 12 * time.Second} { // the owner lets go after ten
		r.redis.Kill()
		time.Sleep(away)
		r.redis.Restart()
	}
	r.endedTurns(1, patience)
	r.once(t, pr, "began: turn TAKING 40s", "turn TAKING 40s")
	r.check(t, "success", "retry", "ready")
	if !strings.Contains(r.log.String(), "lease lost") {
		t.Error("the owner did not let go while it could not renew its lease")
	}
	r.stop()
}
