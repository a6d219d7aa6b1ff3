package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"ship/sandbox"
)

const (
	// quieting bounds the end of a turn: abort, and wait until all is idle.
	quieting = 30 * time.Second
	// request bounds one question to the agent, so that a silent server is
	// noticed.
	request = 30 * time.Second
)

var (
	errHintsDone = errors.New("turn is over")
	errQuieting  = errors.New("agent did not become quiet in time")
	errSilent    = errors.New("agent was silent")
)

const continueText = "The work was interrupted from outside. Look at what is already done, " +
	"then go on where it stopped and finish the task."

// Supervise runs one turn to its end and enforces its limits.
//
// When the context ends with run.StopCause, the agent is stopped and the
// ending is Stopped. When it ends with any other cause, the turn is left
// running in the box and the error is that cause. Calling Supervise again with
// the same Run, in this process or in another, finds the turn again and does
// not repeat it.
//
// The only other error is the box's: sandbox.ErrGone or sandbox.ErrAuth, which
// are the caller's to deal with. Everything else is an ending.
func Supervise(ctx context.Context, a Agent, run Run) (Result, error) {
	run.Limits = run.Limits.withDefaults()
	s := &supervisor{agent: a, run: run, conversation: run.Conversation, watch: watch{
		limits: run.Limits, continued: run.Prompt.ID + continued,
	}}
	v, err := s.turn(ctx)
	switch {
	case v.step == end:
	case ctx.Err() == nil:
		return Result{}, err
	case run.StopCause != nil && errors.Is(context.Cause(ctx), run.StopCause):
		v, err = ended(Stopped, ""), nil
	default:
		return Result{}, context.Cause(ctx)
	}
	return s.finish(ctx, v, err), nil
}

// continued is what the id of the prompt that says "continue" adds to the id of
// the turn's prompt.
const continued = ".continue"

type supervisor struct {
	agent        Agent
	run          Run
	watch        watch
	conversation string
	// said: the prompt has arrived.
	said bool
	last Snapshot
	// lost is since when the agent is out of reach.
	lost  time.Time
	usage Usage
	told  Progress
}

// turn looks until the turn is over or cannot be followed any more.
func (s *supervisor) turn(ctx context.Context) (verdict, error) {
	hctx, cancel := context.WithCancelCause(ctx)
	hints := s.agent.Hints(hctx)
	defer func() {
		cancel(errHintsDone)
		for range hints { // until the agent has let go
		}
	}()
	for {
		v, err := s.once(ctx)
		if err != nil || v.step == end {
			return v, err
		}
		if err := s.rest(ctx, hints); err != nil {
			return verdict{}, err
		}
	}
}

// once looks at the turn and acts on what it sees.
func (s *supervisor) once(ctx context.Context) (verdict, error) {
	snap, err := s.look(ctx)
	if err != nil {
		return s.outOfReach(ctx, err)
	}
	s.lost, s.last = time.Time{}, snap
	// A box that came back older than it was has forgotten the prompt.
	s.said = snap.Prompted
	moved := snap.Fingerprint != s.watch.mark
	v := s.watch.see(snap, time.Now())
	s.tell(ctx, moved)
	if v.step == goOn {
		p := s.run.Prompt
		p.ID, p.Text = s.watch.continued, continueText
		if err := s.agent.Prompt(ctx, s.conversation, p); err != nil {
			return s.outOfReach(ctx, err)
		}
	}
	return v, nil
}

// look says the prompt if that was not done, and takes a snapshot.
func (s *supervisor) look(ctx context.Context) (Snapshot, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, request, errSilent)
	defer cancel()
	if !s.said {
		if err := s.begin(ctx); err != nil {
			return Snapshot{}, err
		}
		s.said = true
	}
	return s.agent.Snapshot(ctx, s.conversation, s.run.Prompt.ID)
}

func (s *supervisor) begin(ctx context.Context) error {
	if s.conversation != "" {
		err := s.agent.Prompt(ctx, s.conversation, s.run.Prompt)
		if !errors.Is(err, ErrUnknown) {
			return err
		}
	}
	id, err := s.agent.Open(ctx, s.run.Title)
	if err != nil {
		return fmt.Errorf("open conversation: %w", err)
	}
	s.conversation = id
	return s.agent.Prompt(ctx, id, s.run.Prompt)
}

