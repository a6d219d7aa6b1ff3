// Package turn does the part of a session that happens in a box: it prepares
// the box, runs the coding agent, and publishes what the agent did.
//
// Each of these is an effect that may be performed again, by this process or
// by one that takes over after it died. A box is found by its session's id
// before one is made; a prompt carries an id, so that sending it twice runs it
// once; a push of what is there already does nothing.
package turn

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"ship/sandbox"
	"ship/sandbox/agent"
	"ship/sandbox/broker"
	"ship/sandbox/lifecycle"
	"ship/sandbox/preview"
	"ship/session"
	"ship/session/memory"
)

// Identity is whom commits are made by.
type Identity struct{ Name, Email string }

// Tokens signs what a box may do at the broker.
type Tokens interface {
	Sign(broker.Grant) (string, error)
}

// Broker counts every call of a turn, and ends what it may do.
type Broker interface {
	// Balance returns what the accounts of a turn have spent so far.
	Balance(ctx context.Context, g broker.Grant) (broker.Balance, error)
	// Book counts what of a box's time was not booked yet.
	Book(ctx context.Context, s broker.Stay) error
	// End makes the turn's token good for nothing, for ever. Twice is once.
	End(ctx context.Context, session, turn string) error
}

// Previews signs links to servers in boxes.
type Previews interface {
	URL(t preview.Target, now, until time.Time) (string, error)
}

// Config of a Worker.
type Config struct {
	Boxes sandbox.Provider
	Agent agent.Driver
	// Restore puts back what the agent's driver had put aside in the
	// repository. It may be called twice.
	Restore func(context.Context, sandbox.Box) error
	// Setup of the agent, but for what the session decides.
	Setup  agent.Setup
	Tokens Tokens
	Broker Broker
	// Transcript receives the agent's steps; nil: none is kept.
	Transcript session.Transcript
	// Redact takes known secrets out of whatever leaves a box. May be nil.
	Redact func(string) string
	// Secrets must never be pushed.
	Secrets []string
	// Places are those that all workers share; nil: this one is alone.
	Places session.Places
	// Slots is how many boxes may work at once in this process. PerPerson is how
	// many one person's turns may have, and Total all together, with every worker
	// that shares the places. Zero: no limit.
	Slots, PerPerson, Total int
	// Site names whose list of boxes Boxes has: see session.State. Empty: no box
	// on record is told to be lost because it is not listed.
	Site string
	// Rounds are how often boxes are held against the sessions; zero: as usual.
	Rounds Rounds
	// Life says for how long boxes are kept, and when they are paused.
	Life lifecycle.Policy
	// Hosts that the box may reach, as people write them. Empty: none.
	Hosts []string
	// Previews signs the links to what boxes show; nil: they show nothing.
	Previews Previews
	// PersonDayUSD and DayUSD bound what one person and all together may spend on
	// a day of UTC. Zero: nothing does.
	PersonDayUSD, DayUSD float64
	// Calls is how many times a turn may call a model.
	Calls  int
	Limits agent.Limits
	Author Identity
	// Message renders the commit message of a turn.
	Message func(session.State) string
	Log     *slog.Logger
}

// Worker performs the effects of boxes. It is a session.Performer.
type Worker struct {
	Config
	slots *slots
}

// New returns a worker. It holds nothing that a restart would miss.
func New(c Config) *Worker {
	if c.Places == nil {
		c.Places = &memory.Places{}
	}
	return &Worker{Config: c, slots: newSlots(c)}
}

// Perform does one effect. See the package comment for repeats.
func (w *Worker) Perform(ctx context.Context, job session.Job) (session.Performed, error) {
	switch job.Effect.Kind {
	case session.Prepare:
		return w.prepare(ctx, job)
	case session.Run:
		return w.run(ctx, job)
	case session.Publish:
		return w.publish(ctx, job)
	case session.Close:
		return session.Performed{}, w.close(ctx, job)
	case session.Tend:
		return w.tend(ctx, job)
	case session.Discard:
		return session.Performed{}, w.discard(ctx, job)
	default:
		return session.Performed{}, &session.Problem{
			Say: "I don't know how to do that.", Err: fmt.Errorf("not an effect of a box: %q", job.Effect.Kind),
		}
	}
}

// processName is unique: what git prints now differs from what it printed then.
func processName(kind string) string { return kind + "-" + rand.Text()[:12] }

// slot waits for a place to work, telling the thread where in the queue it is.
func (w *Worker) slot(ctx context.Context, job session.Job) error {
	tell := func(place int) { job.Progress(session.Progress{Place: place, Usage: job.State.Turn.Progress.Usage}) }
	return w.slots.acquire(ctx, w.slots.stake(job, setUp), tell)
}

// prepare makes or finds the box, checks the repository out, and starts the
// agent.
func (w *Worker) prepare(ctx context.Context, job session.Job) (session.Performed, error) {
	if err := w.slot(ctx, job); err != nil {
		if job.Repeat { // an earlier try may have made one
			w.abandon(ctx, job)
		}
		return session.Performed{}, fmt.Errorf("wait for a place: %w", err)
	}
	p, err := w.prepareBox(ctx, job)
	if noRoom(err) {
		p, err = w.prepareAnother(ctx, job, err)
	}
	if err != nil {
		w.abandon(ctx, job)
		w.slots.letGo(ctx, w.slots.stake(job, setUp))
		return session.Performed{}, boxProblem("prepare the box", err)
	}
	return session.Performed{Prepared: &p}, nil
}

