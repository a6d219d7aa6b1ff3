package turn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ship/sandbox"
	"ship/sandbox/broker"
	"ship/session"
)

// saveEvery is how often the work of an agent that did something is saved.
const saveEvery = 45 * time.Second

// saveTimeout bounds one try. What is too large to be saved in that time is
// saved when the turn ends.
const saveTimeout = 5 * time.Minute

// indexPath is the index that checkpoints are made with.
const indexPath = sandbox.RunDir + "/checkpoint.index"

// checkpointOf is the session's own ref for what is not on its branch yet.
func checkpointOf(s session.State) string { return broker.Checkpoints + string(s.ID) }

// saver brings what an agent has done so far to the session's checkpoint, so
// that it outlives the box. A checkpoint that fails costs nothing but that.
type saver struct {
	worker *Worker
	job    session.Job
	box    sandbox.Box
	repo   *repository
	last   snapshot
}

// snapshot is a commit of all that a working tree held at a moment.
type snapshot struct{ commit, head, tree string }

func newSaver(w *Worker, job session.Job, box sandbox.Box) *saver {
	r := w.repository(box, job.State)
	r.index = indexPath
	return &saver{worker: w, job: job, box: box, repo: r}
}

// keepSaved saves the work every now and then while the agent does something,
// until stop.
func (w *Worker) keepSaved(ctx context.Context, job session.Job, box sandbox.Box) (stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s := newSaver(w, job, box)
		tick := time.NewTicker(saveEvery)
		defer tick.Stop()
		var since time.Time
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if active := lifeOf(job.Latest()).Active; active.After(since) {
				since = active
				s.try(ctx)
			}
		}
	}()
	return func() { cancel(nil); <-done }
}

// try saves what there is.
func (s *saver) try(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	if err := s.save(ctx); err != nil && ctx.Err() == nil {
		s.worker.Log.Warn("save the work so far", "session", string(s.job.State.ID), "err", err)
	}
}

func (s *saver) save(ctx context.Context) error {
	now, err := s.repo.snapshot(ctx, s.last, s.job.State.Turn.Start)
	if err != nil || now == s.last {
		return err
	}
	var inspected []string
	if s.last.commit != "" {
		inspected = []string{s.last.commit}
	}
	if err := s.repo.inspect(ctx, now.commit, inspected...); err != nil {
		return err
	}
	err = s.pushing(ctx, func() error {
		_, err := s.repo.git(ctx, "", "push", "-q", "--force", "origin", now.commit+":"+checkpointOf(s.job.State))
		return err
	})
	if err == nil {
		s.last = now
	}
	return err
}

// pushing lends the box the right to push its checkpoint, and takes it back.
func (s *saver) pushing(ctx context.Context, push func() error) error {
	if err := s.worker.lend(ctx, s.job, s.box); err != nil {
		return err
	}
	err := push()
	if errors.Is(context.Cause(ctx), session.ErrLeaseLost) { // the box has its next owner's token
		return err
	}
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second) // also when the turn was stopped
	defer cancel()
	return errors.Join(err, s.worker.hand(back, s.job, s.box))
}

// drop removes the checkpoint, as all of it is on the branch.
func (s *saver) drop(ctx context.Context) {
	ref := checkpointOf(s.job.State)
	there, err := s.repo.git(ctx, "", "ls-remote", "-q", "origin", ref)
	if err == nil && there != "" {
		err = s.pushing(ctx, func() error {
			_, err := s.repo.git(ctx, "", "push", "-q", "origin", ":"+ref)
			return err
		})
	}
	if err != nil && ctx.Err() == nil {
		s.worker.Log.Warn("remove the checkpoint", "session", string(s.job.State.ID), "err", err)
	}
}

