package linear

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/Khan/genqlient/graphql"

	"ship/bot"
	ql "ship/graphql/linear"
	"ship/session"
)

const (
	// maxStarted is how many sessions of one issue may begin within an hour. A
	// loop of automations that mention each other ends there.
	maxStarted = 6
	// costIssue is what ReadIssue costs, in points.
	costIssue = 207
)

const tooMany = "That is more sessions on this issue than I begin within an hour, so I left this one alone. Write in one of those that are there, or ask again later."

// admit answers who asks, whether they may, and what it is about. It only
// reads.
func (w *work) admit(ctx context.Context) (session.Performed, error) {
	r := w.effect.Request
	if r == nil {
		return session.Performed{}, &session.Problem{
			Say: "I lost what was asked here. Please ask again.", Err: fmt.Errorf("admit without a request: %w", errKey),
		}
	}
	decide := w.entrust
	if !bot.NeedsRight(r.Verb) {
		decide = w.hear
	}
	a, err := decide(ctx, *r)
	if err != nil {
		return session.Performed{}, err
	}
	a.Talks = !a.Void
	return session.Performed{Admission: &a}, nil
}

// hear admits what needs neither a repository nor a right: everybody who can
// write in the workspace may stop the work, or ask how it is.
func (w *work) hear(ctx context.Context, r session.Request) (session.Admission, error) {
	if r.Verb == session.Withdraw && r.Ref == refStatus {
		over, err := w.over(ctx)
		if err != nil || !over {
			return session.Admission{Void: true}, err
		}
	}
	by, err := w.bystander(ctx, r.By)
	if err != nil {
		return session.Admission{}, fmt.Errorf("ask who that is: %w", err)
	}
	return session.Admission{By: by}, nil
}

// over tells whether the issue is done with.
func (w *work) over(ctx context.Context) (bool, error) {
	i, err := w.issue(ctx)
	if err != nil || i == nil {
		return false, err
	}
	return finished(i.State), nil
}

// finished: nothing more is to be done for what is in this state.
func finished(s ql.State) bool {
	return s.Type == "completed" || s.Type == "canceled" || s.Type == "duplicate"
}

// issue reads the session's issue; nil when it is about something else.
func (w *work) issue(ctx context.Context) (*ql.Issue, error) {
	if w.thread.issue == "" {
		return nil, nil
	}
	var got *ql.ReadIssueResponse
	err := w.call(ctx, Thinking, costIssue, func(c graphql.Client) (err error) {
		got, err = ql.ReadIssue(ctx, c, w.thread.issue)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the issue: %w", err)
	}
	return &got.Issue, nil
}

// entrust admits what leads to work: in which repository, and may they.
func (w *work) entrust(ctx context.Context, r session.Request) (session.Admission, error) {
	refusal, err := w.refusal(ctx, r)
	if err != nil || refusal != "" {
		return session.Admission{Refusal: refusal}, err
	}
	var i *ql.Issue
	if bot.RepoOf(w.job.State) == "" || bot.NeedsContext(r.Verb) {
		if i, err = w.issue(ctx); err != nil {
			return session.Admission{}, err
		}
	}
	who, err := w.asker(ctx, r.By)
	if err != nil {
		return session.Admission{}, err
	}
	name, a, err := w.lead(ctx, r, i, who)
	if err != nil || name == "" {
		return a, err
	}
	a, err = w.pass(ctx, r, who, name)
	if err != nil || a.Refusal != "" {
		return a, err
	}
	if err := w.explain(ctx, r, i, &a); err != nil {
		return session.Admission{}, err
	}
	return a, nil
}

// refusal says what speaks against a request, whoever asks.
func (w *work) refusal(ctx context.Context, r session.Request) (string, error) {
	if text := bot.Elsewhere(w.job.State, r, instead); text != "" {
		return text, nil
	}
	if w.thread.issue == "" || r.Ref != "" || w.job.State.Turns > 0 {
		return "", nil
	}
	all, err := w.rolls.of(ctx, w.thread.organization, w.thread.issue)
	if err != nil {
		return "", err
	}
	if crowded(all, entry{w.thread.agentSession, momentOf(r).UnixMilli()}) {
		return tooMany, nil
	}
	return "", nil
}

// crowded tells whether too many of an issue's sessions began within the hour
// before one of them. Those that came later do not count against it.
func crowded(all []entry, one entry) bool {
	if i := slices.IndexFunc(all, func(e entry) bool { return e.Session == one.Session }); i >= 0 {
		all, one = all[:i], all[i]
	}
	n, since := 0, one.began().Add(-time.Hour)
	for _, e := range all {
		if e.began().After(since) {
			n++
		}
	}
	return n >= maxStarted
}

// momentOf a request is when it was made, as far as that is known.
func momentOf(r session.Request) time.Time {
	if r.At.IsZero() {
		return time.Now()
	}
	return r.At
}

// pass asks who they are on the code host, and what they may do there.
func (w *work) pass(ctx context.Context, r session.Request, who bot.Asker, repo string) (session.Admission, error) {
	p, err := w.gate.Pass(ctx, who, repo, r.Branch)
	if err != nil {
		return session.Admission{}, fmt.Errorf("ask what they may do in %s: %w", repo, err)
	}
	a := session.Admission{Refusal: p.Refusal, Stranger: p.Stranger, By: p.By, Repo: p.Repo, Base: p.Base}
	if bot.RepoOf(w.job.State) != "" && r.Branch == "" {
		a.Base = w.job.State.Base
	}
	return a, nil
}

// explain adds what the request is about. The first one brings along what Linear
// tells; for a later one, the issue is described as it is now.
func (w *work) explain(ctx context.Context, r session.Request, i *ql.Issue, a *session.Admission) error {
	if i != nil {
		a.Title = title(i)
		a.Origin = &session.Origin{Name: bot.PlainName(i.Identifier), URL: i.Url}
	}
	switch {
	case !bot.NeedsContext(r.Verb):
	case r.Quote != "":
		a.Context = foreword(r.Quote)
	case i != nil:
		return w.follow(ctx, r, i, a)
	}
	return nil
}

// follow adds what was said since the last request, and apart from that the
// issue with all that was said before.
func (w *work) follow(ctx context.Context, r session.Request, i *ql.Issue, a *session.Admission) error {
	at, err := parseRef(r.Ref)
	if err != nil {
		return &session.Problem{Say: "I cannot find what you wrote. Please write it again.", Err: err}
	}
	all, err := w.talk(ctx, momentOf(r), at.comment)
	if err != nil {
		return err
	}
	before, since := parted(all, w.heard())
	a.Context, a.Quote = described(i, before, maxContext), aside(since)
	return nil
}

// heard is until when what was said on the issue was read along.
func (w *work) heard() time.Time {
	threads := w.job.State.Threads
	i := slices.IndexFunc(threads, func(v session.Voice) bool { return v.Thread == w.thread.session() })
	if i < 0 {
		return time.Time{}
	}
	return threads[i].Heard
}
