package linear

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Khan/genqlient/graphql"

	"ship/bot"
	ql "ship/graphql/linear"
	"ship/session"
)

const (
	// codeHost is where Linear is told that the repositories are.
	codeHost = "github.com"
	// maxChoices that a question offers, and maxLooks of those that are looked at
	// for it: each takes some time of the code host's.
	maxChoices = 10
	maxLooks   = 20
	// costSuggest is what SuggestRepositories costs, in points.
	costSuggest = 3
	// ranking may take so long; people are not kept waiting for an order.
	ranking = 5 * time.Second
)

// errRanking is the cause of a ranking that took too long.
var errRanking = errors.New("linear took too long to rank the repositories")

const (
	whichOne = "Which repository should I work in? Choose one, or write its name as `OWNER/NAME`."
	closed   = "Sorry, there is no repository that this may be about and that you may have me work in. Somebody who may can ask again, or a maintainer can give more access."
	nowhere  = "I cannot tell in which repository this is to be done, and there is none that I may work in. Whoever runs me has to give me access to one on the code host, or name one in the section `repositories` of my settings; then ask me again."
)

// settled is the repository that the session works in; empty if it has none.
func (w *work) settled() string {
	if s := w.job.State; s.Repo.Key != "" && s.Turns > 0 {
		return s.Repo.Name
	}
	return ""
}

// elsewhere refuses what a session that has begun cannot do any more: to go on
// in another repository, or to have its pull request target another branch.
func (w *work) elsewhere(r session.Request) (refusal string) {
	s, settled := w.job.State, w.settled()
	switch {
	case settled == "":
		return ""
	case r.Repo != "" && !strings.EqualFold(r.Repo, settled):
		return fmt.Sprintf("We work in `%s` here, and I stay with it until this is done. For `%s`, hand me an issue of its own, or mention me in a new thread.", settled, r.Repo)
	case r.Branch != "" && s.PR != nil && !s.Closed && r.Branch != s.Base:
		return fmt.Sprintf("The pull request #%d goes into `%s` already. Leave `branch=` out to go on with it.", s.PR.Number, s.Base)
	}
	return ""
}

// clues are what tells which repository is meant. The issue may be nil.
func (w *work) clues(r session.Request, i *ql.Issue) bot.Clues {
	c := bot.Clues{Explicit: cmp.Or(w.settled(), r.Repo, w.job.State.Repo.Name)}
	if i == nil {
		return c
	}
	for _, l := range i.Labels.Nodes {
		c.Labels = append(c.Labels, l.Name)
		if l.Parent != nil {
			c.Labels = append(c.Labels, l.Parent.Name+"/"+l.Name, l.Parent.Name)
		}
	}
	if i.Project != nil {
		c.Project = []string{i.Project.Name, i.Project.Id}
	}
	c.Team = []string{i.Team.Key, i.Team.Name, i.Team.Id}
	return c
}

// route finds the repository. With none, the admission says why: it has a
// question, or a refusal.
func (w *work) route(ctx context.Context, r session.Request, i *ql.Issue, who bot.Asker) (name string, a session.Admission, err error) {
	name, candidates, err := w.gate.Route(ctx, w.clues(r, i))
	switch {
	case err != nil:
		return "", a, fmt.Errorf("find the repository: %w", err)
	case name != "":
		return name, a, nil
	case len(candidates) == 0:
		return "", session.Admission{Refusal: nowhere}, nil
	}
	open, a, err := w.open(ctx, who, w.ranked(ctx, candidates))
	switch {
	case err != nil:
		return "", a, err
	case len(open) == 1:
		return open[0], session.Admission{}, nil
	case len(open) > 1:
		return "", session.Admission{Question: question(open)}, nil
	}
	return "", a, nil
}

// open are the repositories to choose from: those in which they may command, for
// no other is to be named to them. Where there is none, the admission says so.
func (w *work) open(ctx context.Context, who bot.Asker, names []string) (open []string, a session.Admission, err error) {
	a.Refusal = nowhere
	for _, name := range names[:min(len(names), maxLooks)] {
		p, err := w.gate.Pass(ctx, who, name, "")
		if err != nil {
			return nil, a, fmt.Errorf("ask whether %s can be chosen: %w", name, err)
		}
		if p.Refusal == "" {
			open = append(open, name)
		}
		if p.Stranger && !a.Stranger {
			a = session.Admission{Refusal: closed, Stranger: true, By: p.By}
		}
		switch {
		case p.Stranger && p.By.Login == who.ID: // who is nobody on the code host is so everywhere
			a.Refusal = p.Refusal
			return nil, a, nil
		case len(open) == maxChoices:
			return open, a, nil
		}
	}
	return open, a, nil
}

func question(names []string) *session.Question {
	q := &session.Question{Text: whichOne}
	for _, name := range names {
		q.Choices = append(q.Choices, session.Choice{Label: name, Value: name})
	}
	return q
}

// ranked puts first what Linear takes to be meant. The question can be asked
// without: a failure is only logged.
func (w *work) ranked(ctx context.Context, names []string) []string {
	if w.thread.issue == "" {
		return names
	}
	confidence, err := w.suggestions(ctx, names)
	if err != nil {
		w.app.log.WarnContext(ctx, "linear did not rank the repositories", "err", err)
		return names
	}
	return slices.SortedStableFunc(slices.Values(names), func(a, b string) int {
		return cmp.Compare(confidence[strings.ToLower(b)], confidence[strings.ToLower(a)])
	})
}

// suggestions tells how sure Linear is of each repository, by its name in lower
// case.
func (w *work) suggestions(ctx context.Context, names []string) (map[string]float64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, ranking, errRanking)
	defer cancel()
	candidates := make([]ql.Candidate, 0, len(names))
	for _, name := range names {
		candidates = append(candidates, ql.Candidate{Hostname: codeHost, RepositoryFullName: name})
	}
	var got *ql.SuggestRepositoriesResponse
	err := w.call(ctx, Thinking, costSuggest, func(c graphql.Client) (err error) {
		got, err = ql.SuggestRepositories(ctx, c, w.thread.issue, w.thread.agentSession, candidates)
		return err
	})
	if err != nil {
		return nil, err
	}
	sure := make(map[string]float64, len(names))
	for _, s := range got.IssueRepositorySuggestions.Suggestions {
		sure[strings.ToLower(s.RepositoryFullName)] = s.Confidence
	}
	return sure, nil
}
