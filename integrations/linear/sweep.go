package linear

import (
	"context"

	"github.com/Khan/genqlient/graphql"

	"ship/bot"
	ql "ship/graphql/linear"
	"ship/session"
)

// maxPages bounds how far a sweep reads back, at fifty activities a page.
const maxPages = 20

// sweep looks whether an owner that was frozen has spoken after the end since.
// Then the session looks as if it worked, and the end is told again in a line.
// Performed twice: see create.
func (w *work) sweep(ctx context.Context) error {
	if !w.resting() {
		return nil // what goes on speaks for itself
	}
	last, err := w.lastWord(ctx)
	if err != nil || last == nil || ends(last.Content.Type) {
		return err
	}
	s := w.job.State
	u := utterance{id: derived(w.effect.ID, "settled"), priority: Settling, content: ql.Response(bot.Settled(s))}
	switch {
	case w.asking():
		u.content, u.choices = ql.Elicitation(bot.Spoken(s.Asking.Question.Text)), offered(s.Asking.Question.Choices)
		return w.put(ctx, u)
	case questioned(s):
		u.content = ql.Elicitation(bot.Settled(s))
	case failed(s):
		u.content = ql.Failure(bot.Settled(s))
	}
	return w.create(ctx, u)
}

// resting: the last that we said in this session was an end or a question, and
// nothing is on its way.
func (w *work) resting() bool {
	s := w.job.State
	for _, e := range s.Pending {
		if e.ID != w.effect.ID && e.Kind != session.Sweep && e.Kind != session.Report && e.Thread != nil && *e.Thread == w.thread.session() {
			return false
		}
	}
	if w.asking() {
		return true
	}
	return s.Turn != nil && s.Turn.Stage == session.Ended
}

// ends: after that, the session no longer looks as if it worked.
func ends(t ql.ContentType) bool {
	return t == ql.TypeResponse || t == ql.TypeError || t == ql.TypeElicitation
}

// lastWord is the last activity of ours; nil when we said nothing.
func (w *work) lastWord(ctx context.Context) (*ql.Activity, error) {
	self, err := w.viewer(ctx)
	if err != nil {
		return nil, err
	}
	var last *ql.Activity
	after := ""
	for range maxPages {
		page, err := w.activities(ctx, after)
		if err != nil {
			return nil, err
		}
		for _, a := range page.Nodes {
			if a.User.Id == self && (last == nil || follows(a, *last)) {
				last = &a
			}
		}
		if !page.PageInfo.HasNextPage || page.PageInfo.EndCursor == after {
			break
		}
		after = page.PageInfo.EndCursor
	}
	return last, nil
}

// follows tells whether a was said after b. Of what was said within the same
// millisecond an end is taken for the last, for then nothing is to be done.
func follows(a, b ql.Activity) bool {
	return a.CreatedAt.After(b.CreatedAt) || a.CreatedAt.Equal(b.CreatedAt) && ends(a.Content.Type)
}

func (w *work) activities(ctx context.Context, after string) (ql.Activities, error) {
	var page *ql.ReadActivitiesResponse
	err := w.call(ctx, Settling, costActivities, func(c graphql.Client) (err error) {
		page, err = ql.ReadActivities(ctx, c, w.thread.agentSession, after)
		return err
	})
	if err != nil {
		return ql.Activities{}, err
	}
	return page.AgentSession.Activities, nil
}
