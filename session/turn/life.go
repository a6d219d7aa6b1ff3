package turn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"ship/sandbox"
	"ship/sandbox/lifecycle"
	"ship/session"
)

// markerPath is the file in a box that counts the turns that ended in it. A box
// that wakes with an older count than the session has, lost files.
const markerPath = sandbox.WorkDir + "/.ship-marker"

// lifeOf is what the session knows of its box; the zero Box: it has none.
func lifeOf(s session.State) lifecycle.Box {
	if s.Life == nil {
		return lifecycle.Box{}
	}
	return *s.Life
}

// apply notes events in a row, at one time.
func apply(life lifecycle.Box, at time.Time, events ...lifecycle.Event) (lifecycle.Box, error) {
	var err error
	for _, e := range events {
		if life, err = life.Apply(e, at); err != nil {
			return life, err
		}
	}
	return life, nil
}

// maxSteps bounds what is done with one box in a row. Each thing changes its
// state, so that no sound sequence is longer.
const maxSteps = 10

// enter finds the session's box for a turn that begins, wakes it, or makes
// another. The box that it returns was probed.
func (w *Worker) enter(ctx context.Context, job session.Job) (sandbox.Box, lifecycle.Box, error) {
	life := lifeOf(job.State)
	for range maxSteps {
		var box sandbox.Box
		var err error
		switch e := lifecycle.Enter(life, w.Life, job.Now()); e.Step {
		case lifecycle.Make:
			life, err = w.create(ctx, job)
		case lifecycle.Rebuild:
			w.Log.InfoContext(ctx, "a box is replaced", "session", string(job.State.ID), "box", life.ID, "reason", e.Reason)
			err, life = w.Boxes.Destroy(ctx, life.ID), lifecycle.Box{}
		case lifecycle.Wait:
			err = &session.Problem{
				Err: fmt.Errorf("box %s: %s", life.ID, e.Reason), Again: true, After: e.At.Sub(job.Now()),
				Say: "The box was busy for too long. `/ship retry` tries again.",
			}
		case lifecycle.Use:
			box, life, err = w.reuse(ctx, job, life)
		case lifecycle.Resume:
			box, life, err = w.resume(ctx, job, life)
		}
		if err != nil || box != nil {
			return box, life, err
		}
	}
	return nil, life, fmt.Errorf("no box of %s can be used: %w", job.State.ID, sandbox.ErrTransient)
}

// reuse attaches to a box that runs by our record. One at rest may have been
// paused since, without anybody having heard of it, and then it just woke: it is
// looked at as one that did.
func (w *Worker) reuse(ctx context.Context, job session.Job, life lifecycle.Box) (sandbox.Box, lifecycle.Box, error) {
	at := job.Now()
	box, life, err := w.use(ctx, job, life)
	if err != nil || box == nil || life.State != lifecycle.Idle {
		return box, life, err
	}
	behind, err := w.behind(ctx, box, life)
	if err != nil || !behind {
		return box, life, err
	}
	life, err = life.Apply(lifecycle.Gone, at)
	return nil, life, err
}

// use attaches to a box that runs. No box and no error: it is gone.
func (w *Worker) use(ctx context.Context, job session.Job, life lifecycle.Box) (sandbox.Box, lifecycle.Box, error) {
	at := job.Now()
	box, err := w.attach(ctx, job, life.ID)
	if errors.Is(err, sandbox.ErrGone) {
		life, err = life.Apply(lifecycle.Gone, at)
		return nil, life, err
	}
	return box, life.Attach(at), err
}

// resume wakes a box, and looks whether it is what was left. No box and no
// error: it is not, or it is gone.
func (w *Worker) resume(ctx context.Context, job session.Job, life lifecycle.Box) (sandbox.Box, lifecycle.Box, error) {
	job.Progress(session.Progress{Doing: "waking the box"})
	at := job.Now()
	life, err := life.Apply(lifecycle.ResumeAsked, at)
	if err != nil {
		return nil, life, err
	}
	box, life, err := w.use(ctx, job, life)
	if err != nil || box == nil {
		return nil, life, err
	}
	behind, err := w.behind(ctx, box, life)
	if err != nil {
		return nil, life, err
	}
	if behind {
		life, err = life.Apply(lifecycle.Behind, at)
		return nil, life, err
	}
	life, err = life.Apply(lifecycle.ResumeDone, at)
	return box, life, err
}

