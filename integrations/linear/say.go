package linear

import (
	"context"
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"

	"github.com/Khan/genqlient/graphql"

	"ship/bot"
	ql "ship/graphql/linear"
	"ship/session"
)

// maxBody bounds what is said at once, in bytes. Linear does not say how much
// it takes.
const maxBody = 16 << 10

// utterance is one activity, which is to be there once.
type utterance struct {
	// id is a UUID of version 4 that was kept before: the effect's, or one that
	// is derived from it.
	id      string
	content ql.Content
	// choices go with an elicitation; none: it is asked without.
	choices []ql.Choice
	// ephemeral ones are gone when another follows. Only thoughts and actions.
	ephemeral bool
	priority  Priority
}

// derived makes another id of an effect's, always the same, for what else the
// effect creates.
func derived(id, what string) string {
	sum := sha256.Sum256([]byte("linear\x00" + id + "\x00" + what))
	b := sum[:16]
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// create makes an activity. Performed twice, Linear refuses the id that is
// taken; since it does not say that in words that we may rely on, a look tells
// whether the refusal is the success of the first time.
func (w *work) create(ctx context.Context, u utterance) error {
	err := w.call(ctx, u.priority, costWrite, func(c graphql.Client) error { return w.send(ctx, c, u) })
	if !refusedInput(err) {
		return err
	}
	there, lookErr := w.there(ctx, u)
	switch {
	case lookErr != nil:
		return fmt.Errorf("look whether it is there: %w", lookErr)
	case there, u.ephemeral && w.job.Repeat: // what made way for another may not be found
		return nil
	}
	return err
}

// send makes the one request that creates an activity.
func (w *work) send(ctx context.Context, c graphql.Client, u utterance) error {
	u.content.Body = speakable(u.content.Body)
	var err error
	if len(u.choices) > 0 {
		_, err = ql.Ask(ctx, c, u.id, w.thread.agentSession, u.content, ql.Choices{Options: u.choices})
	} else {
		_, err = ql.CreateActivity(ctx, c, u.id, w.thread.agentSession, u.content, u.ephemeral)
	}
	return err
}

// there looks for an activity by its id, in our session.
func (w *work) there(ctx context.Context, u utterance) (bool, error) {
	var found *ql.ReadActivityResponse
	err := w.call(ctx, u.priority, costActivity, func(c graphql.Client) (err error) {
		found, err = ql.ReadActivity(ctx, c, u.id)
		return err
	})
	if v, ok := verdictOf(err); ok && (v.refused() || strings.HasPrefix(v.missing(), "AgentActivity")) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return found.AgentActivity.AgentSession.Id == w.thread.agentSession, nil
}

// put asks a question, with its choices to be clicked on where Linear takes
// them, and otherwise to be read.
func (w *work) put(ctx context.Context, u utterance) error {
	err := w.create(ctx, u)
	if len(u.choices) == 0 || !refusedInput(err) {
		return err
	}
	w.app.log.WarnContext(ctx, "linear does not take these choices, so they are written out", "err", err)
	var list []session.Choice
	for _, c := range u.choices {
		list = append(list, session.Choice{Value: c.Value})
	}
	u.content.Body, u.choices = u.content.Body+"\n\n"+bot.Choices(list), nil
	return w.create(ctx, u)
}

// acknowledge shows that a request was seen, before anything is looked at: in
// ten seconds Linear takes an agent for dead. What began the session has no
// ref, and is acknowledged for good; what comes later only until there is more
// to say. What waits behind it may be the end, so it does not insist.
func (w *work) acknowledge(ctx context.Context) error {
	first := w.effect.Ref == ""
	verb := session.Instruct
	if w.effect.Request != nil {
		verb = w.effect.Request.Verb
	}
	err := w.create(ctx, utterance{
		id: w.effect.ID, content: ql.Thought(bot.Seen(session.ViewOf(w.job.State), verb, first)), ephemeral: !first, priority: Thinking,
	})
	if err == nil || ctx.Err() != nil || !classify(err).Again || !w.pointless(first, err) {
		return err
	}
	w.app.log.WarnContext(ctx, "a request was not acknowledged in time, so it is not at all", "session", string(w.job.State.ID), "err", err)
	return nil
}

// manyTries is after how many it is too late to acknowledge.
const manyTries = 2

// pointless: an acknowledgement that failed is worth no further try.
func (w *work) pointless(first bool, err error) bool {
	if first {
		return noRoom(err) && w.effect.Attempts >= manyTries
	}
	return noRoom(err) || w.effect.Attempts >= manyTries
}

// say posts a sentence of ours. What it is to Linear follows from what goes on
// in the session, for the last activity decides whether the session works,
// waits or is over. A question that is open, ours or the agent's, stays so.
// Performed twice: see create.
func (w *work) say(ctx context.Context) error {
	text := bot.Spoken(w.effect.Text)
	u := utterance{id: w.effect.ID, content: ql.Response(text), priority: Settling}
	s := w.job.State
	switch {
	case w.asking():
		u.content, u.choices = ql.Elicitation(text), offered(s.Asking.Question.Choices)
		return w.put(ctx, u)
	case s.Turn != nil && s.Turn.Stage != session.Ended:
		u.content, u.priority = ql.Thought(text), Thinking
	case s.Turn != nil && questioned(s):
		u.content, u.choices = ql.Elicitation(text), literal(s.Turn.Outcome.Question.Choices)
		return w.put(ctx, u)
	case w.effect.Refusal:
		u.content = ql.Failure(text)
	}
	return w.create(ctx, u)
}

// asking: a question of ours waits for its answer in this thread.
func (w *work) asking() bool {
	a := w.job.State.Asking
	return a != nil && w.here(a.Request)
}

// here: it was asked in this thread.
func (w *work) here(r session.Request) bool { return r.Thread == w.thread.session() }

// ask puts a question that has to be answered before work begins. Performed
// twice: see create.
func (w *work) ask(ctx context.Context) error {
	return w.put(ctx, utterance{
		id: w.effect.ID, content: ql.Elicitation(bot.Spoken(w.effect.Text)), choices: offered(w.effect.Choices), priority: Asking,
	})
}

// offered are choices as Linear takes them.
func offered(choices []session.Choice) []ql.Choice {
	var out []ql.Choice
	for _, c := range choices {
		if strings.TrimSpace(c.Value) != "" {
			out = append(out, ql.Choice{Label: c.Label, Value: c.Value})
		}
	}
	return out
}

// address finds Linear's own, however it is written.
var address = regexp.MustCompile(`(?i)\b(linear\.)(app)\b`)

// speakable is a text that Linear takes, and that does nothing there but to be
// read: an address of Linear's own would become a mention.
func speakable(body string) string {
	return bot.Cut(address.ReplaceAllString(body, "${1}\u200b${2}"), maxBody)
}
