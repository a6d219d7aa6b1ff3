package linear

import (
	"context"
	"slices"
	"strings"

	"ship/bot"
	ql "ship/graphql/linear"
	"ship/session"
)

// answer tells the end of a turn: the last activity, which decides what becomes
// of the session. Performed twice: see create.
func (w *work) answer(ctx context.Context) error {
	s := w.job.State
	if s.Turn == nil {
		return nil // there is nothing to tell of
	}
	u := utterance{id: w.effect.ID, priority: Settling}
	switch {
	case !slices.ContainsFunc(s.Turn.Requests, w.here):
		u.content = ql.Response(bot.AnswerElsewhere(s))
	case questioned(s):
		u.content, u.choices = ql.Elicitation(bot.AgentAsks(s)), literal(s.Turn.Outcome.Question.Choices)
		return w.put(ctx, u)
	case failed(s):
		u.content = ql.Failure(bot.Answer(s))
	default:
		u.content = ql.Response(bot.Answer(s))
	}
	return w.create(ctx, u)
}

// questioned: the turn ended with a question of the agent's.
func questioned(s session.State) bool {
	o := s.Turn.Outcome
	return o != nil && o.Question != nil && o.Ending == session.Completed
}

// failed: the turn came to an end that nobody wanted.
func failed(s session.State) bool {
	o := s.Turn.Outcome
	return o == nil || o.Ending != session.Completed && o.Ending != session.Stopped
}

const (
	maxOffer  = 100
	maxOffers = 12
)

// literal are choices of the agent's, without labels: who clicks on one says
// these very words.
func literal(choices []session.Choice) []ql.Choice {
	var out []ql.Choice
	for _, c := range choices {
		text := strings.Join(strings.Fields(c.Value), " ")
		if text != "" && len(text) <= maxOffer && len(out) < maxOffers {
			out = append(out, ql.Choice{Value: text})
		}
	}
	return out
}
