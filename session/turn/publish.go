package turn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ship/sandbox"
	"ship/session"
)

// publish commits what the agent left and pushes the branch.
func (w *Worker) publish(ctx context.Context, job session.Job) (session.Performed, error) {
	p, err := w.push(ctx, job)
	if err != nil {
		return session.Performed{}, err
	}
	return session.Performed{Published: &p}, nil
}

func (w *Worker) push(ctx context.Context, job session.Job) (session.Published, error) {
	s, at := job.State, job.Now()
	box, err := w.attach(ctx, job, s.Box)
	if errors.Is(err, sandbox.ErrGone) {
		return session.Published{}, lostWork(err)
	}
	if err != nil {
		return session.Published{}, boxProblem("push", err)
	}
	life := lifeOf(s).Attach(at)
	defer w.lay(ctx, job, life)
	defer w.keepAlive(ctx, job, life)()
	p, err := w.pushIn(ctx, job, box, life)
	saved := newSaver(w, job, box)
	if err != nil && !noRoom(err) {
		saved.try(ctx)
	}
	if err != nil {
		return session.Published{}, pushProblem(s, w.confirmGone(ctx, s.Box, err))
	}
	if p.Left == "" {
		saved.drop(ctx)
	}
	return p, nil
}

// pushAll commits what the agent left and pushes the branch.
func (w *Worker) pushAll(ctx context.Context, job session.Job, box sandbox.Box) (session.Published, error) {
	s := job.State
	if err := w.Restore(ctx, box); err != nil {
		return session.Published{}, &restoreError{err}
	}
	return w.repository(box, s).publish(ctx, s.Turn.Start, w.Message(s))
}

// publish commits and pushes; nothing when the remote has it all. What an
// earlier turn could not push is pushed now.
func (r *repository) publish(ctx context.Context, start, message string) (session.Published, error) {
	if err := r.collect(ctx, start, message); err != nil {
		return session.Published{}, err
	}
	head, err := r.git(ctx, "", "rev-parse", "HEAD")
	if err != nil {
		return session.Published{}, err
	}
	return r.bring(ctx, start, head, r.push)
}

// publishCommitted pushes what is committed, and writes nothing for that in the
// box. What others pushed meanwhile cannot be merged without, and is an error.
func (r *repository) publishCommitted(ctx context.Context, start string) (session.Published, error) {
	tip, err := r.committed(ctx)
	if err != nil {
		return session.Published{}, err
	}
	return r.bring(ctx, start, tip, func(ctx context.Context) (string, error) { return tip, r.pushCommit(ctx, tip) })
}

// bring pushes a commit, unless the remote has it.
func (r *repository) bring(ctx context.Context, start, head string, push func(context.Context) (string, error)) (session.Published, error) {
	files, err := r.files(ctx, head)
	if err != nil {
		return session.Published{}, err
	}
	at, err := r.onRemote(ctx)
	if err != nil {
		return session.Published{}, err
	}
	if head == at || at == "" && (r.closed || head == start && files == 0) {
		return session.Published{Head: at, Changed: at != "" && head != start, Files: files}, nil
	}
	if err := r.inspect(ctx, head); err != nil {
		return session.Published{}, err
	}
	head, err = push(ctx)
	return session.Published{Head: head, Changed: head != at, Files: files}, err
}

// restoreError is why the repository's own files could not be put back.
type restoreError struct{ error }

func (e *restoreError) Unwrap() error { return e.error }

// lostWork: the box is gone, and with it what only it had.
func lostWork(err error) error {
	return &session.Problem{Err: err, Say: "The box was lost before its work could be pushed. `/ship retry` starts again from the branch."}
}

