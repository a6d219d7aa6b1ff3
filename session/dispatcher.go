package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"
)

// pollEvery is how often the store is asked who is due. A wake only makes it
// sooner.
const pollEvery = 250 * time.Millisecond

// unreadableWait is how long a session that cannot be read here is let alone.
const unreadableWait = time.Minute

// Dispatcher claims sessions that are due and runs a coordinator for each.
type Dispatcher struct {
	*Engine
	// Max is how many sessions this process coordinates at once. Boxes have a
	// limit of their own; this one only bounds memory.
	Max int

	mu     sync.Mutex
	active map[ID]*coordinator
	// early are the sessions that were woken here while they were claimed.
	early map[ID]bool
	// later are the sessions that this process cannot read, and when it tries
	// again. They stay due: a newer release takes them at once.
	later map[ID]time.Time
	wg    sync.WaitGroup
}

// Run claims and coordinates until ctx ends. Then it claims nothing more, lets
// every coordinator release its session, and returns nil.
func (d *Dispatcher) Run(ctx context.Context) error {
	d.active, d.early, d.later = map[ID]*coordinator{}, map[ID]bool{}, map[ID]time.Time{}
	defer d.wg.Wait()
	wakes := d.Store.Wakes(ctx)
	for {
		if err := d.runOnce(ctx); err != nil && ctx.Err() == nil {
			d.Log.Warn("asking who is due", "err", err)
		}
		if !d.pause(ctx, wakes) {
			return nil
		}
	}
}

// pause waits for the next poll or a wake of a session that is not held here.
func (d *Dispatcher) pause(ctx context.Context, wakes <-chan ID) bool {
	timer := time.NewTimer(pollEvery + mathrand.N(pollEvery/4))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case id, ok := <-wakes:
			if !ok {
				wakes = nil
				continue
			}
			if d.hand(id) {
				continue
			}
			return true
		}
	}
}

// hand wakes the coordinator that holds a session here, as soon as there is one:
// the mail may have come after the claim was answered.
func (d *Dispatcher) hand(id ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.active[id]
	switch {
	case !ok:
	case c == nil:
		d.early[id] = true
	default:
		c.wake()
	}
	return ok
}

// runOnce claims what is due, as far as there is room.
func (d *Dispatcher) runOnce(ctx context.Context) error {
	room := d.Max - d.held()
	if room <= 0 {
		return nil
	}
	room = min(room, 100)
	due, err := d.Store.Due(ctx, room+d.postponed()) // those must not take others' places
	if err != nil {
		return fmt.Errorf("list due sessions: %w", err)
	}
	due = slices.DeleteFunc(due, d.isPostponed)
	due = due[:min(len(due), room)]
	mathrand.Shuffle(len(due), func(i, k int) { due[i], due[k] = due[k], due[i] })
	for _, id := range due {
		d.start(ctx, id)
	}
	return nil
}

// postpone leaves a session to others for a while.
func (d *Dispatcher) postpone(id ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.later[id] = time.Now().Add(unreadableWait)
}

// postponed forgets the sessions whose time has come, and counts the others.
func (d *Dispatcher) postponed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(d.later, func(_ ID, until time.Time) bool { return !until.After(now) })
	return len(d.later)
}

func (d *Dispatcher) isPostponed(id ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, later := d.later[id]
	return later
}

func (d *Dispatcher) held() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.active)
}

// reserve marks a session as held here before it is claimed.
func (d *Dispatcher) reserve(id ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, held := d.active[id]; held {
		return false
	}
	d.active[id] = nil
	return true
}

func (d *Dispatcher) set(id ID, c *coordinator) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.active[id] = c
	if d.early[id] {
		c.wake()
	}
}

func (d *Dispatcher) forget(id ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.active, id)
	delete(d.early, id)
}

func (d *Dispatcher) start(ctx context.Context, id ID) {
	if !d.reserve(id) {
		return
	}
	d.wg.Go(func() {
		defer d.forget(id)
		d.left(id, d.coordinate(ctx, id))
	})
}

func (d *Dispatcher) coordinate(ctx context.Context, id ID) error {
	began := time.Now()
	claim, err := d.Store.Claim(ctx, id, rand.Text(), firstLease)
	if err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	d.claimed(claim)
	ctx = WithLog(ctx, "session", string(id), "generation", claim.Lease.Epoch)
	// The first lease is short, so it counts as begun earlier: the fence falls
	// well before its end, and the first renewal comes at once.
	c, err := newCoordinator(d.Engine, claim, began.Add(firstLease*2/3-fenceAfter))
	if err != nil {
		d.postpone(id)
		return err
	}
	d.set(id, c)
	return c.run(ctx, claim)
}
