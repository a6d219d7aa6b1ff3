package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	api "github.com/slack-go/slack"

	"ship/session"
)

const (
	// eyes is the reaction which says that a request was seen.
	eyes = "eyes"
	// ackTimeout bounds all of an acknowledgement. What waits behind it may be a
	// stop.
	ackTimeout = 5 * time.Second
	// ackAgain is how often it is tried again. After that it is too late for it.
	ackAgain = 1
	// tidyTries is how often it is tried again to take off what has had its day.
	tidyTries = 2
)

// errAck is the cause of an acknowledgement that took too long.
var errAck = errors.New("took too long to acknowledge")

// acknowledge shows that a request was seen, before anything is looked at. The
// first one is answered too, by the message that is going to change with the
// work. It does not insist: what waits behind it matters more. Performed twice,
// Slack knows the reaction already, and the message is found.
func (w *work) acknowledge(ctx context.Context) (session.Performed, error) {
	asked, err := parseRef(w.effect.Ref)
	if err != nil { // an operator's, which is nowhere to be reacted to
		return session.Performed{}, nil
	}
	soon, cancel := context.WithTimeoutCause(ctx, ackTimeout, errAck)
	defer cancel()
	switch asked.kind {
	case refButton:
		return session.Performed{}, w.pressed(soon, asked.ts)
	case refStop:
		return session.Performed{}, w.halted(soon)
	}
	err = w.react(soon, asked.ts)
	done, postErr := w.notice(soon)
	if done.Voice != "" || postErr != nil { // it says more than the reaction
		err = postErr
	}
	return done, w.forgive(ctx, asked.kind, err)
}

// pressed takes the buttons off a question that was answered by one, or off the
// end of a turn. Of a turn that runs, the report shows what can be pressed.
func (w *work) pressed(ctx context.Context, ts string) error {
	switch w.verb() {
	case session.Instruct, session.Ready:
		return w.persist(ctx, "take the buttons off", w.retire(ctx, ts, w.chosen(w.effect.Ref), w.rememberOffer(nameIn(w.effect.Ref), w.request(w.effect.Ref))...))
	}
	return nil
}

// halted: Slack's own stop button was pressed, after which we have to say what
// the session is up to, even if we believe that Slack knows.
func (w *work) halted(ctx context.Context) error {
	if w.busy() {
		return nil // the end says so
	}
	w.recall.forgetStatus(w.thread)
	return w.besides(ctx, "set the status", w.status(ctx))
}

// besides lets go of what failed beside the point. A context that ended is
// another matter: the effect was not performed.
func (w *work) besides(ctx context.Context, what string, err error) error {
	if err == nil || errors.Is(context.Cause(ctx), errAck) {
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	w.app.log.InfoContext(ctx, "slack was not shown all", "session", string(w.job.State.ID), "what", what, "err", err)
	return nil
}

// persist is besides for what would look wrong for good: it is tried again before
// it is let go of.
func (w *work) persist(ctx context.Context, what string, err error) error {
	if err != nil && ctx.Err() == nil && w.effect.Attempts < tidyTries && classify(err).Again {
		return fmt.Errorf("%s: %w", what, err)
	}
	return w.besides(ctx, what, err)
}

// verb of what is acknowledged.
func (w *work) verb() session.Verb {
	if w.effect.Request == nil {
		return session.Instruct
	}
	return w.effect.Request.Verb
}

// unreactable are the answers to a reaction that is there, or has no place any
// more.
var unreactable = []string{"already_reacted", "message_not_found", "no_item_specified", "bad_timestamp", "not_reactable", "too_many_emoji", "too_many_reactions", "thread_locked"}

func (w *work) react(ctx context.Context, ts string) error {
	if ts == "" {
		return nil
	}
	turn := w.app.call
	if w.first() { // the message says more, and is not to wait for this
		turn = w.app.try
	}
	err := turn(ctx, Thinking, w.call("reactions.add"), func(ctx context.Context) error {
		return w.app.client.AddReactionContext(ctx, eyes, api.NewRefToMessage(w.thread.channel, ts))
	})
	if slices.Contains(unreactable, code(err)) {
		return nil
	}
	return err
}

// notice answers the first request of a session, with the living message of the
// turn that is to come.
func (w *work) notice(ctx context.Context) (session.Performed, error) {
	if !w.first() {
		return w.belated(ctx)
	}
	card := w.card()
	ts, err := w.post(ctx, Thinking, w.effect.ID+"/living", card)
	if err != nil {
		return session.Performed{}, err
	}
	w.remember(card)
	return session.Performed{Voice: shown{0, ts}.String()}, nil
}

// first: it asks for work where there was none yet, which may come of it still,
// and nothing is shown that waits for it.
func (w *work) first() bool {
	return w.asksForWork() && w.awaited() && w.job.State.Asking == nil
}

func (w *work) asksForWork() bool {
	verb := w.verb()
	return (verb == session.Instruct || verb == session.Finish) && !w.thread.pending()
}

// awaited: a first turn may begin, and nothing is shown that waits for it.
func (w *work) awaited() bool {
	has := parseShown(w.voice().Ref)
	return w.job.State.Turns == 0 && !w.nothingToCome() && (has.ts == "" || has.turn == settled)
}

// belated sees to the message of an acknowledgement that failed, as far as
// anybody could tell, if it is there after all and things went on without it.
// The turn that is still to come takes it over; another has one of its own, and
// then it is taken back. Performed twice, it is found as it should be.
func (w *work) belated(ctx context.Context) (session.Performed, error) {
	if !w.job.Repeat || !w.asksForWork() {
		return session.Performed{}, nil
	}
	there, err := w.posted(ctx, Thinking)
	ts := there[w.effect.ID+"/living"]
	switch {
	case err != nil, ts == "", ts == parseShown(w.voice().Ref).ts:
		return session.Performed{}, err
	case !w.awaited():
		return session.Performed{}, w.remove(ctx, Thinking, ts)
	}
	done := session.Performed{Voice: shown{0, ts}.String()}
	return done, w.besides(ctx, "say that a question is open", w.update(ctx, Thinking, ts, w.card()))
}

// forgive lets go of an acknowledgement that is worth no further try. Where a
// shortcut is used we need not be at all, which the admission sees to.
func (w *work) forgive(ctx context.Context, kind refKind, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	p, ok := errors.AsType[*session.Problem](w.problem(ctx, err))
	switch {
	case !ok, p.Gone && kind != refShortcut:
		return err
	case p.Again && w.effect.Attempts < ackAgain && (w.first() || !noRoom(err)):
		return err
	}
	w.app.log.WarnContext(ctx, "a request was not acknowledged in time, so it is not at all", "session", string(w.job.State.ID), "err", err)
	return nil
}
