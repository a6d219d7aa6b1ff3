package slack

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	memstore "ship/session/memory"
)

var (
	posting  = call{team: team, method: "chat.postMessage", channel: ch}
	updating = call{team: team, method: "chat.update", channel: ch}
	reacting = call{team: team, method: "reactions.remove"}
)

// grants are times at which calls were allowed.
type grants struct {
	mu sync.Mutex
	at []time.Time
}

func (g *grants) add() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at = append(g.at, time.Now())
}

// most is how many there were in any window of that length.
func (g *grants) most(window time.Duration) int {
	slices.SortFunc(g.at, time.Time.Compare)
	most, first := 0, 0
	for i, at := range g.at {
		for at.Sub(g.at[first]) >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// TestGovernorsKeepLimits: two gateways whose sessions want far more than Slack
// promises are granted just that, in any minute, and nearly all of it.
func TestGovernorsKeepLimits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		call        call
		calls, most int
		window      time.Duration
	}{
		"tier 2":    {reacting, 60, tier2, time.Minute},
		"tier 3":    {updating, 200, tier3, time.Minute},
		"special":   {call{team: team, method: "chat.postMessage"}, 900, tierSpecial, time.Minute},
		"a channel": {posting, 90, channelBurst + 9, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				quota := &memstore.Quota{}
				governors := [2]*governor{newGovernor(quota), newGovernor(quota)}
				var all sync.WaitGroup
				var given grants
				for i := range tt.calls {
					all.Go(func() {
						time.Sleep(rand.N(20 * time.Second))
						if err := governors[i%2].acquire(t.Context(), Settling, tt.call); err != nil {
							t.Error(err)
						}
						given.add()
					})
				}
				all.Wait()
				most := given.most(tt.window)
				t.Logf("%d in %s", most, tt.window)
				if most > tt.most || most < tt.most*9/10 {
					t.Errorf("%d in %s, want %d", most, tt.window, tt.most)
				}
			})
		})
	}
}

// TestProgressDegradesFirst: many sessions show progress as often as they can,
// and whoever tells an end or asks something does it at once.
func TestProgressDegradesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGovernor(&memstore.Quota{})
		const sessions, life = 15, 5 * time.Minute
		end := time.Now().Add(life)
		var all sync.WaitGroup
		var moved grants
		shown := make([]int, sessions)
		for i := range sessions {
			all.Go(func() {
				for time.Now().Before(end) {
					time.Sleep(rand.N(10 * time.Second))
					wait, err := g.try(t.Context(), Moving, updating)
					if err != nil || wait > refill {
						t.Errorf("wait %s, %v", wait, err)
					}
					if wait == 0 {
						moved.add()
						shown[i]++
					}
				}
			})
		}
		for i, p := range slices.Repeat([]Priority{Settling, Thinking, Asking}, 5) {
			all.Go(func() {
				time.Sleep(time.Duration(i+1) * life / 16)
				begun := time.Now()
				if err := g.acquire(t.Context(), p, updating); err != nil || time.Since(begun) > time.Second {
					t.Errorf("priority %d waited %s, %v", p, time.Since(begun), err)
				}
			})
		}
		all.Wait()
		t.Logf("progress %d times, per session %d to %d", len(moved.at), slices.Min(shown), slices.Max(shown))
		if could := int(life / refill * tier3 / burst); len(moved.at) < could*8/10 || len(moved.at) > could+tier3/burst {
			t.Errorf("progress came %d times, about %d were possible", len(moved.at), could)
		}
		if slices.Min(shown) == 0 {
			t.Error("a session showed nothing")
		}
	})
}

// TestRefusedForTheRate: nobody makes such calls in that workspace, wherever,
// for as long as Slack said, and then no burst of them.
func TestRefusedForTheRate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ after, want time.Duration }{
		"a while":    {30 * time.Second, 30 * time.Second},
		"nothing":    {0, time.Second},
		"a nonsense": {-time.Hour, time.Second},
		"a week":     {7 * 24 * time.Hour, maxBlock},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				quota := &memstore.Quota{}
				here, there := newGovernor(quota), newGovernor(quota)
				for range 2 {
					if err := here.refused(t.Context(), posting, tt.after); err != nil {
						t.Fatal(err)
					}
				}
				others := posting
				others.channel = "C0OTHER"
				if wait, err := there.try(t.Context(), Settling, others); err != nil || wait != tt.want {
					t.Errorf("in another channel: wait %s, %v, want %s", wait, err, tt.want)
				}
				for _, free := range []call{updating, {team: "T0OTHER", method: "chat.postMessage", channel: ch}} {
					if wait, err := there.try(t.Context(), Moving, free); err != nil || wait != 0 {
						t.Errorf("%+v: wait %s, %v", free, wait, err)
					}
				}
				begun := time.Now()
				var given grants
				var all sync.WaitGroup
				for range 3 {
					all.Go(func() {
						if err := there.acquire(t.Context(), Settling, posting); err != nil {
							t.Error(err)
						}
						given.add()
					})
				}
				all.Wait()
				if first := given.at[0].Sub(begun); first < tt.want || first > tt.want+2*time.Second {
					t.Errorf("the first after %s, want %s", first, tt.want)
				}
			})
		})
	}
}

// TestRefusedEmpties: what Slack refused is used up, in the channel as well.
func TestRefusedEmpties(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGovernor(&memstore.Quota{})
		if err := g.refused(t.Context(), posting, time.Second); err != nil {
			t.Fatal(err)
		}
		var given grants
		for range 4 {
			if err := g.acquire(t.Context(), Settling, posting); err != nil {
				t.Fatal(err)
			}
			given.add()
		}
		if n := given.most(time.Second); n != 1 {
			t.Errorf("%d in a second", n)
		}
	})
}

func TestAcquireEndsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGovernor(&memstore.Quota{})
		if err := g.refused(t.Context(), posting, time.Minute); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errPatience)
		defer cancel()
		var all sync.WaitGroup
		for range 3 { // one at the head of the line, two behind it
			all.Go(func() {
				if err := g.acquire(ctx, Settling, posting); !errors.Is(err, errPatience) {
					t.Errorf("got %v", err)
				}
			})
		}
		all.Wait()
	})
}

func TestGovernorRefusesNonsense(t *testing.T) {
	t.Parallel()
	g := newGovernor(&memstore.Quota{})
	for _, tt := range []struct {
		p Priority
		c call
	}{{-1, posting}, {priorities, posting}, {Moving, call{team: team, method: "chat.scheduleMessage"}}, {Moving, call{}}} {
		if err := g.acquire(t.Context(), tt.p, tt.c); err == nil {
			t.Errorf("%+v was accepted", tt)
		}
		if _, err := g.try(t.Context(), tt.p, tt.c); err == nil {
			t.Errorf("%+v was accepted", tt)
		}
	}
	if err := g.refused(t.Context(), call{team: team, method: "chat.scheduleMessage"}, time.Second); err == nil {
		t.Error("nonsense was refused")
	}
}
