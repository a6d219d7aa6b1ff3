package linear

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Khan/genqlient/graphql"

	"ship/bot"
	ql "ship/graphql/linear"
)

const (
	// maxContext is what an Admission may carry of what a request is about, and
	// maxAside of what was said beside it, in bytes.
	maxContext = 32 << 10
	maxAside   = 16 << 10
	// maxDescription of the issue itself, and maxRemark of each comment: no
	// single one crowds out the rest.
	maxDescription = 12 << 10
	maxRemark      = 4 << 10
	// maxTitle of a session, in bytes.
	maxTitle = 300
	// costComments is what ReadIssueComments costs, in points.
	costComments = 264
)

// described is what an issue is about, and what was said on it, in so many bytes
// at most.
func described(i *ql.Issue, talk []bot.Remark, room int) string {
	head := fmt.Sprintf("Issue %s (%s)", bot.PlainName(i.Identifier), bot.PlainName(i.State.Name))
	if i.Creator != nil {
		head += ", written by " + cmp.Or(bot.PlainName(i.Creator.Name), somebody)
	}
	first := bot.Remark{Head: head + ":", Text: bot.Prefix(i.Title+"\n\n"+i.Description, min(maxDescription, room/2))}.String()
	if len(first) > room { // it is quoted line by line, so many short ones take much more
		first = bot.Prefix(first, room-2) + "\n\n"
	}
	return first + bot.Newest(talk, room-len(first))
}

// foreword is what Linear itself wrote of what a session is about.
func foreword(quote string) string {
	return bot.Prefix(bot.Remark{Head: "What Linear tells of this:", Text: quote}.String(), maxContext)
}

// aside is what was said beside the conversation; empty when nothing was.
func aside(talk []bot.Remark) string {
	const head = "Said on the issue since the last request:\n\n"
	text := bot.Newest(talk, maxAside-len(head))
	if text == "" {
		return ""
	}
	return head + text
}

// title carries the issue's identifier, by which Linear links the branch and the
// pull request that are named after it.
func title(i *ql.Issue) string {
	return bot.Prefix(strings.Join(strings.Fields(i.Identifier+": "+strings.ToValidUTF8(i.Title, "")), " "), maxTitle)
}

// said is what a person wrote on an issue. Here means in the session's own
// thread, so it is a request itself.
type said struct {
	bot.Remark
	at   time.Time
	here bool
}

// lately is by how much more is read than what was said until a request, so that
// its own comment is there and tells which thread is the session's.
const lately = time.Minute

// talk reads what people said before a moment, the oldest first, without the
// comment own. Linear lists the newest first: of much talk this is the end.
func (w *work) talk(ctx context.Context, until time.Time, own string) ([]said, error) {
	var got *ql.ReadIssueCommentsResponse
	err := w.call(ctx, Thinking, costComments, func(c graphql.Client) (err error) {
		got, err = ql.ReadIssueComments(ctx, c, w.thread.issue, time.Unix(0, 0).UTC(), until.Add(lately), "")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what was said on the issue: %w", err)
	}
	var all []said
	comments := got.Issue.Comments.Nodes
	thread := threadOf(comments, own)
	for _, c := range comments {
		if c.Id != own && c.User != nil && !c.User.App && c.CreatedAt.Before(until) {
			r := bot.Remark{Head: "Comment by " + cmp.Or(bot.PlainName(c.User.Name), somebody) + ":", Text: bot.Prefix(c.Body, maxRemark)}
			all = append(all, said{r, c.CreatedAt, thread != "" && top(c) == thread})
		}
	}
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b said) int { return a.at.Compare(b.at) })
	return all, nil
}

// threadOf is the comment at the top of the thread that another is in; empty if
// that is not among them.
func threadOf(comments []ql.Comment, id string) string {
	i := slices.IndexFunc(comments, func(c ql.Comment) bool { return c.Id == id })
	if i < 0 {
		return ""
	}
	return top(comments[i])
}

func top(c ql.Comment) string {
	if c.Parent != nil {
		return c.Parent.Id
	}
	return c.Id
}

// parted parts what was said beside the session since a moment from all else.
// With no such moment, there is nothing to part.
func parted(all []said, moment time.Time) (before, since []bot.Remark) {
	for _, s := range all {
		if s.here || moment.IsZero() || s.at.Before(moment) {
			before = append(before, s.Remark)
		} else {
			since = append(since, s.Remark)
		}
	}
	return before, since
}
