package linear

import (
	"context"
	"fmt"

	"ship/bot"
	"ship/session"
)

// Performer does Linear's effects. It implements session.Performer, and holds
// nothing but caches: another process with the same settings does the same.
type Performer struct {
	app   *app
	gate  *bot.Gate
	rolls rolls
}

var _ session.Performer = (*Performer)(nil)

// work is one effect with what it takes to do it.
type work struct {
	*Performer
	*workspace
	job    session.Job
	effect session.Effect
	thread thread
}

// Perform does one effect. Performing it again changes nothing. Errors are
// *session.Problem, but for those of a context that ended.
func (p *Performer) Perform(ctx context.Context, job session.Job) (session.Performed, error) {
	w, err := p.begin(job)
	if err != nil {
		return session.Performed{}, err
	}
	done, err := w.do(ctx)
	if err != nil {
		return session.Performed{}, w.problem(ctx, fmt.Errorf("%s in linear: %w", job.Effect.Kind, err))
	}
	done.Effect = job.Effect.ID
	return done, nil
}

func (p *Performer) begin(job session.Job) (*work, error) {
	var key string
	if job.Effect.Thread != nil {
		key = job.Effect.Thread.Key
	}
	t, err := parseThread(key)
	if err != nil {
		return nil, &session.Problem{Err: err, Say: "I cannot find the place in Linear where this was asked."}
	}
	return &work{Performer: p, workspace: p.app.workspace(t.organization), job: job, effect: job.Effect, thread: t}, nil
}

func (w *work) do(ctx context.Context) (session.Performed, error) {
	if w.thread.silent() {
		return w.watched(ctx)
	}
	switch w.effect.Kind {
	case session.Admit:
		return w.admit(ctx)
	case session.Begin:
		return session.Performed{}, w.care(ctx)
	case session.Report:
		return w.report(ctx)
	case session.Acknowledge:
		return session.Performed{}, w.acknowledge(ctx)
	case session.Say:
		return session.Performed{}, w.say(ctx)
	case session.Ask:
		return session.Performed{}, w.ask(ctx)
	case session.Answer:
		return session.Performed{}, w.answer(ctx)
	case session.Sweep:
		return session.Performed{}, w.sweep(ctx)
	default:
		return session.Performed{}, &session.Problem{
			Say: "I don't know how to do that in Linear.",
			Err: fmt.Errorf("linear: no such effect %q", w.effect.Kind),
		}
	}
}