// outOfReach decides what an error from the agent means. The deadline holds
// here too.
func (s *supervisor) outOfReach(ctx context.Context, err error) (verdict, error) {
	now := time.Now()
	switch {
	case ctx.Err() != nil:
		return verdict{}, context.Cause(ctx)
	case errors.Is(err, ErrModel):
		return ended(Refused, ""), err
	case boxLost(err):
		return verdict{}, err
	case errors.Is(err, ErrUnknown):
		return ended(Crashed, ""), err
	case s.watch.late(now):
		return ended(TimedOut, ""), err
	}
	if s.lost.IsZero() {
		s.lost = now
	}
	if now.Sub(s.lost) >= s.run.Limits.Lost {
		return ended(Crashed, ""), err
	}
	return verdict{}, s.revive(ctx)
}

// boxLost: no agent can be reached in it, now or later.
func boxLost(err error) bool {
	return errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrAuth)
}

// revive brings a dead server back. That this fails is no reason to give up
// before Limits.Lost; that the box is lost is.
func (s *supervisor) revive(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.run.Limits.Lost, errSilent)
	defer cancel()
	if _, err := s.agent.Revive(ctx); boxLost(err) {
		return fmt.Errorf("revive agent: %w", err)
	}
	return nil
}

// rest waits for a hint or the next poll. Hints come in floods while a model
// speaks, so at least a quarter of the poll's interval lies between two looks.
func (s *supervisor) rest(ctx context.Context, hints <-chan struct{}) error {
	gap := s.run.Limits.Poll / 4
	if err := sandbox.Sleep(ctx, gap); err != nil {
		return err
	}
	poll := time.NewTimer(s.run.Limits.Poll - gap)
	defer poll.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case _, open := <-hints:
		if open {
			return nil
		}
	case <-poll.C:
		return nil
	}
	return sandbox.Sleep(ctx, s.run.Limits.Poll-gap)
}

// tell hands on the progress if it differs from what was told last.
func (s *supervisor) tell(ctx context.Context, moved bool) {
	if moved {
		s.count(ctx)
		s.show()
	}
	if s.run.Progress == nil {
		return
	}
	p := progress(s.last, s.usage, s.watch.moved)
	p.Conversation = s.conversation
	p = p.redacted(s.redact)
	if !reflect.DeepEqual(p, s.told) {
		s.told = p
		s.run.Progress(p)
	}
}

// show shows the calls to whoever watches.
func (s *supervisor) show() {
	if s.run.Watch != nil {
		s.run.Watch(s.last.Calls)
	}
}

// count asks the broker what the turn cost, and believes the agent otherwise.
func (s *supervisor) count(ctx context.Context) {
	s.usage = s.last.Usage
	if s.run.Usage == nil {
		return
	}
	if u, err := s.run.Usage(ctx); err == nil {
		s.usage = u
	}
}

// finish makes the agent quiet, unless it is, and sums up.
func (s *supervisor) finish(ctx context.Context, v verdict, cause error) Result {
	// The turn's context may have ended; its cleanup must happen all the same.
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), quieting, errQuieting)
	defer cancel()
	if !s.last.Finished {
		cause = errors.Join(cause, s.quiet(ctx))
	}
	s.count(ctx)
	s.show()
	return Result{
		Ending: v.ending, Say: s.redact(s.run.say(v)),
		Answer:       clip(s.redact(s.last.Text), maxAnswer),
		Conversation: s.conversation, Usage: s.usage, Cause: cause,
		Calls: mapped(s.last.Calls, func(c Call) Call { return c.redacted(s.redact) }),
	}
}

// quiet aborts until the agent is idle, or out of reach for good.
func (s *supervisor) quiet(ctx context.Context) error {
	for {
		done, err := s.hush(ctx)
		if done {
			return nil
		}
		if werr := sandbox.Sleep(ctx, s.run.Limits.Poll/4); werr != nil {
			return errors.Join(werr, err)
		}
	}
}

// hush aborts once and says whether all is quiet. A process that took the turn
// over may not know the conversation yet, and must stop it all the same.
func (s *supervisor) hush(ctx context.Context) (done bool, err error) {
	if s.conversation == "" {
		if s.conversation, err = s.agent.Open(ctx, s.run.Title); err != nil {
			return boxLost(err), err
		}
	}
	if err := s.agent.Abort(ctx, s.conversation); err != nil {
		return boxLost(err) || errors.Is(err, ErrUnknown), err
	}
	snap, err := s.agent.Snapshot(ctx, s.conversation, s.run.Prompt.ID)
	if err != nil {
		// Without a server nothing runs: Abort ended its tools too.
		return boxLost(err) || errors.Is(err, ErrUnknown) || errors.Is(err, ErrDown), err
	}
	if snap.Prompted {
		s.last = snap
	}
	return snap.Status.Phase == Idle, nil
}

func (s *supervisor) redact(text string) string {
	if s.run.Redact == nil {
		return text
	}
	return s.run.Redact(text)
}
