package session

import (
	"context"
	"errors"
	"time"
)

// Observer is told what happens to sessions, for metrics and traces. It is
// called from many goroutines, must not block, and nothing depends on it. After
// a crash it may be told of something a second time, by another process.
type Observer interface {
	// LeaseChanged tells what became of the lease of a session.
	LeaseChanged(LeaseChange)
	// Performing is told that an effect begins. The effect is performed with the
	// context that it returns, and it is told how that went.
	Performing(ctx context.Context, job Job) (context.Context, func(error))
	// Committed tells what a commit made true.
	Committed(context.Context, Change)
}

// LeaseChange is what became of a lease.
type LeaseChange struct {
	Session ID
	Epoch   int64
	Outcome LeaseOutcome
}

// LeaseOutcome names what may become of a lease.
type LeaseOutcome string

// What may become of a lease. The first two begin one.
const (
	Claimed LeaseOutcome = "claimed"
	// TakenOver: the owner before did not release it.
	TakenOver LeaseOutcome = "taken over"
	Released  LeaseOutcome = "released"
	// Lost: another owner has it, or may have.
	Lost LeaseOutcome = "lost"
	// Unread: a newer release wrote the session.
	Unread LeaseOutcome = "left to a newer release"
	// Unheld: it could not be claimed, read or released.
	Unheld LeaseOutcome = "failed"
)

// Change is what happened since the commit before. Its zero value says nothing.
type Change struct {
	Session  ID
	Epoch    int64
	Read     []EventRead
	Answered []FirstAnswer
	Failures []EffectFailure
	Ended    []TurnEnd
	// Dead are the letters that this commit put aside.
	Dead []DeadLetter
	// Taken is set when the session was taken over from an owner that did not
	// release it.
	Taken *Takeover
}

// EventRead is an event that was read from the inbox.
type EventRead struct {
	Kind  Kind
	Trail Trail
	// At is when it was accepted, and Read when it was folded, both by the
	// store's clock.
	At, Read time.Time
}

// FirstAnswer is the first answer to a request that whoever asked can see.
type FirstAnswer struct {
	Platform string
	Kind     EffectKind
	Trail    Trail
	// After is how long they waited since their request was accepted.
	After time.Duration
}

// EffectFailure is a failure of an effect, and what follows.
type EffectFailure struct {
	Kind EffectKind
	By   string
	Then Consequence
}

// Consequence of a failure.
type Consequence string

// What may follow a failure.
const (
	TryAgain Consequence = "again"
	// BoxLost: another box is made.
	BoxLost Consequence = "box lost"
	GivenUp Consequence = "given up"
	// Cancelled: somebody said stop.
	Cancelled Consequence = "stopped"
)

// TurnEnd is how a turn came to its end.
type TurnEnd struct {
	Turn    int
	Trail   Trail
	Ending  Ending
	Usage   Usage
	Started time.Time
	At      time.Time
	// Changed: it brought commits.
	Changed bool
}

// Takeover of a session.
type Takeover struct {
	// Trail of the turn that was under way; zero: none was.
	Trail Trail
	At    time.Time
}

// observer is Engine.Observer, or one that does nothing.
func (en *Engine) observer() Observer {
	if en.Observer == nil {
		return noObserver{}
	}
	return en.Observer
}

// noObserver is the Observer of an Engine without one.
type noObserver struct{}

func (noObserver) LeaseChanged(LeaseChange)          {}
func (noObserver) Committed(context.Context, Change) {}
func (noObserver) Performing(ctx context.Context, _ Job) (context.Context, func(error)) {
	return ctx, func(error) {}
}

// claimed tells of a claim.
func (d *Dispatcher) claimed(c Claim) {
	h := LeaseChange{Session: c.Lease.ID, Epoch: c.Lease.Epoch, Outcome: Claimed}
	if c.Stolen {
		h.Outcome = TakenOver
	}
	d.observer().LeaseChanged(h)
}

// left tells how a session was left, in the log and to the observer.
func (d *Dispatcher) left(id ID, err error) {
	log := d.Log.With("session", string(id))
	h := LeaseChange{Session: id, Outcome: Released}
	switch {
	case errors.Is(err, ErrNotDue):
		return
	case err == nil:
	case errors.Is(err, ErrTooNew):
		d.postpone(id)
		log.Warn("a session is left to a newer release")
		h.Outcome = Unread
	case errors.Is(err, ErrLeaseLost):
		log.Warn("lease lost, another worker goes on")
		h.Outcome = Lost
	default:
		log.Error("session left", "err", err)
		h.Outcome = Unheld
	}
	d.observer().LeaseChanged(h)
}

