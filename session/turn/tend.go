package turn

import (
	"context"
	"errors"
	"fmt"

	"ship/sandbox"
	"ship/sandbox/lifecycle"
	"ship/session"
)

// tend does what is due for a box at rest. Each step begins with a look at the
// provider, so one that was done by an owner which died then is not repeated,
// but noted. A turn that has begun meanwhile has the box, and nothing is done.
func (w *Worker) tend(ctx context.Context, job session.Job) (session.Performed, error) {
	if err := w.bookRest(ctx, job); err != nil {
		return session.Performed{}, &session.Problem{Err: err, Say: "I could not look after the box.", Again: true, Passing: true}
	}
	k := keeper{beat: beat{worker: w, job: job, life: lifeOf(job.State)}}
	if k.life.ID != job.Effect.Text {
		return session.Performed{}, nil
	}
	for range maxSteps {
		if job.Latest().Busy() {
			break
		}
		more, err := k.step(ctx)
		if cause := context.Cause(ctx); cause != nil {
			return session.Performed{}, cause
		}
		if err != nil { // the provider comes back, and nobody waits for this
			return session.Performed{}, &session.Problem{Err: fmt.Errorf("tend the box: %w", err), Say: "I could not look after the box.", Again: true, Passing: true}
		}
		if !more {
			break
		}
	}
	return session.Performed{Tended: &session.Tended{Life: k.life, Unpausable: k.unpausable}}, nil
}

// keeper looks after one box that no turn is at work in.
type keeper struct {
	beat
	unpausable bool
}

// step does one thing, if any is due, and tells whether another may be.
func (k *keeper) step(ctx context.Context) (more bool, err error) {
	r, err := k.look(ctx)
	if err != nil {
		return false, err
	}
	policy := k.job.State.BoxPolicy(k.worker.Life)
	if k.unpausable {
		policy.IdlePause = 0
	}
	d, err := lifecycle.Decide(k.life, r, policy, k.job.Now())
	if err != nil {
		return false, err
	}
	switch d.Action {
	case lifecycle.Extend:
		return true, k.extend(ctx, k.life.ID, d.At)
	case lifecycle.Pause:
		k.log(d)
		return k.pause(ctx)
	case lifecycle.Destroy:
		k.log(d)
		return false, k.destroy(ctx)
	}
	return false, nil
}

func (k *keeper) log(d lifecycle.Decision) {
	k.worker.Log.Info("a box at rest", "session", string(k.job.State.ID), "box", k.life.ID, "do", string(d.Action), "reason", d.Reason)
}

// look notes what the provider says of the box.
func (k *keeper) look(ctx context.Context) (lifecycle.Reading, error) {
	at := k.job.Now()
	info, r, err := k.read(ctx)
	seen := lifecycle.SeenRunning
	switch {
	case errors.Is(err, sandbox.ErrGone):
		seen, err = lifecycle.Gone, nil
	case err != nil:
		return r, err
	case info.State == sandbox.Paused && k.life.State == lifecycle.Resuming:
		seen = lifecycle.ResumeFailed // the turn that wanted it is over
	case info.State == sandbox.Paused:
		seen = lifecycle.SeenPaused
	}
	k.life, err = k.life.Apply(seen, at)
	return r, err
}

// pause keeps the box's files, and tells whether something else is due instead.
// A pause that failed is tried again later.
func (k *keeper) pause(ctx context.Context) (more bool, err error) {
	if err := k.note(lifecycle.PauseAsked); err != nil {
		return false, err
	}
	err = k.worker.Boxes.Pause(ctx, k.life.ID)
	switch {
	case err == nil:
		return false, k.note(lifecycle.PauseDone)
	case errors.Is(err, sandbox.ErrGone):
		return true, k.note(lifecycle.Gone)
	case errors.Is(err, sandbox.ErrUnsupported):
		k.unpausable = true
		return true, k.note(lifecycle.PauseFailed)
	}
	k.worker.Log.WarnContext(ctx, "pause the box", "box", k.life.ID, "try", k.life.Tries, "err", err)
	return false, k.note(lifecycle.PauseFailed)
}

// destroy is tried again later if it fails.
func (k *keeper) destroy(ctx context.Context) error {
	if err := k.note(lifecycle.DestroyAsked); err != nil {
		return err
	}
	if err := k.worker.Boxes.Destroy(ctx, k.life.ID); err != nil {
		k.worker.Log.WarnContext(ctx, "destroy the box", "box", k.life.ID, "try", k.life.Tries, "err", err)
		return k.note(lifecycle.DestroyFailed)
	}
	return k.note(lifecycle.DestroyDone)
}

func (k *keeper) note(e lifecycle.Event) (err error) {
	k.life, err = k.life.Apply(e, k.job.Now())
	return err
}
