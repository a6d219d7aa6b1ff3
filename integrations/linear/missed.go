package linear

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/Khan/genqlient/graphql"

	ql "ship/graphql/linear"
	"ship/session"
)

const (
	// mentionBefore and mentionAfter the beginning of a session is the comment
	// that it began with.
	mentionBefore = 10 * time.Second
	mentionAfter  = time.Second
	// costAnywhere is what ReadComments costs, in points.
	costAnywhere = 263
)

// missed is what may have been missed in a session: what was said there since
// we last settled anything, and the beginning if we never said a word.
func (w *workspace) missed(ctx context.Context, me string, t thread, s ql.SessionHead) ([]act, error) {
	var got *ql.ReadActivitiesResponse
	err := w.call(ctx, Moving, costActivities, func(c graphql.Client) (err error) {
		got, err = ql.ReadActivities(ctx, c, s.Id, "")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what was said: %w", err)
	}
	oldest := time.Now().Add(-recoverable)
	said := got.AgentSession.Activities
	prompts, silent := unsettled(said.Nodes, me)
	var acts []act
	if silent && !said.PageInfo.HasNextPage && s.CreatedAt.After(oldest) {
		if acts, err = w.beginning(ctx, me, t, s); err != nil {
			return nil, err
		}
	}
	for _, p := range prompts {
		if p.CreatedAt.After(oldest) && validID.MatchString(p.Id) {
			acts = append(acts, prompt(t, p))
		}
	}
	return acts, nil
}

// unsettled are the prompts since our last question, answer or error, in the
// order in which they were made; silent, when there is nothing of ours at all. A
// prompt of that very moment counts too: the dedupe knows whether it was taken.
func unsettled(said []ql.Activity, me string) (prompts []ql.Activity, silent bool) {
	silent = true
	var settled time.Time
	for _, a := range slices.Backward(said) { // the newest come first
		mine := a.User.Id == me
		silent = silent && !mine
		switch {
		case mine && settles(a.Content.Type) && a.CreatedAt.After(settled):
			settled = a.CreatedAt
		case !mine && a.Content.Type == ql.TypePrompt:
			prompts = append(prompts, a)
		}
	}
	prompts = slices.DeleteFunc(prompts, func(a ql.Activity) bool { return a.CreatedAt.Before(settled) })
	slices.SortStableFunc(prompts, func(a, b ql.Activity) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return prompts, silent
}

// settles tells whether after an activity of this kind it is the turn of people.
func settles(kind ql.ContentType) bool {
	return kind == ql.TypeElicitation || kind == ql.TypeResponse || kind == ql.TypeError
}

func prompt(t thread, p ql.Activity) act {
	said := spoken{id: p.Id, body: p.Content.Body, stop: p.Signal == ql.AgentActivitySignalStop}
	if p.SourceComment != nil {
		said.comment = p.SourceComment.Id
	}
	a := speak(t, session.Person{Login: cmp.Or(p.User.Id, automation), Name: p.User.Name, Email: p.User.Email}, said)
	a.at = p.CreatedAt
	return a
}

// beginning is the act with which a session began, none if we began it. What
// Linear wrote around it is only in the webhook; who admits it reads the issue.
func (w *workspace) beginning(ctx context.Context, me string, t thread, s ql.SessionHead) ([]act, error) {
	by := session.Person{Login: automation}
	if s.Creator != nil {
		by = session.Person{Login: s.Creator.Id, Name: s.Creator.Name, Email: s.Creator.Email}
	}
	if by.Login == me {
		return nil, nil
	}
	words, err := w.words(ctx, by, s)
	if err != nil {
		return nil, err
	}
	a := begin(t, by, words)
	a.at = s.CreatedAt
	return []act{a}, nil
}

// words is the mention with which a session began; empty when it was not a
// mention, or only an answer below the comment that Linear names, as in
// payload.mention.
func (w *workspace) words(ctx context.Context, by session.Person, s ql.SessionHead) (string, error) {
	if s.Comment == nil || s.Creator == nil {
		return "", nil
	}
	var got *ql.ReadCommentsResponse
	err := w.call(ctx, Moving, costAnywhere, func(c graphql.Client) (err error) {
		got, err = ql.ReadComments(ctx, c, s.CreatedAt.Add(-mentionBefore), s.CreatedAt.Add(mentionAfter), "")
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the comment that it began with: %w", err)
	}
	return mention(got.Comments.Nodes, s.Comment.Id, by.Login), nil
}

// mention is the text of a comment, if a person wrote it and nothing under it:
// otherwise what they wrote under it is the mention, and not among their words.
func mention(comments []ql.Comment, id, by string) (text string) {
	for _, c := range comments {
		switch {
		case c.User == nil || c.User.Id != by:
		case c.Parent != nil && c.Parent.Id == id:
			return ""
		case c.Id == id:
			text = c.Body
		}
	}
	return text
}
