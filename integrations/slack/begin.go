package slack

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"ship/session"
)

// open shows that a turn has begun: in the message that its request was
// acknowledged by, or in a new one, for people look at the end of a thread. The
// message of the turn before has had its day, and so have the questions that
// this one answers. Performed twice, the message is found.
func (w *work) open(ctx context.Context) (session.Performed, error) {
	turn, had := w.job.State.Turn, parseShown(w.voice().Ref)
	if turn == nil || turn.N != w.effect.Turn || had.ts != "" && had.turn == turn.N {
		return session.Performed{}, nil // replayed, when all of it was shown
	}
	done := session.Performed{Voice: shown{turn.N, had.ts}.String()}
	if !had.unbound() { // else the report shows what it is about now
		card := w.card()
		ts, err := w.post(ctx, Thinking, w.livingID(), card)
		if err != nil {
			return session.Performed{}, err
		}
		w.remember(card)
		done = session.Performed{Voice: shown{turn.N, ts}.String(), Shown: session.ViewOf(w.job.State).Digest()}
	}
	return done, w.tidy(ctx, had)
}

// tidy does what goes along with a beginning, as far as Slack lets us: the turn
// is shown without it.
func (w *work) tidy(ctx context.Context, had shown) error {
	if err := w.besides(ctx, "set the status", w.status(ctx)); err != nil {
		return err
	}
	if had.ts != "" && had.turn > 0 {
		if err := w.persist(ctx, "take the buttons off", w.retire(ctx, had.ts, "")); err != nil {
			return err
		}
	}
	return w.persist(ctx, "take the choices off", w.retireQuestions(ctx, cmp.Or(had.ts, w.thread.root)))
}

// livingID is the id of the message that is posted for the newest turn, by
// whichever effect.
func (w *work) livingID() string {
	return fmt.Sprintf("%s/%d/living", w.job.State.ID, w.job.State.Turns)
}

// card is the living message as it is to be now. What is asked between turns
// has a message of its own, and the last turn's goes on to tell of that.
func (w *work) card() post {
	state := w.job.State
	s := showing{
		team: w.thread.team, now: w.job.Now(), slow: w.slow,
		past: !w.busy() && len(state.Waiting) > 0, // the next turn begins at once
	}
	if state.Turn != nil {
		state.Asking = nil
	} else if state.Asking != nil {
		s.asking = &state.Asking.Question
	}
	p := living(session.ViewOf(state), s)
	if text := w.askedElsewhere(); text != "" {
		p.blocks = slices.Insert(p.blocks, 1, aside(mrkdwn(text, maxSection)[0]))
	}
	return p
}

// askedElsewhere says who asked for the turn, and where, when that was not in
// this thread; empty otherwise. What they wrote is not repeated: not everybody
// here may read it there.
func (w *work) askedElsewhere() string {
	turn := w.job.State.Turn
	if turn == nil || len(turn.Requests) == 0 || slices.ContainsFunc(turn.Requests, w.here) {
		return ""
	}
	first, where := turn.Requests[0], "elsewhere"
	if pr := w.job.State.PR; pr != nil && first.Thread.Platform == w.job.State.Repo.Platform {
		where = fmt.Sprintf("on pull request #%d", pr.Number)
	}
	return fmt.Sprintf("Asked %s by %s", where, quoted(cmp.Or(first.By.Login, "somebody"), maxName))
}

// busy: a turn has begun and not ended.
func (w *work) busy() bool {
	turn := w.job.State.Turn
	return turn != nil && turn.Stage != session.Ended
}
