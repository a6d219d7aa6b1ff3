package slack

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ship/bot"
	"ship/session"
)

// Performer does Slack's effects. It implements session.Performer, and holds
// nothing but caches: another process with the same settings does the same.
type Performer struct {
	app   *app
	gate  *bot.Gate
	inbox session.Inbox
	vault session.Vault
	links Linker
	// slow: see Settings.Slow.
	slow     time.Duration
	settings Settings
	recall   *recall
}

var _ session.Performer = (*Performer)(nil)

func newPerformer(a *app, c Config) *Performer {
	return &Performer{app: a, gate: c.Gate, inbox: c.Inbox, vault: c.Vault, links: c.Links, slow: c.Slow, settings: c.Settings, recall: newRecall()}
}

// work is one effect with what it takes to do it.
type work struct {
	*Performer
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
		return session.Performed{}, w.problem(ctx, fmt.Errorf("%s in slack: %w", job.Effect.Kind, err))
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
		return nil, &session.Problem{Err: err, Say: "I cannot find the place in Slack where this was asked."}
	}
	return &work{Performer: p, job: job, effect: job.Effect, thread: t}, nil
}

func (w *work) do(ctx context.Context) (session.Performed, error) {
	switch w.effect.Kind {
	case session.Admit:
		return w.admit(ctx)
	case session.Acknowledge:
		return w.acknowledge(ctx)
	case session.Begin:
		return w.open(ctx)
	case session.Report:
		return w.report(ctx)
	case session.Say:
		return w.say(ctx)
	case session.Ask:
		return w.ask(ctx)
	case session.Answer:
		return session.Performed{}, w.answer(ctx)
	case session.Sweep:
		return session.Performed{}, w.sweep(ctx)
	default:
		return session.Performed{}, &session.Problem{
			Say: "I don't know how to do that in Slack.",
			Err: fmt.Errorf("slack: no such effect %q", w.effect.Kind),
		}
	}
}

// call names a request of this session's, for the governor.
func (w *work) call(method string) call {
	return call{team: w.thread.team, method: method, channel: w.thread.channel}
}

// here: it was asked in this thread.
func (w *work) here(r session.Request) bool { return r.Thread == w.thread.session() }

// voice is the thread as the session knows it.
func (w *work) voice() session.Voice {
	threads := w.job.State.Threads
	i := slices.IndexFunc(threads, func(v session.Voice) bool { return v.Thread == w.thread.session() })
	if i < 0 {
		return session.Voice{Thread: w.thread.session()}
	}
	return threads[i]
}
