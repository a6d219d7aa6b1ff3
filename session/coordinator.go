package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// The times of a lease. An owner stops by itself well before anybody else may
// claim, measured from before the last successful renewal was sent.
const (
	firstLease = 5 * time.Second
	leaseTime  = 15 * time.Second
	renewEvery = 5 * time.Second
	fenceAfter = 10 * time.Second
	// saveEvery is how often mere progress is committed.
	saveEvery = 2 * time.Second
	// maxTries is how often a session may bring its owner down before what it
	// was about to do is put aside.
	maxTries = 5
	// boxLook is when a session is due whose box is kept for good. Nothing is done
	// then, but what has a box stays on the store's schedule: see Register.
	boxLook = 24 * time.Hour
	// drainTime is how long effects on platforms may take to end at shutdown.
	drainTime = 8 * time.Second
)

// Engine is what every coordinator of a process shares.
type Engine struct {
	Store Store
	Inbox Inbox
	// Performers by Effect.By; Self is the coordinator's own.
	Performers map[string]Performer
	Policy     Policy
	Log        *slog.Logger
	// Observer is told what happens; nil: nobody is.
	Observer Observer
	// Hook is called with the name of each point where a crash would be
	// interesting. Nil outside of tests.
	Hook func(point string)
}

func (en *Engine) hook(point string) {
	if en.Hook != nil {
		en.Hook(point)
	}
}

// coordinator owns one session from a claim to the release. One goroutine
// runs it; effects run in goroutines of their own and report back to it.
type coordinator struct {
	*Engine
	log     *slog.Logger
	lease   Lease
	version int64
	cursor  int64
	state   State
	dead    []DeadLetter
	// change is what the observer hears of with the next commit.
	change Change
	dirty  bool
	urgent bool
	// renewed is when the last successful renewal or commit was begun.
	renewed time.Time
	saved   time.Time
	// skew is the store's clock minus ours, at the claim.
	skew time.Duration

	jobs    *jobs
	results chan result
	mail    chan struct{}
}

func newCoordinator(en *Engine, c Claim, began time.Time) (*coordinator, error) {
	state, err := DecodeState(c.Lease.ID, c.State)
	if err != nil {
		return nil, err
	}
	co := &coordinator{
		Engine: en, lease: c.Lease, version: c.Version, cursor: c.Cursor, state: state,
		renewed: began, results: make(chan result), mail: make(chan struct{}, 1),
		log: en.Log.With("session", string(c.Lease.ID), "generation", c.Lease.Epoch),
	}
	if !c.Now.IsZero() {
		co.skew = time.Until(c.Now)
	}
	co.jobs = newJobs(co)
	return co, nil
}

// now is the store's clock, so that workers whose clocks differ agree.
func (c *coordinator) now() time.Time { return time.Now().Add(c.skew) }

// wake tells of mail; it never blocks.
func (c *coordinator) wake() {
	select {
	case c.mail <- struct{}{}:
	default:
	}
}

// run works until nothing is left to do now, then releases the session. It
// returns nil then, and ErrLeaseLost when somebody else has it.
func (c *coordinator) run(ctx context.Context, claim Claim) error {
	defer c.jobs.wait()
	c.receive(claim)
	for {
		if err := c.save(ctx); err != nil {
			return c.abandon(err)
		}
		if ctx.Err() != nil {
			return c.drain(ctx)
		}
		if c.sinceRenewal() >= fenceAfter { // frozen until now: somebody else may be at it
			return c.abandon(ErrLeaseLost)
		}
		if !c.dirty { // nothing is performed that is not committed
			c.jobs.launch(ctx)
		}
		if c.quiet() {
			return c.release(ctx)
		}
		err := c.wait(ctx)
		if errors.Is(err, ErrTooNew) { // the mail is for a newer release
			return c.drain(ctx)
		}
		if err != nil {
			return c.abandon(err)
		}
	}
}

// receive folds what the claim brought.
func (c *coordinator) receive(claim Claim) {
	if claim.Stolen {
		c.fold(Event{Kind: Taken})
	}
	if claim.Tries > maxTries {
		c.poisoned(claim)
		return
	}
	c.read(claim.Events)
}

