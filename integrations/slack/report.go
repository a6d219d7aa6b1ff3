package slack

import (
	"context"
	"slices"
	"time"

	"ship/session"
)

const (
	// least is how often Slack lets one message be changed.
	least = 3 * time.Second
	// endWaits is for how long whoever waits for the next turn waits for the end
	// of the last one to be shown. Nobody can show that later.
	endWaits = 30 * time.Second
	// starving is for how long a message of a turn that runs may stay as it is
	// for want of room. It is more than twice the longest pace of a turn at work.
	starving = 75 * time.Second
)

// Pace is how often a turn that has been running for a while is reported on. A
// message tells how long it has been, so it changes when nothing else does.
// The longer it takes, the less people watch.
func Pace(running time.Duration) session.Pace {
	p := session.Pace{Every: 30 * time.Second, Least: least, Silence: time.Minute}
	switch {
	case running < 2*time.Minute:
		p.Every = 4 * time.Second
	case running < 10*time.Minute:
		p.Every = 10 * time.Second
	case running > time.Hour:
		p.Silence = 5 * time.Minute
	}
	return p
}

// report brings the living message up to date, and Slack's own display of what
// agents are up to. What there is no room for now is owned up to, so that
// another report follows soon: many sessions share the room, and whoever missed
// it once would miss it again, at the same pace. Performed twice, it shows the
// same.
func (w *work) report(ctx context.Context) (session.Performed, error) {
	digest := session.ViewOf(w.job.State).Digest()
	has, err := w.show(ctx, parseShown(w.voice().Ref))
	if err != nil && !noRoom(err) {
		return session.Performed{}, err
	}
	later := w.status(ctx)
	if ctx.Err() != nil {
		return session.Performed{}, context.Cause(ctx)
	}
	if (err != nil || later != nil) && !w.overdue() {
		digest = ""
	}
	return session.Performed{Ref: has.String(), Shown: digest}, nil
}

// overdue: somebody waits for the next turn, and has waited long enough for the
// end of this one to be shown.
func (w *work) overdue() bool {
	s := w.job.State
	return !w.busy() && len(s.Waiting) > 0 && s.Turn != nil && w.job.Now().Sub(s.Turn.Finished) > endWaits
}

// unchangeable are the answers of a workspace that does not let us change the
// message, now or later.
var unchangeable = []string{"cant_update_message", "edit_window_closed"}

// show brings the living message up to date, or posts it if there is none for
// this turn, and returns which one it is.
func (w *work) show(ctx context.Context, has shown) (shown, error) {
	turn := w.job.State.Turns
	switch {
	case has.turn == settled:
		return has, nil
	case has.ts == "", has.turn != turn && !has.unbound():
		return w.restore(ctx, has)
	}
	card := w.card()
	if w.looks(card) {
		return has, nil
	}
	if wait := w.tooEarly(); wait > 0 {
		return has, &notYet{wait: wait}
	}
	has.turn = turn
	err := w.update(ctx, w.urgency(), has.ts, card)
	switch {
	case code(err) == "message_not_found":
		return w.replace(ctx, has)
	case slices.Contains(unchangeable, code(err)):
		return shown{settled, has.ts}, nil
	case err != nil:
		return has, err
	}
	w.remember(card)
	return has, nil
}

// urgency is that of progress, which makes way, until the turn is over. Where
// many sessions share the room, one that never got any for long comes first for
// once, so that no message looks dead.
func (w *work) urgency() Priority {
	since := w.recall.of(w.thread, w.job.Lease.Epoch).since
	starved := !since.IsZero() && w.job.Now().Sub(since) > starving
	if w.busy() && !starved {
		return Moving
	}
	return Thinking
}

// looks: the message is like that already. At a turn's beginning, and after a
// sweep, nobody is sure of it.
func (w *work) looks(card post) bool {
	return w.voice().Shown != "" && w.recall.of(w.thread, w.job.Lease.Epoch).living == card.looks()
}

func (w *work) remember(card post) {
	m := w.recall.of(w.thread, w.job.Lease.Epoch)
	m.living, m.since = card.looks(), w.job.Now()
	w.recall.keep(w.thread, m)
}

// tooEarly is how long it takes until the message may be changed, if it is known
// when that was last done.
func (w *work) tooEarly() time.Duration {
	v := w.voice()
	if v.Shown == "" {
		return 0
	}
	return v.At.Add(least).Sub(w.job.Now())
}

// restore posts the living message of a turn that is not known to have one. It
// may have one all the same, that was forgotten.
func (w *work) restore(ctx context.Context, has shown) (shown, error) {
	look := *w
	look.job.Repeat = true
	if turn := w.job.State.Turn; turn != nil && turn.Started.Before(look.effect.Since) {
		look.effect.Since = turn.Started
	}
	return look.postLiving(ctx, has, w.livingID())
}

// replace posts the living message anew, once, because somebody deleted it: a
// second time they mean it. Of a turn that is over the answer tells.
func (w *work) replace(ctx context.Context, has shown) (shown, error) {
	if !w.busy() {
		return has, nil
	}
	m := w.recall.of(w.thread, w.job.Lease.Epoch)
	if m.replaced == w.job.State.Turns {
		return shown{settled, has.ts}, nil
	}
	m.replaced = w.job.State.Turns
	w.recall.keep(w.thread, m)
	return w.postLiving(ctx, has, w.livingID()+"/again")
}

func (w *work) postLiving(ctx context.Context, has shown, id string) (shown, error) {
	card := w.card()
	ts, err := w.post(ctx, Thinking, id, card)
	if err != nil {
		return has, err
	}
	w.remember(card)
	return shown{w.job.State.Turns, ts}, nil
}
