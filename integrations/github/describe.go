package github

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-github/v66/github"

	"ship/bot"
)

const (
	// maxContext is what an Admission may carry, in bytes.
	maxContext = 32 << 10
	// maxDescription of the issue or pull request itself, and maxRemark of
	// each comment: no single one crowds out the rest.
	maxDescription = 12 << 10
	maxRemark      = 4 << 10
)

// describe quotes what a thread is about: data for the agent, never
// instruction. Every foreign line is quoted, so that none can pass for ours.
// What is newest is kept when there is too much.
func (w *work) describe(ctx context.Context, about subject) (string, error) {
	kind := "Issue"
	if about.pull != nil {
		kind = "Pull request"
	}
	first := bot.Remark{
		Head: fmt.Sprintf("%s #%d in %s, opened by %s:", kind, about.number, w.repo.fullName(), about.author),
		Text: bot.Prefix(about.title+"\n\n"+visible(about.body), maxDescription),
	}
	talk, err := w.recent(ctx, about)
	if err != nil {
		return "", err
	}
	return join(first, talk), nil
}

// join renders the description and as many of the newest remarks as fit.
func join(first bot.Remark, talk []bot.Remark) string {
	head := first.String()
	return head + bot.Newest(talk, maxContext-len(head))
}

// recent returns what others said lately, oldest first: in the conversation,
// and then in reviews, which is what there is to be answered.
func (w *work) recent(ctx context.Context, about subject) ([]bot.Remark, error) {
	comments, err := w.lastPage(ctx, w.conversation().list)
	if err != nil {
		return nil, err
	}
	var talk []bot.Remark
	for _, c := range comments {
		if !ours(c.Body) {
			talk = append(talk, bot.Remark{Head: "Comment by " + c.User.Login + ":", Text: bot.Prefix(visible(c.Body), maxRemark)})
		}
	}
	if about.pull == nil {
		return talk, nil
	}
	reviews, err := w.reviews(ctx)
	if err != nil {
		return nil, err
	}
	inline, err := w.inline(ctx)
	return slices.Concat(talk, reviews, inline), err
}

// lastPage returns the newest of a list that GitHub only gives oldest first.
func (w *work) lastPage(ctx context.Context, path string) ([]comment, error) {
	var items []comment
	resp, err := w.in.call(ctx, "GET", withQuery(path, 1), nil, &items)
	if err != nil || resp.LastPage <= 1 {
		return items, err
	}
	var last []comment
	_, err = w.in.call(ctx, "GET", withQuery(path, resp.LastPage), nil, &last)
	if len(last) >= 20 || resp.LastPage == 2 || err != nil {
		return append(items[:0:0], last...), err
	}
	var before []comment
	_, err = w.in.call(ctx, "GET", withQuery(path, resp.LastPage-1), nil, &before)
	return append(before, last...), err
}

func (w *work) reviews(ctx context.Context) ([]bot.Remark, error) {
	var reviews []*github.PullRequestReview
	if _, err := w.in.call(ctx, "GET", withQuery(w.path("pulls/%d/reviews", w.thread.number), 1), nil, &reviews); err != nil {
		return nil, err
	}
	var out []bot.Remark
	for _, r := range reviews {
		if r.GetBody() == "" || ours(r.GetBody()) {
			continue
		}
		head := fmt.Sprintf("Review by %s (%s):", r.GetUser().GetLogin(), strings.ToLower(r.GetState()))
		out = append(out, bot.Remark{Head: head, Text: bot.Prefix(visible(r.GetBody()), maxRemark)})
	}
	return out, nil
}

// inline returns the newest review comments with where they stand.
func (w *work) inline(ctx context.Context) ([]bot.Remark, error) {
	var comments []comment
	path := withQuery(w.path("pulls/%d/comments?sort=created&direction=desc", w.thread.number), 1)
	if _, err := w.in.call(ctx, "GET", path, nil, &comments); err != nil {
		return nil, err
	}
	var out []bot.Remark
	for _, c := range slices.Backward(comments) {
		if ours(c.Body) {
			continue
		}
		head := fmt.Sprintf("Review comment %d by %s on %s:%d", c.ID, c.User.Login, c.Path, c.Line)
		if c.InReplyTo != 0 {
			head += fmt.Sprintf(", in reply to %d", c.InReplyTo)
		}
		out = append(out, bot.Remark{Head: head + ":", Text: bot.Prefix(visible(c.Body), maxRemark)})
	}
	return out, nil
}
