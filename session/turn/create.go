package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ship/sandbox"
	"ship/sandbox/lifecycle"
	"ship/session"
)

const (
	// stillMaking is how long a stop waits for a box that is being made. What is
	// cut off may be made all the same, after anybody has looked.
	stillMaking = 15 * time.Second
	// abandoning bounds how long it takes then to let go of that box.
	abandoning = 20 * time.Second
)

// create finds the session's box by its key, or makes it. One that was left
// here when the session went on elsewhere knows an older branch, and is
// destroyed.
func (w *Worker) create(ctx context.Context, job session.Job) (lifecycle.Box, error) {
	if cause := context.Cause(ctx); cause != nil {
		return lifecycle.Box{}, fmt.Errorf("create: %w", cause)
	}
	s, asked := job.State, ctx
	job.Progress(session.Progress{Doing: "starting a box"})
	ctx, done := outlast(ctx, stillMaking)
	defer done()
	spec := sandbox.Spec{Key: string(s.ID), Generation: job.Lease.Epoch, TTL: w.Life.TTL}
	info, err := w.Boxes.Create(ctx, spec)
	if err == nil && slices.Contains(s.Left, info.ID) {
		if err := w.Boxes.Destroy(ctx, info.ID); err != nil {
			return lifecycle.Box{}, fmt.Errorf("destroy what was left: %w", err)
		}
		info, err = w.Boxes.Create(ctx, spec)
	}
	if err != nil {
		return lifecycle.Box{}, fmt.Errorf("create: %w", err)
	}
	if cause := context.Cause(asked); cause != nil { // abandon destroys it, or the next owner finds it
		return lifecycle.Box{}, fmt.Errorf("create: %w", cause)
	}
	return made(job, info)
}

// made is the life of a box that was just made, or found.
func made(job session.Job, info sandbox.Info) (lifecycle.Box, error) {
	born := byStore(job, info.Created)
	if born.IsZero() {
		born = job.Now()
	}
	life := lifecycle.New(string(job.State.ID), info.Generation, born)
	life.ID = info.ID
	events := []lifecycle.Event{lifecycle.Made}
	if info.State == sandbox.Paused {
		events = append(events, lifecycle.SeenPaused)
	}
	return apply(life, job.Now(), events...)
}

// abandon destroys what a turn that was told to stop has made of a box and that is
// on no record: nobody else would look for it before it is a stray. A box that a
// later owner has made or found is let alone.
func (w *Worker) abandon(ctx context.Context, job session.Job) {
	if !errors.Is(context.Cause(ctx), session.ErrStopRequested) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandoning)
	defer cancel()
	boxes, err := w.Boxes.List(ctx, map[string]string{sandbox.LabelSession: string(job.State.ID)})
	for _, b := range boxes {
		if b.Key != string(job.State.ID) || b.ID == job.State.Box || b.Generation > job.Lease.Epoch {
			continue
		}
		w.Log.InfoContext(ctx, "destroying the box of a turn that was stopped", "box", b.ID)
		err = errors.Join(err, w.Boxes.Destroy(ctx, b.ID))
	}
	if err != nil {
		w.Log.WarnContext(ctx, "let go of the box of a turn that was stopped", "err", err)
	}
}

// outlast is a context that a stop ends only after d. Whatever else ends ctx ends
// it at once.
func outlast(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	free, cancel := context.WithCancelCause(context.WithoutCancel(ctx)) // ended by the parent below
	unhook := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if errors.Is(cause, session.ErrStopRequested) {
			select {
			case <-time.After(d):
			case <-free.Done():
			}
		}
		cancel(cause)
	})
	return free, func() { unhook(); cancel(nil) }
}