// EffectKinds are all that an effect may be.
func EffectKinds() []EffectKind {
	return []EffectKind{
		Admit, Acknowledge, Say, Ask, Begin, Answer, Reply, Report, Forward, Prepare, Run, Publish, Open, MarkReady, Check, Close, Tend, Discard, Sweep,
	}
}

// Endings are all that a turn may have.
func Endings() []Ending {
	return []Ending{Completed, Stopped, Stuck, TimedOut, Stalled, Spent, Refused, Unreachable, Crashed}
}

// Phases are all that a session may be in, in order.
func Phases() []Phase {
	return []Phase{PhaseAsking, PhaseQueued, PhasePreparing, PhaseWorking, PhasePublishing, PhaseStopping, PhaseEnded}
}

// Phases counts the sessions that this process holds, by what people see of
// them. One that only waits is held by nobody.
func (d *Dispatcher) Phases() map[Phase]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := map[Phase]int{}
	for _, c := range d.active {
		if c == nil { // not claimed yet
			continue
		}
		if s := c.jobs.latest.Load(); s != nil {
			n[s.phase()]++
		}
	}
	return n
}

// phase is what people see, and PhaseEnded if there is nothing to see.
func (s State) phase() Phase {
	if s.Asking == nil && !s.Busy() {
		return PhaseEnded
	}
	return ViewOf(s).Phase
}

// recordChange keeps what an event changed for the next commit.
func (c *coordinator) recordChange(before State, e Event, cause Trail) {
	switch e.Kind {
	case Taken:
		c.change.Taken = &Takeover{Trail: before.turnTrail(), At: e.At}
	case Done:
		if p, ok := before.pending(e.effectID()); ok && p.visible() && !p.Trail.Asked.IsZero() {
			c.state.markAnswered(p.Trail)
			c.change.Answered = append(c.change.Answered, FirstAnswer{
				Platform: p.By, Kind: p.Kind, Trail: p.Trail, After: e.At.Sub(p.Trail.Asked),
			})
		}
	}
	if was, is := before.Turn, c.state.Turn; before.Busy() && !c.state.Busy() && is != nil && is.N == was.N && is.Outcome != nil {
		c.change.Ended = append(c.change.Ended, TurnEnd{
			Turn: is.N, Trail: firstTrail(before.turnTrail(), cause), Ending: is.Outcome.Ending, Usage: is.Outcome.Usage,
			Started: was.Started, At: e.At, Changed: is.Changed,
		})
	}
}

func firstTrail(a, b Trail) Trail {
	if a == (Trail{}) {
		return b
	}
	return a
}

// recordFailure keeps a failure and what follows for the next commit.
func (c *coordinator) recordFailure(e Effect, then Consequence) {
	c.change.Failures = append(c.change.Failures, EffectFailure{Kind: e.Kind, By: e.By, Then: then})
}

// reportChange hands on what a commit made true.
func (c *coordinator) reportChange(ctx context.Context, dead []DeadLetter) {
	change := c.change
	c.change = Change{}
	change.Session, change.Epoch, change.Dead = c.lease.ID, c.lease.Epoch, dead
	c.observer().Committed(ctx, change)
}

// observed is around the performing of an effect: its lines in the log say whose
// they are, and the observer sees its beginning and its end.
func (c *coordinator) observed(ctx context.Context, work Job) (context.Context, func(error)) {
	e := work.Effect
	began := time.Now()
	ctx = WithLog(ctx, effectAttrs(e)...)
	ctx, ended := c.observer().Performing(ctx, work)
	return ctx, func(err error) {
		ended(err)
		if err == nil { // what follows a failure is said when that is decided
			c.log.Log(ctx, e.level(), "effect done", "by", e.By, "repeat", work.Repeat, "took", time.Since(began).String())
		}
	}
}

// recordRead keeps an event that was read from the inbox for the next commit.
func (c *coordinator) recordRead(e Event, accepted time.Time) {
	h := EventRead{Kind: e.Kind, At: accepted, Read: e.At}
	if e.Request != nil {
		h.Trail = e.Request.Trail
	}
	c.change.Read = append(c.change.Read, h)
}