// snapshot commits the working tree aside, in an index of its own: neither the
// agent's index nor its branch changes. It returns last if nothing is new, and
// a turn that has changed nothing since its start has nothing to save.
func (r *repository) snapshot(ctx context.Context, last snapshot, start string) (snapshot, error) {
	if err := r.copyIndex(ctx); err != nil {
		return last, err
	}
	left, err := r.changes(ctx)
	if err != nil {
		return last, err
	}
	if left.strays > r.bounds.strays {
		return last, fmt.Errorf("%w: %d", errStrays, left.strays)
	}
	if err := r.stage(ctx, left.oversized); err != nil {
		return last, err
	}
	now := snapshot{}
	if now.tree, err = r.git(ctx, "", "write-tree"); err != nil {
		return last, err
	}
	out, err := r.git(ctx, "", "rev-parse", "HEAD", "HEAD^{tree}")
	if err != nil {
		return last, err
	}
	var clean string
	now.head, clean, _ = strings.Cut(out, "\n")
	same := now.tree == last.tree && now.head == last.head
	if same || last == (snapshot{}) && now.tree == clean && now.head == start {
		return last, nil
	}
	now.commit, err = r.git(ctx, checkpointTitle(r.branch), "commit-tree", now.tree, "-p", now.head, "-F", "-")
	return now, err
}

// checkpointTitle says of which branch a checkpoint is: the session may have
// another by the time when it is wanted.
func checkpointTitle(branch string) string { return "ship: work in progress on " + branch + "\n" }

// copyIndex begins with what the agent's index knows of the files, so that only
// what changed is read.
func (r *repository) copyIndex(ctx context.Context) error {
	out, err := sandbox.Exec(ctx, r.box, sandbox.Command{
		Name: processName("index"), Dir: sandbox.RepoDir, Env: r.env(),
		Args: []string{"cp", "-f", sandbox.RepoDir + "/.git/index", r.index},
	})
	if err != nil {
		return fmt.Errorf("copy the index: %w", err)
	}
	if out.ExitCode != 0 {
		return fmt.Errorf("copy the index: exit %d", out.ExitCode)
	}
	return nil
}

// recover brings what an earlier box saved into a working tree that was just
// checked out: what was committed there as commits, the rest as changes. It
// returns when that was saved; zero: there is nothing that the branch does not
// have, or others have pushed to it since. May be called again.
func (r *repository) recover(ctx context.Context, ref string) (saved time.Time, err error) {
	if _, err = r.git(ctx, "", "fetch", "-q", "--no-tags", "origin", "+"+ref+":"+ref); err != nil {
		if said(err, "couldn't find remote ref") {
			return time.Time{}, nil
		}
		return time.Time{}, r.unreachable(err)
	}
	out, err := r.git(ctx, "", "log", "-1", "--format=%ct%n%B", ref)
	if err != nil {
		return time.Time{}, err
	}
	at, title, _ := strings.Cut(out, "\n")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the time of the checkpoint: %w", err)
	}
	follows, err := r.follows(ctx, ref+"^")
	if err != nil || !follows || strings.TrimSpace(title) != strings.TrimSpace(checkpointTitle(r.branch)) {
		return time.Time{}, err
	}
	for _, args := range [][]string{{"checkout", "-q", "-f", "-B", r.branch, "--no-track", ref}, {"reset", "-q", "--mixed", ref + "^"}} {
		if _, err := r.git(ctx, "", args...); err != nil {
			return time.Time{}, err
		}
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// follows tells whether a commit has all that is on the remote's branch, if it
// has that branch.
func (r *repository) follows(ctx context.Context, commit string) (bool, error) {
	_, err := r.git(ctx, "", "rev-parse", "-q", "--verify", "refs/remotes/origin/"+r.branch)
	if isGitError(err) {
		return true, nil
	}
	if err == nil {
		_, err = r.git(ctx, "", "merge-base", "--is-ancestor", "refs/remotes/origin/"+r.branch, commit)
	}
	if isGitError(err) {
		return false, nil
	}
	return err == nil, err
}
