package github

import (
	"context"
	"fmt"

	"ship/session"
)

// Performer does GitHub's effects. It implements session.Performer, and holds
// nothing but caches: another process with the same key does the same.
type Performer struct {
	app       *app
	people    *people
	webURL    string
	publicURL string
}

var _ session.Performer = (*Performer)(nil)

func newPerformer(c Config, who *people) *Performer {
	return &Performer{app: who.app, people: who, webURL: c.WebURL, publicURL: c.PublicURL}
}

// work is one effect with what it takes to do it.
type work struct {
	*Performer
	job    session.Job
	effect session.Effect
	in     *installation
	repo   repo
	// thread is where it is spoken; without a number for effects that only
	// concern the repository.
	thread thread
}

// Perform does one effect. Performing it again changes nothing: what it would
// post is looked for by its marker first whenever it may be there. Errors are
// *session.Problem, but for those of a context that ended.
func (p *Performer) Perform(ctx context.Context, job session.Job) (session.Performed, error) {
	w, err := p.begin(job)
	if err != nil {
		return session.Performed{}, err
	}
	done, err := w.do(ctx)
	if err != nil {
		err = fmt.Errorf("%s in %s: %w", job.Effect.Kind, w.repo.fullName(), err)
		return session.Performed{}, p.app.problem(ctx, w.repo, err)
	}
	done.Effect = job.Effect.ID
	return done, nil
}

func (p *Performer) begin(job session.Job) (*work, error) {
	w := &work{Performer: p, job: job, effect: job.Effect}
	var err error
	if onRepository(w.effect.Kind) {
		w.repo, err = parseRepo(job.State.Repo.Key)
	} else {
		w.thread, err = threadOf(job.Effect)
		w.repo = w.thread.repo
	}
	if err != nil {
		return nil, unusable(err)
	}
	if w.in, err = p.app.installation(w.repo.installation); err != nil {
		return nil, unusable(err)
	}
	return w, nil
}

// onRepository: the effect may have been asked for on another platform; only
// the repository is surely here.
func onRepository(k session.EffectKind) bool {
	return k == session.Open || k == session.MarkReady || k == session.Check
}

func threadOf(e session.Effect) (thread, error) {
	switch {
	case e.Thread != nil:
		return parseThread(e.Thread.Key)
	case e.Request != nil:
		return parseThread(e.Request.Thread.Key)
	default:
		return thread{}, fmt.Errorf("effect %s has no thread: %w", e.Kind, errKey)
	}
}

func (w *work) do(ctx context.Context) (session.Performed, error) {
	switch w.effect.Kind {
	case session.Admit:
		return w.admit(ctx)
	case session.Acknowledge:
		return session.Performed{}, w.acknowledge(ctx)
	case session.Say, session.Reply:
		return w.say(ctx, w.effect.Text)
	case session.Ask:
		return w.say(ctx, question(w.effect))
	case session.Begin, session.Answer: // the status comment says it
		return session.Performed{}, nil
	case session.Report:
		return w.report(ctx)
	case session.Check:
		return w.check(ctx)
	case session.Open:
		return w.open(ctx)
	case session.MarkReady:
		return w.markReady(ctx)
	case session.Sweep:
		return session.Performed{}, w.sweep(ctx)
	default:
		return session.Performed{}, &session.Problem{
			Say: "I don't know how to do that on GitHub.",
			Err: fmt.Errorf("github: no such effect %q", w.effect.Kind),
		}
	}
}

// path returns an address below the repository's.
func (w *work) path(format string, args ...any) string {
	return w.repo.path(format, args...)
}
