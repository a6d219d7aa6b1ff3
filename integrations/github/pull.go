package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/google/go-github/v66/github"
	"github.com/vektah/gqlparser/v2/gqlerror"

	ghql "ship/graphql/github"

	"ship/bot"
	"ship/session"
)

// maxTitle of a pull request that GitHub takes, in characters.
const maxTitle = 256

// open finds the session's pull request by its branch, or makes it as a
// draft. GitHub has at most one open pull request of a branch into another,
// so looking first is enough to make a repeat harmless.
func (w *work) open(ctx context.Context) (session.Performed, error) {
	found, err := w.findPull(ctx)
	if err != nil || found != nil {
		return w.opened(found), err
	}
	made, err := w.makePull(ctx, true)
	if says(err, "draft pull requests are not supported") {
		made, err = w.makePull(ctx, false)
	}
	if says(err, "already exists") {
		made, err = w.findPull(ctx)
	}
	if err != nil {
		return session.Performed{}, w.notOpened(err)
	}
	return w.opened(made), nil
}

// opened: people who read the pull request are told there how it goes, unless
// the issue beside it tells them already.
func (w *work) opened(p *session.PullRequest) session.Performed {
	done := session.Performed{PR: p}
	if w.guest() && p != nil {
		t := thread{repo: w.repo, number: p.Number, pull: true}.session()
		done.Thread = &t
	}
	return done
}

func (w *work) findPull(ctx context.Context) (*session.PullRequest, error) {
	query := url.Values{"state": {"open"}, "head": {w.repo.owner + ":" + w.job.State.Branch}}
	var found *session.PullRequest
	err := pages(ctx, w.in, w.path("pulls?%s", query.Encode()), func(p *github.PullRequest) bool {
		// GitHub ignores a head that it cannot read, and lists everything.
		if p.GetHead().GetRef() == w.job.State.Branch && p.GetHead().GetRepo().GetID() == w.repo.id {
			found = pullRequest(p)
		}
		return found == nil
	})
	return found, err
}

func (w *work) makePull(ctx context.Context, draft bool) (*session.PullRequest, error) {
	s := w.job.State
	var made github.PullRequest
	err := w.in.create(ctx, w.path("pulls"), &github.NewPullRequest{
		Title: github.String(bot.Prefix(oneLine(bot.PullRequestTitle(s)), maxTitle)),
		Head:  github.String(s.Branch),
		Base:  github.String(s.Base),
		Body:  github.String(compose(statusMarker(s.ID), bot.PullRequestBody(s, w.closes()...))),
		Draft: github.Bool(draft),
	}, &made)
	if err != nil {
		return nil, err
	}
	return pullRequest(&made), nil
}

// closes refers to the issue that the session began on, so that merging the
// pull request closes it. A session that has no pull request yet began on one.
func (w *work) closes() []string {
	repoID, number, ok := sessionThread(w.job.State.ID)
	if !ok || repoID != w.repo.id {
		return nil
	}
	return []string{fmt.Sprintf("Closes #%d", number)}
}

func pullRequest(p *github.PullRequest) *session.PullRequest {
	return &session.PullRequest{
		Number: p.GetNumber(), URL: p.GetHTMLURL(), Key: p.GetNodeID(), Draft: p.GetDraft(),
	}
}

// notOpened adds a plain sentence to the refusals that a person can act on.
func (w *work) notOpened(err error) error {
	var say string
	switch {
	case says(err, "no commits between"):
		say = fmt.Sprintf("There is nothing in `%s` that `%s` lacks, so there is no pull request to open.", harmless(w.job.State.Branch), harmless(w.job.State.Base))
	case says(err, "base") && says(err, "invalid"):
		say = fmt.Sprintf("The branch `%s` is gone, so there is nothing to open a pull request into. Start again with `/ship [branch=…]`.", harmless(w.job.State.Base))
	default:
		return err
	}
	return &session.Problem{Say: say, Err: fmt.Errorf("github: open pull request: %w", err)}
}

// markReady takes the draft mark off. One that is ready already is what was
// wanted.
func (w *work) markReady(ctx context.Context) (session.Performed, error) {
	if w.job.State.PR == nil {
		return session.Performed{}, &session.Problem{
			Say: "There is no pull request yet that could be marked ready.",
			Err: errors.New("github: mark ready: the session has no pull request"),
		}
	}
	pr := *w.job.State.PR
	if pr.Key != "" {
		_, err := ghql.MarkReady(ctx, w.in.graphql, pr.Key)
		if err == nil {
			pr.Draft = false
			return session.Performed{PR: &pr}, nil
		}
		var refusal gqlerror.List
		if !errors.As(err, &refusal) {
			return session.Performed{}, err
		}
		return w.readyAlready(ctx, pr, err)
	}
	return w.readyByNumber(ctx, pr)
}

// readyAlready asks what is true after a refusal, for "not a draft" is one.
func (w *work) readyAlready(ctx context.Context, pr session.PullRequest, refusal error) (session.Performed, error) {
	got, err := w.pull(ctx, pr.Number)
	if err != nil {
		return session.Performed{}, err
	}
	if got.GetDraft() {
		return session.Performed{}, refusal
	}
	return session.Performed{PR: pullRequest(got)}, nil
}

// readyByNumber is for a pull request whose GraphQL id is not known.
func (w *work) readyByNumber(ctx context.Context, pr session.PullRequest) (session.Performed, error) {
	got, err := w.pull(ctx, pr.Number)
	if err != nil {
		return session.Performed{}, err
	}
	if got.GetDraft() {
		if _, err := ghql.MarkReady(ctx, w.in.graphql, got.GetNodeID()); err != nil {
			return session.Performed{}, err
		}
	}
	done := pullRequest(got)
	done.Draft = false
	return session.Performed{PR: done}, nil
}

func (w *work) pull(ctx context.Context, number int) (*github.PullRequest, error) {
	var got github.PullRequest
	_, err := w.in.call(ctx, http.MethodGet, w.path("pulls/%d", number), nil, &got)
	return &got, err
}

// reactToReview shows 👀 on a review, which only GraphQL can.
func (w *work) reactToReview(ctx context.Context, r ref) error {
	_, err := ghql.React(ctx, w.in.graphql, r.node, ghql.ReactionContentEyes)
	return err
}
