package github

import (
	"context"
	"time"

	"ship/session"
)

// sweep removes what a frozen owner of the session posted a second time after
// it woke. Of each marker the oldest stays, as everywhere else.
func (w *work) sweep(ctx context.Context) error {
	if err := w.sweepComments(ctx, w.conversation()); err != nil {
		return err
	}
	if w.thread.pull {
		if err := w.sweepComments(ctx, w.diff(0)); err != nil {
			return err
		}
	}
	return w.sweepChecks(ctx)
}

func (w *work) sweepComments(ctx context.Context, at place) error {
	all, err := w.own(ctx, at, time.Time{})
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, c := range all {
		marker := firstMarker(c.Body)
		if seen[marker] {
			if err := w.remove(ctx, at, formatID(c.ID)); err != nil {
				return err
			}
		}
		seen[marker] = true
	}
	return nil
}

// sweepChecks settles what a frozen owner may have done to check runs, which
// cannot be deleted: on the commit that was the head then, and on the head.
func (w *work) sweepChecks(ctx context.Context) error {
	if w.job.State.Repo.Key == "" || w.elsewhere() {
		return nil
	}
	now := w.job.State.Check
	if old := w.effect.Check; old != nil && (now == nil || now.SHA != old.SHA) {
		if err := w.sweepCommit(ctx, *old, false); err != nil {
			return err
		}
	}
	if now == nil {
		return nil
	}
	return w.sweepCommit(ctx, *now, true)
}

// sweepCommit leaves one check run of a commit, and none in progress on one that
// is the head no longer.
func (w *work) sweepCommit(ctx context.Context, c session.CheckState, head bool) error {
	runs, err := w.ownChecks(ctx, c.SHA)
	if err != nil || len(runs) == 0 {
		return err
	}
	keep := runs[0].GetID()
	for _, run := range runs {
		if formatID(run.GetID()) == c.Ref {
			keep = run.GetID()
		}
	}
	settled := session.CheckState{SHA: c.SHA, Conclusion: neutral, Title: "Superseded", Summary: "Another check run took its place."}
	for _, run := range runs {
		twin := run.GetID() != keep && run.GetConclusion() != settled.Conclusion
		stale := !head && run.GetStatus() != "completed"
		if !twin && !stale {
			continue
		}
		if err := w.updateCheck(ctx, formatID(run.GetID()), w.checkBody(settled)); err != nil {
			return err
		}
	}
	return nil
}