func (c *coordinator) read(events []Event) {
	for _, e := range events {
		if e.Seq <= c.cursor {
			continue
		}
		at := e.At
		e = withTrail(e)
		e.At = c.now()
		if why := unfit(c.state, e); why != "" {
			c.bury(letterOf(e, why))
			e = Event{Kind: Tick, Seq: e.Seq, At: e.At, Delivery: e.Delivery}
		}
		c.fold(e)
		c.cursor = e.Seq
		c.recordRead(e, at)
		c.log.Info("event", "kind", string(e.Kind), "delivery", e.Delivery, "seq", e.Seq, "waited", e.At.Sub(at).String())
	}
}

// fold steps the state. Effects that it decides belong to this epoch.
func (c *coordinator) fold(e Event) {
	if e.At.IsZero() {
		e.At = c.now()
	}
	before, cause := c.state, c.state.trailOf(e)
	c.state = Step(c.state, e, c.Policy)
	c.state.inheritTrail(cause)
	for i := range c.state.Pending {
		if p := &c.state.Pending[i]; p.Epoch == 0 {
			p.Epoch, p.Trail = c.lease.Epoch, c.state.trailFor(*p, cause)
		}
	}
	c.recordChange(before, e, cause)
	c.dirty = true
	c.urgent = c.urgent || e.Kind != Moved
	c.jobs.heed(c.state)
}

// save commits what was folded; mere progress at most every few seconds.
func (c *coordinator) save(ctx context.Context) error {
	if !c.dirty || (!c.urgent && time.Since(c.saved) < saveEvery) {
		return nil
	}
	if err := c.commit(ctx, Commit{Lease: leaseTime}); err != nil {
		return err
	}
	c.dirty, c.urgent, c.saved = false, false, time.Now()
	c.jobs.committed(c.state)
	return nil
}

// commit sends one commit until it is answered or the lease has run out. What
// was decided must be known before the process ends, so a shutdown does not
// interrupt it.
func (c *coordinator) commit(ctx context.Context, k Commit) error {
	state, err := c.state.Encode()
	if err != nil {
		return err
	}
	k.Version, k.Cursor, k.State, k.StateVersion, k.Dead = c.version, c.cursor, state, StateVersion, c.dead
	began := time.Now()
	err = c.insist(ctx, func(ctx context.Context) error { return c.Store.Commit(ctx, c.lease, k) })
	if err != nil {
		return fmt.Errorf("commit version %d: %w", c.version, err)
	}
	c.version++
	c.reportChange(ctx, c.dead)
	c.dead = nil
	c.renewed = began
	return nil
}

// insist repeats a call to the store while the lease lasts. Every such call
// may be performed twice.
func (c *coordinator) insist(ctx context.Context, call func(context.Context) error) error {
	ctx = context.WithoutCancel(ctx) // bounded by the fence below instead
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		left := fenceAfter - c.sinceRenewal()
		if left <= 0 {
			return ErrLeaseLost
		}
		err := try(ctx, min(left, 2*time.Second), call)
		if err == nil || errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrConflict) || errors.Is(err, ErrTooNew) {
			return err
		}
		c.log.Warn("store did not answer, trying again", "err", err)
		time.Sleep(min(wait, left))
	}
}

// sinceRenewal goes by the monotonic and by the wall clock, for the former
// stands still while the machine sleeps.
func (c *coordinator) sinceRenewal() time.Duration {
	return max(time.Since(c.renewed), time.Now().Round(0).Sub(c.renewed.Round(0)))
}

func try(ctx context.Context, d time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return call(ctx)
}

// quiet: nothing runs, nothing is due, and nothing unsaved is left.
func (c *coordinator) quiet() bool {
	if len(c.jobs.running) > 0 || c.dirty {
		return false
	}
	next := NextLook(c.state, c.Policy)
	return next.IsZero() || next.After(c.now())
}

// release gives the session back until its next timer. Mail that came in
// between keeps it due.
func (c *coordinator) release(ctx context.Context) error {
	return c.commit(ctx, Commit{Release: true, Due: c.untilNextLook()})
}