// pushProblem says what a person can do about a push that failed.
func pushProblem(s session.State, err error) error {
	var oversized *oversizedError
	var restoring *restoreError
	switch {
	case errors.Is(err, sandbox.ErrGone):
		return lostWork(err)
	case errors.Is(err, errDiverged):
		return &session.Problem{Err: err, Say: "The agent left its work on two branches that conflict, so nothing was pushed. Ask it to merge them: `/ship merge what you did into one branch and go on`."}
	case errors.Is(err, errUnfinished):
		return &session.Problem{Err: err, Say: "The agent left its work in the middle of a merge with conflicts, so nothing was pushed. Ask it to go on: `/ship finish the merge and go on`."}
	case errors.Is(err, errConflict):
		return &session.Problem{Err: err, Say: fmt.Sprintf("Somebody pushed to `%s` meanwhile, and it conflicts with my work. Ask me to merge it: `/ship resolve the conflicts with the branch and go on`.", s.Branch)}
	case errors.Is(err, errStrays):
		return &session.Problem{Err: err, Say: "The agent left thousands of new files that it did not commit, as a build does, so nothing was pushed. Ask it to tidy up: `/ship commit what belongs to the work, ignore or delete the rest, and go on`."}
	case errors.Is(err, errBulky):
		return &session.Problem{Err: err, Say: fmt.Sprintf("The work is larger than the %d MB that I push at once, so nothing was pushed. Ask the agent to make it smaller: `/ship take what a build can make out of the work, out of its commits too, and go on`.", usualBounds().push>>20)}
	case errors.Is(err, errSecret):
		return &session.Problem{Err: err, Say: "The work contains one of the secrets that I was set up with, so nothing was pushed. Ask the agent to take it out: `/ship take the secret out of the files and out of your commits, and go on`. Whoever runs me has to find out how it got there."}
	case errors.As(err, &restoring):
		return boxProblem("put the repository's own files back", err)
	case errors.As(err, &oversized):
		return &session.Problem{Err: err, Say: fmt.Sprintf("The agent committed a file that is larger than %d MB, so nothing was pushed. Ask it to take it out: `/ship take the large file out of your commits and go on`.", usualBounds().file>>20)}
	case said(err, "refusing to allow"): // GitHub's words for exactly that
		return &session.Problem{Err: err, Say: "The change touches `.github/workflows`, which the app may not push. Give it the permission “workflows: write”, then `/ship retry`."}
	case forbidden(err), said(err, "[remote rejected]") && !said(err, "Internal Server Error"):
		return &session.Problem{Err: err, Say: fmt.Sprintf("The push to `%s` was refused. Check the branch rules and that the app may write contents, then `/ship retry`.", s.Branch)}
	}
	return boxProblem("push", err)
}

// boxProblem turns what a provider or git said into something to tell and a
// decision whether to repeat.
func boxProblem(doing string, err error) error {
	var p *session.Problem
	if errors.As(err, &p) {
		return err
	}
	p = &session.Problem{Err: fmt.Errorf("%s: %w", doing, err), Again: true, Passing: away(err)}
	switch {
	case errors.Is(err, sandbox.ErrIsolation):
		p.Say, p.Again = "The machine that I run on cannot isolate a box. Whoever runs me: `ship serve` says at its start what is missing.", false
	case errors.Is(err, sandbox.ErrAuth):
		p.Say, p.Again = "The sandbox provider refused my credentials. Whoever runs me has to renew them, then `/ship retry`.", false
	case errors.Is(err, sandbox.ErrQuota):
		p.Say, p.After = "No box is free. `/ship retry` tries again.", 15*time.Second
	case errors.Is(err, sandbox.ErrGone):
		p.Say = "The box was lost again and again. `/ship retry` starts anew from the branch."
	case noRoom(err):
		p.Say = noRoomSay("I could not " + doing)
		p.Again = false
	default:
		p.Say = fmt.Sprintf("I could not %s. `/ship retry` tries again; whoever runs me finds the cause in the log.", doing)
	}
	return p
}

func noRoomSay(so string) string {
	return "There is no room left on the box's disk, so " + so + ". Ask the agent to make some: `/ship delete what the work does not need, and go on`."
}
