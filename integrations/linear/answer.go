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
		u.content, u.choices = posed(s)
		return w.put(ctx, u)
	case failed(s):
		u.content = ql.Failure(bot.Answer(s))
	default:
		u.content = ql.Response(bot.Answer(s))
	}
	return w.create(ctx, u)
}

// posed is the agent's question, with its choices to be clicked on or to be read.
func posed(s session.State) (ql.Content, []ql.Choice) {
	text, choices := bot.AgentAsks(s), s.Turn.Outcome.Question.Choices
	offer, list := literal(choices), bot.Choices(choices)
	if len(offer) == 0 && !strings.Contains(text, list) {
		text += "\n\n" + list
	}
	return ql.Elicitation(text), offer
}

// questioned: the turn ended with a question, of the agent's or whether to go on
// past a budget.
func questioned(s session.State) bool { return s.Turn.Outcome.Asks() != nil }

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
// these very words. So they have to be nothing but an answer. What a repository
// makes the agent offer may be a command, or a mention: then there is nothing to
// click on.
func literal(choices []session.Choice) []ql.Choice {
	var out []ql.Choice
	for _, c := range choices {
		text := strings.Join(strings.Fields(c.Value), " ")
		switch {
		case text == "" || len(text) > maxOffer || len(out) == maxOffers:
		case !plainAnswer(text):
			return nil
		default:
			out = append(out, ql.Choice{Value: text})
		}
	}
	return out
}

// plainAnswer: saying it does nothing else.
func plainAnswer(text string) bool {
	said := bot.ParseText(addressed(text))
	return said == bot.Command{Verb: session.Instruct, Text: text} && speakable(bot.Phrase(text, maxOffer)) == text
}