// wait blocks until something happens, and folds it.
func (c *coordinator) wait(ctx context.Context) error {
	renew := time.NewTimer(max(0, renewEvery-time.Since(c.renewed)))
	defer renew.Stop()
	tick := time.NewTimer(c.untilTick())
	defer tick.Stop()
	select {
	case <-ctx.Done():
	case r := <-c.results:
		c.result(r)
	case <-c.jobs.moved:
		c.progress()
	case <-c.mail:
		return c.fetch(ctx)
	case <-renew.C:
		return c.renew(ctx)
	case <-tick.C:
		if c.boxIsDue() {
			c.fold(Event{Kind: Tick})
		}
	}
	return nil
}

// boxIsDue: the state's own timer has come, which only a tick can tell it.
func (c *coordinator) boxIsDue() bool {
	due := c.state.boxDue(c.Policy)
	return !due.IsZero() && !due.After(c.now())
}

// untilTick is the time to the next timer or unsaved progress.
func (c *coordinator) untilTick() time.Duration {
	d := time.Hour
	if next := c.jobs.nextDue(); !next.IsZero() {
		d = next.Sub(c.now())
	}
	if c.boxIsDue() {
		d = 0
	}
	if c.dirty { // nothing may begin before that is saved
		d = saveEvery - time.Since(c.saved)
	}
	return max(d, time.Millisecond)
}

func (c *coordinator) fetch(ctx context.Context) error {
	var events []Event
	err := c.insist(ctx, func(ctx context.Context) (err error) {
		events, err = c.Store.Read(ctx, c.lease.ID, c.cursor)
		return err
	})
	if err != nil {
		return fmt.Errorf("read mail: %w", err)
	}
	c.read(events)
	return nil
}

func (c *coordinator) renew(ctx context.Context) error {
	began := time.Now()
	var newest int64
	err := c.insist(ctx, func(ctx context.Context) (err error) {
		newest, err = c.Store.Renew(ctx, c.lease, leaseTime)
		return err
	})
	if err != nil {
		return fmt.Errorf("renew lease: %w", err)
	}
	c.renewed = began
	if newest > c.cursor {
		return c.fetch(ctx) // a wake was lost
	}
	return nil
}

// result folds how an effect went, and before that how far it said it was: the
// last of that is what stays.
func (c *coordinator) result(r result) {
	c.progress()
	c.jobs.ended(r)
	switch {
	case r.err == nil:
		r.performed.Effect = r.effect.ID
		c.fold(Event{Kind: Done, Performed: &r.performed})
	case errors.Is(r.err, ErrShutdown), errors.Is(r.err, ErrLeaseLost):
		// It goes on under the next owner.
	case !c.jobs.has(r.effect.ID):
		// It was given up with its box while it ran.
	default:
		c.fail(r.effect, failure(r.effect, r.err))
	}
}

func (c *coordinator) progress() {
	for _, p := range c.jobs.takeProgress() {
		c.fold(Event{Kind: Moved, Progress: &p})
	}
}

// abandon ends everything that this owner has begun, because it may not go on.
func (c *coordinator) abandon(err error) error {
	c.jobs.cancelAll(ErrLeaseLost)
	c.jobs.collect(time.Now().Add(drainTime), nil)
	return err
}

// drain ends in order: what runs in a box goes on there, what is being said is
// finished, and the session is due at once for the next owner.
func (c *coordinator) drain(ctx context.Context) error {
	c.jobs.cancelWorkers(ErrShutdown)
	if len(c.jobs.running) > 0 { // the lease must outlast what is waited for
		if err := c.renew(ctx); err != nil && !errors.Is(err, ErrTooNew) {
			return c.abandon(err)
		}
	}
	c.jobs.collect(time.Now().Add(drainTime), c.result)
	c.jobs.cancelAll(ErrShutdown)
	c.jobs.collect(time.Now().Add(time.Second), c.result)
	return c.commit(ctx, Commit{Release: true, Due: c.untilNextLook()})
}

// untilNextLook is what a release leaves as due.
func (c *coordinator) untilNextLook() time.Duration {
	next := NextLook(c.state, c.Policy)
	switch {
	case next.IsZero() && c.state.Box != "":
		return boxLook
	case next.IsZero():
		return -1
	}
	return max(0, next.Sub(c.now()))
}
