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
	// costSuggest is what SuggestRepositories costs, in points.
	costSuggest = 3
	// ranking may take so long; people are not kept waiting for an order.
	ranking = 5 * time.Second
)

// errRanking is the cause of a ranking that took too long.
var errRanking = errors.New("linear took too long to rank the repositories")

// instead is how another session begins.
const instead = "hand me an issue of its own, or mention me in a new thread"

// clues are what tells which repository is meant. The issue may be nil.
func (w *work) clues(r session.Request, i *ql.Issue) bot.Clues {
	c := bot.Clues{Explicit: cmp.Or(bot.RepoOf(w.job.State), r.Repo, w.job.State.Repo.Name)}
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
	}
	return w.gate.Choose(ctx, who, w.ranked(ctx, candidates))
}

// ranked puts first what Linear takes to be meant. The question can be asked
// without: a failure is only logged.
func (w *work) ranked(ctx context.Context, names []string) []string {
	if w.thread.issue == "" || len(names) == 0 {
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
