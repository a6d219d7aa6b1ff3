package turn

import (
	"context"
	"errors"
	"fmt"

	"ship/sandbox"
	"ship/sandbox/lifecycle"
	"ship/session"
)

// pushIn pushes the work out of a box and counts the turn there, which may find
// its disk full.
func (w *Worker) pushIn(ctx context.Context, job session.Job, box sandbox.Box, life lifecycle.Box) (session.Published, error) {
	_, tight, err := lastReserve().look(ctx, box)
	if err == nil && !tight {
		p, err := w.pushAll(ctx, job, box)
		if !noRoom(err) {
			w.mark(ctx, box, life)
			return p, err
		}
		w.Log.WarnContext(ctx, "the box's disk is full", "session", string(job.State.ID), "box", life.ID, "err", err)
	}
	return w.pushTight(ctx, job, box, life)
}

// pushTight pushes out of a box whose disk is full or nearly so. What is
// committed goes first, since to commit the rest uses up what room there is. A
// box out of which all could be brought is not used again, so that the next turn
// has room. One that has the rest is.
func (w *Worker) pushTight(ctx context.Context, job session.Job, box sandbox.Box, life lifecycle.Box) (session.Published, error) {
	kept := w.mark(ctx, box, life)
	part, partly := w.pushCommitted(ctx, job, box)
	var all session.Published
	err := w.withRoom(ctx, box, []reserve{workReserve()}, func() (err error) {
		all, err = w.pushAll(ctx, job, box)
		return err
	})
	switch {
	case err == nil:
		w.retire(ctx, box)
		return all, nil
	case !noRoom(err):
		return session.Published{}, err
	}
	w.tidyUp(ctx, job, box)
	if partly != nil || !part.Changed {
		return session.Published{}, &session.Problem{Say: full(kept, "I could not push", "the work"), Err: errors.Join(err, partly)}
	}
	w.Log.WarnContext(ctx, "the box's disk is full: only what is committed is pushed", "session", string(job.State.ID), "box", life.ID, "err", err)
	part.Left = full(kept, "I pushed only what the agent had committed", "the rest")
	return part, nil
}

// full says what could not be brought out of a box, and what to do about it. A
// box that could not even be marked is not used again.
func full(kept bool, so, rest string) string {
	if !kept {
		return "There is no room left on the box's disk, so " + so + ", and " + rest + " is lost. `/ship retry` begins again in a new box."
	}
	return noRoomSay(so + ", and " + rest + " is in the box only")
}

// pushCommitted pushes what the agent committed by itself.
func (w *Worker) pushCommitted(ctx context.Context, job session.Job, box sandbox.Box) (p session.Published, err error) {
	err = w.withRoom(ctx, box, []reserve{lastReserve()}, func() error {
		p, err = w.repository(box, job.State).publishCommitted(ctx, job.State.Turn.Start)
		return err
	})
	return p, err
}

// tidyUp removes what a commit that did not fit has left in the repository, and
// reserves again what it can: this may be done twice, and the box is used again.
func (w *Worker) tidyUp(ctx context.Context, job session.Job, box sandbox.Box) {
	err := w.withRoom(ctx, box, []reserve{tidyReserve()}, func() error {
		_, err := w.repository(box, job.State).git(ctx, "", "prune", "--expire=now")
		return err
	})
	if err != nil {
		w.Log.WarnContext(ctx, "tidy up a box without room", "session", string(job.State.ID), "err", err)
	}
	w.keepRoom(ctx, box)
}

// retire takes the mark off a box for whose last work room had to be given up.
func (w *Worker) retire(ctx context.Context, box sandbox.Box) {
	_, spent, err := workReserve().look(ctx, box)
	if err == nil && spent {
		err = box.Write(ctx, markerPath, nil, 0o644)
	}
	if err != nil {
		w.Log.WarnContext(ctx, "see to it that a box without room is not used again", "err", err)
	}
}

// prepareAnother replaces a box that has not even room for a turn to begin. What
// was left in it has been told by the turn that left it.
func (w *Worker) prepareAnother(ctx context.Context, job session.Job, why error) (p session.Prepared, err error) {
	if used := lifeOf(job.State).ID; used != "" {
		w.Log.WarnContext(ctx, "a box without room is replaced", "session", string(job.State.ID), "box", used, "err", why)
		if err := w.Boxes.Destroy(ctx, used); err != nil {
			return p, fmt.Errorf("destroy a box without room: %w", err)
		}
		p, why = w.prepareBox(ctx, job)
		p.Replaced = true
	}
	if noRoom(why) {
		why = &session.Problem{
			Err: fmt.Errorf("prepare the box: %w", why),
			Say: "The repository and the agent do not fit on a box's disk. Whoever runs me has to give boxes more room, then `/ship retry`.",
		}
	}
	return p, why
}