// behind tells whether a box has older files than those it was left with.
func (w *Worker) behind(ctx context.Context, box sandbox.Box, life lifecycle.Box) (bool, error) {
	marker, err := readMarker(ctx, box)
	if err != nil || life.Woken(marker) != lifecycle.Behind {
		return false, err
	}
	w.Log.WarnContext(ctx, "a box woke without its last files", "session", life.Session, "box", life.ID, "marker", marker, "want", life.Marker)
	return true, nil
}

func readMarker(ctx context.Context, box sandbox.Box) (int64, error) {
	text, err := box.ReadFrom(ctx, markerPath, 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("look whether the box's files are the latest: %w", err)
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // what is no number is no marker
	return n, nil
}

// mark counts the turn that is about to end. Without the mark, the box is
// replaced when it wakes. It tells whether the box will be used again.
func (w *Worker) mark(ctx context.Context, box sandbox.Box, life lifecycle.Box) bool {
	err := w.withRoom(ctx, box, []reserve{lastReserve()}, func() error {
		return box.Write(ctx, markerPath, []byte(strconv.FormatInt(life.Marker+1, 10)+"\n"), 0o644)
	})
	if err != nil {
		w.Log.WarnContext(ctx, "mark the box", "box", life.ID, "err", err)
	}
	return err == nil
}

// beat looks after the expiry of one box, from one goroutine.
type beat struct {
	worker *Worker
	job    session.Job
	life   lifecycle.Box
}

// keepAlive has a box looked after at once and at every heartbeat, for a turn
// that is at work in it, until stop: a box whose gateway is gone lapses.
func (w *Worker) keepAlive(ctx context.Context, job session.Job, life lifecycle.Box) (stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	b := beat{worker: w, job: job, life: life}
	go func() {
		defer close(done)
		tick := time.NewTicker(w.Life.Heartbeat)
		defer tick.Stop()
		for {
			if err := b.once(ctx); err != nil && ctx.Err() == nil {
				w.Log.WarnContext(ctx, "look after the box", "box", life.ID, "err", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() { cancel(nil); <-done }
}

// once keeps the box for longer if it has to be, or tells that this is not
// possible. What else is due is not for whoever is at work in it.
func (b *beat) once(ctx context.Context) error {
	if err := b.worker.bookWork(ctx, b.job); err != nil {
		b.worker.Log.WarnContext(ctx, "book the box's time", "box", b.life.ID, "err", err) // the next beat, or the turn's end, makes up for it
	}
	info, r, err := b.read(ctx)
	if err != nil {
		return err
	}
	d, err := lifecycle.Decide(b.life, r, b.job.State.BoxPolicy(b.worker.Life), b.job.Now())
	if err != nil {
		return err
	}
	switch d.Action {
	case lifecycle.Extend:
		return b.extend(ctx, info.ID, d.At)
	case lifecycle.Warn: // until the session has noted it: how far a turn is may be lost
		p := b.job.Latest().Turn.Progress
		p.Ends = d.At
		b.job.Progress(p)
	}
	return nil
}

// read asks the provider, and turns its time into the session's.
func (b *beat) read(ctx context.Context) (sandbox.Info, lifecycle.Reading, error) {
	at := b.job.Now()
	info, err := b.worker.Boxes.Info(ctx, b.life.ID)
	if err != nil {
		return info, lifecycle.Reading{}, fmt.Errorf("look at the box: %w", err)
	}
	info.Expires = byStore(b.job, info.Expires)
	return info, lifecycle.Read(info, at), nil
}

func (b *beat) extend(ctx context.Context, id string, until time.Time) error {
	at := b.job.Now()
	if err := b.worker.Boxes.Extend(ctx, id, until.Add(-ahead(b.job))); err != nil {
		return fmt.Errorf("extend the box: %w", err)
	}
	b.life = b.life.Extend(until, at)
	return nil
}

// lay lets a box rest until somebody tends it, whether its work was pushed or
// waits in it for a person to put something right.
func (w *Worker) lay(ctx context.Context, job session.Job, life lifecycle.Box) {
	life, err := apply(life, job.Now(), lifecycle.TurnBegun, lifecycle.TurnEnded)
	if err == nil {
		b := beat{worker: w, job: job, life: life}
		err = b.once(ctx)
	}
	if err != nil {
		w.Log.WarnContext(ctx, "keep the box for a while", "box", life.ID, "err", err)
	}
}
