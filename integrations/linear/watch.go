package linear

import (
	"context"
	"fmt"
	"net/url"

	"github.com/Khan/genqlient/graphql"

	"ship/bot"
	ql "ship/graphql/linear"
	"ship/session"
)

// What is shown on an issue that somebody named elsewhere: an attachment that
// says how far the work is, the pull request, and that work has begun. Nothing
// is said there, and nothing of what was said elsewhere is repeated: not
// everybody here may read it there.

// watched does what there is to do for such an issue. To sweep is nothing: what
// somebody may have written over is shown again by the report that follows.
func (w *work) watched(ctx context.Context) (session.Performed, error) {
	switch w.effect.Kind {
	case session.Report:
		return w.report(ctx)
	case session.Sweep:
		return session.Performed{}, nil
	}
	return session.Performed{}, &session.Problem{
		Say: "On this issue in Linear I only show how far I am.",
		Err: fmt.Errorf("linear: no %q on an issue without an agent session", w.effect.Kind),
	}
}

// moved is remembered as the step of an issue that was looked at when work
// began. That happens once: who moves it back has a reason.
const moved = "moved"

// move moves the issue to where its team has what is worked on. Where Linear
// does not let us, work goes on.
func (r *report) move(ctx context.Context) error {
	if r.has.step == moved || !begun(r.view) {
		return nil
	}
	i, err := r.issue(ctx)
	if err == nil {
		err = r.start(ctx, i)
	}
	if err != nil {
		if p := classify(err); ctx.Err() != nil || p.Again || p.Gone {
			return err
		}
		r.app.log.WarnContext(ctx, "an issue was not moved", "session", string(r.view.Session), "err", err)
	}
	r.has.step = moved
	return nil
}

// begun: somebody works on it, not just will.
func begun(v session.View) bool {
	switch v.Phase {
	case session.PhasePreparing, session.PhaseWorking, session.PhasePublishing:
		return v.Turn > 0
	}
	return false
}

// card is an attachment that leads to where the work was asked for. Its address
// is what it is known by, so to put it there again changes it. Linear is not told
// to link that address as one that it knows: it would show what was said there.
func (r *report) card(ctx context.Context) error {
	at := r.origin()
	if at == nil {
		return nil
	}
	title, subtitle := "ship: asked on "+at.Hostname(), bot.Standing(r.view)
	key := hash(fmt.Sprintf("%s\x00%s\x00%s", at, title, subtitle))
	if key == r.has.links {
		return nil
	}
	err := r.request(ctx, func(c graphql.Client) error {
		_, err := ql.Attach(ctx, c, r.thread.issue, title, subtitle, at.String())
		return err
	})
	if err == nil || refusedInput(err) {
		r.has.links = key
	}
	return err
}

// origin is the address where the work was asked for; nil if there is none that
// people can open.
func (r *report) origin() *url.URL {
	o := r.job.State.Origin
	if o == nil {
		return nil
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil
	}
	return u
}
