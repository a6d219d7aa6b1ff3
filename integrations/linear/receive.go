package linear

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"ship/bot"
	"ship/session"
)

// What became of a webhook: with the kinds of notes, the closed list behind
// Received.Outcome.
const (
	outcomeAccepted      = "accepted"
	outcomeIgnoredEvent  = "ignored event"
	outcomeIgnoredAction = "ignored action"
	outcomeNoPrompt      = "not a prompt"
	outcomeOwn           = "own output"
)

// Types of webhooks.
const (
	eventSession      = "AgentSessionEvent"
	eventNotification = "AppUserNotification"
	eventPermission   = "PermissionChange"
	eventApp          = "OAuthApp"
)

// Headers of a delivery.
const (
	headerDelivery  = "Linear-Delivery"
	headerSignature = "Linear-Signature"
	headerTimestamp = "Linear-Timestamp"
)

// ReceiverConfig is what a Receiver is made from.
type ReceiverConfig struct {
	// Secrets sign the webhooks. All are accepted, so that they can be rotated.
	Secrets []string
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Notes takes what is about no single session; nil: only the outcome, and
	// so the metric, tells of it.
	Notes Notebook
}

// Receiver is the way in. It implements bot.Receiver.
type Receiver struct {
	verifier verifier
	now      func() time.Time
	notes    Notebook
}

var _ bot.Receiver = (*Receiver)(nil)

// NewReceiver returns a Receiver for the app's webhooks. It refuses to work
// without a secret, or with an empty one.
func NewReceiver(c ReceiverConfig) (*Receiver, error) {
	v, err := newVerifier(c.Secrets)
	if err != nil {
		return nil, err
	}
	r := &Receiver{verifier: v, now: c.Now, notes: c.Notes}
	if r.now == nil {
		r.now = time.Now
	}
	return r, nil
}

// Receive verifies a webhook and decodes what ship needs of it. It wraps
// bot.ErrForged or bot.ErrMalformed; any other error is the Notebook's.
//
// A webhook that is up to eight hours old is taken, for that is how late
// Linear's own repetitions are. Whoever replays a recorded one within that time
// finds its keys taken, which is why they are kept for longer.
func (r *Receiver) Receive(ctx context.Context, header http.Header, body []byte) (bot.Received, error) {
	if err := r.verifier.verify(header.Get(headerSignature), body); err != nil {
		return bot.Received{}, fmt.Errorf("linear: %w", err)
	}
	received, err := r.decide(ctx, header, body)
	if err != nil {
		return bot.Received{}, fmt.Errorf("linear: %w", err)
	}
	return received, nil
}

func (r *Receiver) decide(ctx context.Context, header http.Header, body []byte) (bot.Received, error) {
	p, err := decode(body)
	if err != nil {
		return bot.Received{}, err
	}
	sent, err := sentAt(p.Sent, header.Get(headerTimestamp))
	if err != nil {
		return bot.Received{}, err
	}
	if err := fresh(sent, r.now()); err != nil {
		return bot.Received{}, err
	}
	received := bot.Received{Event: p.Type, Delivery: header.Get(headerDelivery)}
	if !validID.MatchString(received.Delivery) {
		return bot.Received{}, fmt.Errorf("no delivery id: %w", bot.ErrMalformed)
	}
	switch p.Type {
	case eventSession:
		received.Outcome, received.Deliveries, err = prompt(p, received.Delivery)
	case eventNotification, eventPermission, eventApp:
		received.Outcome, err = r.note(ctx, p, received.Delivery, sent)
	default:
		received.Event, received.Outcome = "other", outcomeIgnoredEvent
	}
	if err != nil {
		return bot.Received{}, fmt.Errorf("%s: %w", p.Type, err)
	}
	return received, nil
}

func (r *Receiver) note(ctx context.Context, p payload, delivery string, sent time.Time) (string, error) {
	n, outcome, err := noteOf(p, delivery, sent)
	if err != nil || n == nil || r.notes == nil {
		return outcome, err
	}
	if err := r.notes.Note(ctx, *n); err != nil {
		return "", fmt.Errorf("note %s: %w", n.Kind, err)
	}
	return outcome, nil
}

// prompt makes a delivery of what somebody asked in an agent session.
func prompt(p payload, delivery string) (string, []session.Delivery, error) {
	var a act
	var ignored string
	var err error
	switch p.Action {
	case "created":
		a, ignored, err = created(p)
	case "prompted":
		a, ignored, err = prompted(p)
	default:
		ignored = outcomeIgnoredAction
	}
	if err != nil || ignored != "" {
		return ignored, nil, err
	}
	a.thread = thread{p.Organization, p.Session.ID, p.Session.Issue}
	if !a.thread.valid() {
		return "", nil, fmt.Errorf("agent session: %w", bot.ErrMalformed)
	}
	a.at = p.at()
	return outcomeAccepted, []session.Delivery{a.deliver(delivery)}, nil
}
