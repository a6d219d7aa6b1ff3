package slack

import (
	"context"
	"fmt"

	"ship/bot"
	"ship/session"
)

// admit answers who asks, whether they may, and what it is about. It changes
// nothing but what is remembered, and may be performed again.
func (w *work) admit(ctx context.Context) (session.Performed, error) {
	r := w.effect.Request
	if r == nil {
		return session.Performed{}, &session.Problem{
			Say: "I lost what was asked here. Please ask again.", Err: fmt.Errorf("admit without a request: %w", errKey),
		}
	}
	decide := w.decide
	if w.thread.pending() {
		decide = w.root
	}
	a, err := decide(ctx, *r)
	if err != nil {
		return session.Performed{}, err
	}
	a.Talks = !a.Void
	return session.Performed{Admission: &a}, nil
}

func (w *work) decide(ctx context.Context, r session.Request) (session.Admission, error) {
	self, err := w.app.self(ctx)
	switch {
	case err != nil:
		return session.Admission{}, err
	case self.team != w.thread.team: // our token can do nothing there
		return session.Admission{Refusal: sayElsewhere, Stranger: true, By: r.By}, nil
	case bot.NeedsRight(r.Verb):
		return w.command(ctx, r)
	}
	return w.hear(ctx, r)
}

// hear admits what needs neither a repository nor a right: everybody of the
// workspace who can write here may stop the work, or ask how it is.
func (w *work) hear(ctx context.Context, r session.Request) (session.Admission, error) {
	m, err := w.bystander(ctx, r.By)
	if err != nil || m.barred != "" {
		return barred(m), err
	}
	if over := w.outdated(r); over != "" {
		return session.Admission{Note: over}, nil
	}
	p, err := w.gate.Pass(ctx, m.Asker, "", "")
	if err != nil {
		return session.Admission{}, fmt.Errorf("ask who that is: %w", err)
	}
	return session.Admission{By: p.By}, nil
}

// barred refuses somebody for who they are in Slack.
func barred(m member) session.Admission {
	return session.Admission{Refusal: m.barred, Stranger: true, By: m.stranger()}
}

// command admits what is about the work: by whoever may command at all, from
// here.
func (w *work) command(ctx context.Context, r session.Request) (session.Admission, error) {
	m, err := w.member(ctx, r.By)
	if err != nil || m.barred != "" {
		return barred(m), err
	}
	out, err := w.keptOut(ctx, m)
	switch {
	case err != nil:
		return session.Admission{}, err
	case out != "":
		return session.Admission{Refusal: out, Stranger: true, By: m.stranger()}, nil
	}
	if over := w.outdated(r); over != "" {
		return session.Admission{Note: over}, nil
	}
	if r.Verb == session.Remember {
		return w.rememberRepo(ctx, r, m)
	}
	return w.entrust(ctx, r, m)
}

// entrust admits what leads to work: in which repository, and may they.
func (w *work) entrust(ctx context.Context, r session.Request, m member) (session.Admission, error) {
	if refusal := bot.Elsewhere(w.job.State, r, instead); refusal != "" {
		return session.Admission{Refusal: refusal}, nil
	}
	name, a, err := w.lead(ctx, r, m)
	if err != nil || name == "" {
		return a, err
	}
	a, err = w.pass(ctx, r, m, name)
	if err != nil || a.Refusal != "" {
		return a, err
	}
	w.noteRecent(ctx, m, a.Repo.Name)
	if !bot.NeedsContext(r.Verb) {
		return a, nil
	}
	w.link(ctx, r, m, &a)
	return a, w.explain(ctx, r, &a)
}

// pass asks who they are on the code host, and what they may do there.
func (w *work) pass(ctx context.Context, r session.Request, m member, repo string) (session.Admission, error) {
	p, err := w.gate.Pass(ctx, m.Asker, repo, r.Branch)
	if err != nil {
		return session.Admission{}, fmt.Errorf("ask what they may do in %s: %w", repo, err)
	}
	a := session.Admission{Refusal: p.Refusal, Stranger: p.Stranger, By: p.By, Repo: p.Repo, Base: p.Base}
	if a.By.Email != "" && a.By.Name == m.Name { // that is for Slack's eyes: commits name who is known there
		a.By.Name = ""
	}
	if bot.RepoOf(w.job.State) != "" && r.Branch == "" {
		a.Base = w.job.State.Base
	}
	return a, nil
}
