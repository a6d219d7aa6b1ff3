package slack

import (
	"context"
	"fmt"
	"slices"

	api "github.com/slack-go/slack"

	"ship/bot"
	"ship/session"
)

// notBegun is what becomes of the message that was waiting for a turn when none
// begins. Why not is said in a message of its own, for nobody is told of changes.
const notBegun = "I have not begun with this. Why not is said below."

// say posts a sentence of ours. If nothing is left to begin with after that, the
// message that waited for the first turn says so. Performed twice: see post.
func (w *work) say(ctx context.Context) (session.Performed, error) {
	if w.thread.pending() {
		return session.Performed{}, w.whisper(ctx, w.effect.Ref, bot.Spoken(w.effect.Text))
	}
	priority := Settling
	if w.effect.Refusal { // whoever has no right can have as many as they like
		priority = Thinking
	}
	if _, err := w.postAll(ctx, priority, w.effect.ID, told(bot.Spoken(w.effect.Text))); err != nil {
		return session.Performed{}, err
	}
	if err := w.persist(ctx, "take the buttons off", w.spend(ctx)); err != nil {
		return session.Performed{}, err
	}
	if has := parseShown(w.voice().Ref); has.unbound() && w.nothingToCome() {
		if err := w.update(ctx, Settling, has.ts, told(notBegun)[0]); err != nil && !fixed(err) {
			return session.Performed{}, fmt.Errorf("say that nothing was begun: %w", err)
		}
		return session.Performed{Voice: shown{settled, has.ts}.String()}, nil
	}
	return session.Performed{}, nil
}

// spend takes the button off that is answered by what is said, if it can lead to
// nothing any more: it has done all that it can, or is of what is over.
func (w *work) spend(ctx context.Context) error {
	at, err := parseRef(w.effect.Ref)
	switch {
	case err != nil, at.kind != refButton, w.effect.Refusal:
		return nil
	case at.name == nameRemember:
		return w.withdraw(ctx, at.ts, at.name)
	case w.outdated(session.Request{Ref: w.effect.Ref, Verb: session.Instruct}) != "":
		return w.retire(ctx, at.ts, "")
	}
	return nil
}

// nothingToCome: no turn was begun, and nothing waits that might begin one.
func (w *work) nothingToCome() bool {
	s := w.job.State
	return s.Turns == 0 && s.Asking == nil && len(s.Waiting) == 0 &&
		!slices.ContainsFunc(s.Pending, func(e session.Effect) bool { return e.Kind == session.Admit })
}

// whisper says something to whoever wrote a slash command that no thread was
// begun for, and to nobody else: in the channel it would stand without what it is
// about. Performed twice, they may read it twice.
func (w *work) whisper(ctx context.Context, ref, text string) error {
	asked, err := parseRef(ref)
	if err != nil || asked.user == "" {
		w.app.log.WarnContext(ctx, "nobody is known to be told of a command", "session", string(w.job.State.ID))
		return nil
	}
	return w.app.call(ctx, Asking, w.call("chat.postEphemeral"), func(ctx context.Context) error {
		_, err := w.app.client.PostEphemeralContext(ctx, w.thread.channel, asked.user, api.MsgOptionText(mrkdwn(text, maxCaption)[0], false))
		return err
	})
}
