package linear

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"ship/bot"
	"ship/session"
)

// withdraw makes deliveries of a webhook that names an issue: its sessions lost
// their work, or may have, which asking the issue will tell. Mentions and
// assignments come as an AgentSessionEvent too, and are left to that.
func (r *Receiver) withdraw(ctx context.Context, p payload, sent time.Time, to *bot.Received) error {
	w := withdrawal{about: p.Notification, at: cmp.Or(moment(p.Created), sent), delivery: to.Delivery}
	switch p.Action {
	case "issueUnassignedFromYou":
	case "issueStatusChanged":
		w.ref.status = true
	default:
		to.Outcome = outcomeIgnoredAction
		return nil
	}
	switch {
	case !validID.MatchString(p.Organization), !validID.MatchString(w.about.ID), !validID.MatchString(w.about.Issue):
		return fmt.Errorf("notification: %w", bot.ErrMalformed)
	case w.about.ActorID != "" && w.about.ActorID == p.app():
		to.Outcome = outcomeOwn
		return nil
	}
	sessions, err := r.rolls.of(ctx, p.Organization, w.about.Issue)
	if err != nil {
		return err
	}
	to.Outcome = outcomeNoSession
	for _, s := range sessions {
		if s.began().After(w.at) { // the webhook is late, and the work was given to us again
			continue
		}
		to.Outcome = outcomeAccepted
		to.Deliveries = append(to.Deliveries, w.deliver(thread{p.Organization, s.Session, w.about.Issue}))
	}
	return nil
}

// withdrawal is that an issue was taken away, or its status changed.
type withdrawal struct {
	about    notification
	ref      ref
	at       time.Time
	delivery string
}

// deliver tells one session. The webhook's ids are shared by all of the issue's
// sessions, so the keys name this one.
func (w withdrawal) deliver(t thread) session.Delivery {
	by, err := w.about.Actor.person(w.about.ActorID)
	if err != nil { // it is not for us to stop because of who says so
		by = session.Person{Login: automation}
	}
	return session.Delivery{
		Session: t.id(),
		Keys:    []string{"ln:" + w.delivery + ":" + t.agentSession, "ln:notification:" + w.about.ID + ":" + t.agentSession},
		Keep:    keepKeys,
		Event: session.Event{V: session.EventVersion, Kind: session.Asked, Delivery: w.delivery, Request: &session.Request{
			ID: "ln-n" + w.about.ID + "-" + t.agentSession, Thread: t.session(), By: by, Verb: session.Withdraw,
			Ref: w.ref.String(), At: w.at,
		}},
	}
}

// revoked: the workspace took its access back, unless the webhook is so late
// that it got it again. What runs there ends with its next effect.
func (r *Receiver) revoked(ctx context.Context, p payload, sent time.Time, to *bot.Received) error {
	if p.Action != "revoked" {
		to.Outcome = outcomeIgnoredAction
		return nil
	}
	if !validID.MatchString(p.Organization) {
		return fmt.Errorf("organization: %w", bot.ErrMalformed)
	}
	done, err := r.tokens.Revoke(ctx, p.Organization, sent)
	if err != nil {
		return err
	}
	if !done {
		to.Outcome = outcomeSuperseded
		r.log.WarnContext(ctx, "linear told late of access that was revoked, and is granted again since",
			"organization", p.Organization, "delivery", to.Delivery, "sent", sent)
		return nil
	}
	to.Outcome = outcomeRevoked
	r.log.ErrorContext(ctx, "a workspace of linear took its access back: install the app there again",
		"organization", p.Organization, "delivery", to.Delivery, "sent", sent)
	return nil
}

// accessChanged: other teams are open to us now. Whoever works for one that is
// not any more finds out with the next effect.
func (r *Receiver) accessChanged(ctx context.Context, p payload, to *bot.Received) {
	if p.Action != "teamAccessChanged" {
		to.Outcome = outcomeIgnoredAction
		return
	}
	to.Outcome = outcomeAccess
	r.log.WarnContext(ctx, "a workspace of linear changed which teams the app may see",
		"organization", p.Organization, "delivery", to.Delivery, "added", len(p.AddedTeams), "removed", len(p.RemovedTeams))
}
