package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v66/github"

	"ship/bot"
	"ship/session"
)

// subject is what a thread is about: an issue, or a pull request.
type subject struct {
	number      int
	title, body string
	author      string
	pull        *github.PullRequest
}

// admit answers who asks, whether they may, and what it is about. It only
// reads. A refusal names what would make it work.
func (w *work) admit(ctx context.Context) (session.Performed, error) {
	r := w.effect.Request
	if r == nil {
		return session.Performed{}, unusable(fmt.Errorf("admit without a request: %w", errKey))
	}
	who, err := w.people.standing(ctx, w.repo, r.By.Login)
	if err != nil {
		return session.Performed{}, err
	}
	a := session.Admission{By: r.By, Repo: w.repo.session()}
	if a.By.Name == "" {
		a.By.Name = who.name
	}
	if !who.may {
		a.Stranger = true
		a.Refusal = fmt.Sprintf("`%s` cannot start or steer ship here: that takes %s access to `%s`. Someone who has it can repeat the command, or a maintainer can grant it.", harmless(r.By.Login), w.people.permission, w.repo.fullName())
		return session.Performed{Admission: &a}, nil
	}
	if err := w.admitTo(ctx, *r, &a); err != nil {
		return session.Performed{}, err
	}
	return session.Performed{Admission: &a}, nil
}

func (w *work) admitTo(ctx context.Context, r session.Request, a *session.Admission) error {
	if r.Repo != "" && !strings.EqualFold(r.Repo, w.repo.fullName()) {
		a.Refusal = fmt.Sprintf("On GitHub a session works on the repository that it is asked in. Ask in an issue of `%s` instead, or leave `repo=` out.", harmless(r.Repo))
		return nil
	}
	about, err := w.subject(ctx)
	if err != nil {
		return err
	}
	if !w.guest() || w.job.State.Title == "" {
		a.Title = about.title
	}
	if about.pull != nil {
		err = w.admitToPull(r, about.pull, a)
	} else {
		err = w.admitToIssue(ctx, r, a)
	}
	if err != nil || a.Refusal != "" || a.Forward != "" || !bot.NeedsContext(r.Verb) {
		return err
	}
	a.Context, err = w.describe(ctx, about)
	return err
}

// guest: the session began on another platform, and is called as it is there.
func (w *work) guest() bool {
	_, _, native := sessionThread(w.job.State.ID)
	return w.job.State.ID != "" && !native
}

// subject fetches what the thread is about. Whether it is a pull request,
// GitHub knows better than the key.
func (w *work) subject(ctx context.Context) (subject, error) {
	if !w.thread.pull {
		var issue github.Issue
		if _, err := w.in.call(ctx, http.MethodGet, w.path("issues/%d", w.thread.number), nil, &issue); err != nil {
			return subject{}, err
		}
		if !issue.IsPullRequest() {
			return subject{
				number: issue.GetNumber(), title: issue.GetTitle(), body: issue.GetBody(), author: issue.GetUser().GetLogin(),
			}, nil
		}
	}
	pull, err := w.pull(ctx, w.thread.number)
	if err != nil {
		return subject{}, err
	}
	return subject{
		number: pull.GetNumber(), title: pull.GetTitle(), body: pull.GetBody(), author: pull.GetUser().GetLogin(), pull: pull,
	}, nil
}

func (w *work) admitToIssue(ctx context.Context, r session.Request, a *session.Admission) error {
	if r.Branch != "" {
		return w.useBranch(ctx, r.Branch, a)
	}
	var got github.Repository
	if _, err := w.in.call(ctx, http.MethodGet, "repos/"+w.repo.fullName(), nil, &got); err != nil {
		return err
	}
	a.Base = got.GetDefaultBranch()
	return nil
}

func (w *work) useBranch(ctx context.Context, branch string, a *session.Admission) error {
	has, err := w.in.hasBranch(ctx, w.repo, branch)
	if err != nil {
		return err
	}
	if !has {
		a.Refusal = fmt.Sprintf("There is no branch `%s` in `%s`. Check the name after `branch=`.", harmless(branch), w.repo.fullName())
		return nil
	}
	a.Base = branch
	return nil
}

// admitToPull: the work goes onto the pull request's own branch, if it is one
// that ship can push to, or to the session that the pull request came from.
func (w *work) admitToPull(r session.Request, p *github.PullRequest, a *session.Admission) error {
	from := owner(w.repo, pullRef{
		branch:   p.GetHead().GetRef(),
		headRepo: p.GetHead().GetRepo().GetID(),
		body:     p.GetBody(),
		byBot:    p.GetUser().GetType() == "Bot",
	})
	if from != "" && from != w.job.State.ID {
		a.Forward = from
		return nil
	}
	if w.elsewhere() { // where, is not for everybody here to know
		a.Refusal = fmt.Sprintf("In this session I work in another repository, so I leave the branch `%s` alone. Ask me in an issue here, or open the pull request from a branch of another name.", harmless(p.GetHead().GetRef()))
		return nil
	}
	if refusal := w.unworkable(r, p); refusal != "" {
		if works(r.Verb) {
			a.Refusal = refusal
		}
		return nil
	}
	a.Base, a.Branch, a.Head = p.GetBase().GetRef(), p.GetHead().GetRef(), p.GetHead().GetSHA()
	a.PR = pullRequest(p)
	return nil
}

// elsewhere: the session belongs to another repository already.
func (w *work) elsewhere() bool {
	known, err := parseRepo(w.job.State.Repo.Key)
	return w.job.State.Repo.Key != "" && (err != nil || known.id != w.repo.id)
}

// works: the verb leads to work on the branch.
func works(v session.Verb) bool { return bot.NeedsContext(v) || v == session.Ready }

// unworkable says why ship cannot push to a pull request's branch; empty when
// it can.
func (w *work) unworkable(r session.Request, p *github.PullRequest) string {
	head, base := p.GetHead(), p.GetBase()
	switch {
	case head.GetRepo().GetID() != w.repo.id:
		return fmt.Sprintf("This pull request comes from a fork, and I can only push to branches of `%s`. Push the branch there and open the pull request from it, or ask me in an issue.", w.repo.fullName())
	case p.GetState() != "open":
		return "This pull request is closed. Reopen it and ask again, or ask me in an issue."
	case head.GetRef() == base.GetRepo().GetDefaultBranch():
		return fmt.Sprintf("The head of this pull request is `%s`, the default branch, and I do not push to that. Open it from a branch of its own.", harmless(head.GetRef()))
	case r.Branch != "" && r.Branch != base.GetRef():
		return fmt.Sprintf("On a pull request the branches are given: `%s` goes into `%s`. Leave `branch=` out.", harmless(head.GetRef()), harmless(base.GetRef()))
	}
	return ""
}
