package slack

import (
	"context"
	"fmt"

	"ship/bot"
	"ship/session"
)

// ask posts a question that has to be answered before work begins, with what can
// be chosen below it. The message that waits for the first turn says meanwhile
// that it waits. Performed twice: see post.
func (w *work) ask(ctx context.Context) (session.Performed, error) {
	all := posed(blockID(w.thread.team, nameRepo), bot.Spoken(w.effect.Text), w.effect.Choices)
	if _, err := w.postAll(ctx, Asking, w.effect.ID, w.mentioning(all, w.effect.Ref)); err != nil {
		return session.Performed{}, err
	}
	has := parseShown(w.voice().Ref)
	if !has.unbound() || w.job.State.Asking == nil {
		return session.Performed{}, nil
	}
	if err := w.update(ctx, Asking, has.ts, w.card()); err != nil && !fixed(err) {
		return session.Performed{}, fmt.Errorf("say that a question is open: %w", err)
	}
	return session.Performed{}, nil
}
