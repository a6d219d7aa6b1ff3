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

// sweepChecks settles the doubles of the check run as neutral: check runs
// cannot be deleted.
func (w *work) sweepChecks(ctx context.Context) error {
	c := w.job.State.Check
	if c == nil || c.SHA == "" || w.job.State.Repo.Key != w.repo.key() {
		return nil
	}
	runs, err := w.ownChecks(ctx, c.SHA)
	if err != nil || len(runs) < 2 {
		return err
	}
	keep := runs[0].GetID()
	for _, run := range runs {
		if formatID(run.GetID()) == c.Ref {
			keep = run.GetID()
		}
	}
	double := session.CheckState{SHA: c.SHA, Conclusion: "neutral", Title: "Superseded", Summary: "Another check run of this commit took its place."}
	for _, run := range runs {
		if run.GetID() == keep || run.GetConclusion() == double.Conclusion {
			continue
		}
		body := w.checkBody(double)
		body.Actions = body.Actions[:0]
		if err := w.updateCheck(ctx, formatID(run.GetID()), body); err != nil {
			return err
		}
	}
	return nil
}