func (w *Worker) prepareBox(ctx context.Context, job session.Job) (session.Prepared, error) {
	s := job.State
	if err := w.bookRest(ctx, job); err != nil {
		return session.Prepared{}, err
	}
	box, life, err := w.enter(ctx, job)
	if err != nil {
		return session.Prepared{}, err
	}
	busy, err := life.Apply(lifecycle.TurnBegun, job.Now())
	if err != nil {
		return session.Prepared{}, err
	}
	defer w.keepAlive(ctx, job, busy)()
	job.Progress(session.Progress{Doing: "fetching " + s.Repo.Name})
	repo := w.repository(box, s)
	head, fresh, err := repo.checkout(ctx)
	if err != nil {
		return session.Prepared{}, fmt.Errorf("check out: %w", err)
	}
	var saved time.Time
	if fresh && (s.Turn.N > 1 || s.Turn.Prepares > 1) {
		if saved, err = repo.recover(ctx, checkpointOf(s)); err != nil {
			return session.Prepared{}, fmt.Errorf("bring back what was saved: %w", err)
		}
	}
	if fresh {
		if err := repo.markWhole(ctx); err != nil {
			return session.Prepared{}, fmt.Errorf("note that the repository is whole: %w", err)
		}
	}
	w.keepRoom(ctx, box)
	job.Progress(session.Progress{Doing: "starting the agent"})
	if _, err := w.Agent.Start(ctx, box, w.Setup); err != nil {
		return session.Prepared{}, fmt.Errorf("start the agent: %w", err)
	}
	return session.Prepared{Box: life.ID, Head: head, Fresh: fresh, Saved: saved, Site: w.Site, Life: life}, nil
}

// attach finds the box and gives it the token of this turn.
func (w *Worker) attach(ctx context.Context, job session.Job, id string) (sandbox.Box, error) {
	box, err := w.Boxes.Attach(ctx, id, w.Life.TTL)
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	if err := w.hand(ctx, job, box); err != nil {
		return nil, w.confirmGone(ctx, id, err)
	}
	return box, nil
}

func (w *Worker) repository(box sandbox.Box, s session.State) *repository {
	return &repository{
		box: box, name: s.Repo.Name, base: s.Base, branch: s.Branch, author: w.Author,
		secrets: guarded(w.Secrets), bounds: usualBounds(), closed: s.Closed,
	}
}

// run gives the agent the turn's requests and watches it to the end.
func (w *Worker) run(ctx context.Context, job session.Job) (session.Performed, error) {
	st := w.slots.stake(job, time.Until(deadline(job))+publishing)
	w.slots.hold(ctx, st)
	done, err := w.supervise(ctx, job)
	if err == nil {
		return done, nil
	}
	if passedOn(ctx) {
		w.slots.letGo(ctx, st)
	}
	return session.Performed{}, boxProblem("run the agent", w.confirmGone(ctx, job.State.Box, err))
}

func (w *Worker) supervise(ctx context.Context, job session.Job) (session.Performed, error) {
	s := job.State
	setup, done := unlessStopped(ctx)
	defer done()
	at := job.Now()
	box, err := w.attach(setup, job, s.Box)
	if err != nil {
		return session.Performed{}, err
	}
	defer w.keepAlive(ctx, job, lifeOf(s).Attach(at))()
	a, err := w.Agent.Start(setup, box, w.Setup)
	if err != nil {
		return session.Performed{}, fmt.Errorf("start the agent: %w", err)
	}
	saving := w.keepSaved(ctx, job, box)
	t := newTalk(w, job, a)
	shown := w.exhibit(ctx, box, t)
	out, err := t.hold(ctx)
	saving()
	show := shown(err == nil && out.Ending == session.Completed)
	if err != nil {
		return session.Performed{}, err
	}
	w.mention(ctx, w.repository(box, s), &out)
	return session.Performed{Turn: &out, Preview: show}, nil
}

// mention says what of the work will not be pushed. Who reads it can do
// without, so that a look which fails is only logged.
func (w *Worker) mention(ctx context.Context, r *repository, out *session.Outcome) {
	ctx, done := unlessStopped(ctx)
	defer done()
	left, err := r.changes(ctx)
	if err != nil {
		w.Log.WarnContext(ctx, "look for what will not be pushed", "err", err)
		return
	}
	out.Answer = strings.TrimSpace(out.Answer + "\n\n" + left.notPushed())
}

// unlessStopped is a context that a stop does not end: to stop an agent, it has
// to be reached first.
func unlessStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	free, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute) // ended by the parent below, but for a stop
	unhook := context.AfterFunc(ctx, func() {
		if !errors.Is(context.Cause(ctx), session.ErrStopRequested) {
			cancel()
		}
	})
	return free, func() { unhook(); cancel() }
}

// close ends the turn's rights. Nothing of it comes after: it is decided when
// the turn's last effect in the box is known to be done.
func (w *Worker) close(ctx context.Context, job session.Job) error {
	if err := w.slots.release(ctx, job.State.ID, job.Lease.Epoch); err != nil {
		return boxProblem("give the box's place back", err)
	}
	if err := w.bookTurn(ctx, job); err != nil {
		return boxProblem("book the turn's box", err)
	}
	if err := w.Broker.End(ctx, string(job.State.ID), job.Effect.Text); err != nil {
		return boxProblem("end the turn at the broker", err)
	}
	return nil
}

func (w *Worker) discard(ctx context.Context, job session.Job) error {
	if err := w.bookRest(ctx, job); err != nil {
		return boxProblem("book the box", err)
	}
	if err := w.Boxes.Destroy(ctx, job.Effect.Text); err != nil {
		return boxProblem("destroy the box", err)
	}
	return nil
}

// modelOf splits "provider/name".
func modelOf(s string) agent.Model {
	provider, name, _ := strings.Cut(s, "/")
	return agent.Model{Provider: provider, Name: name}
}
