package linear

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"ship/bot"
	"ship/session"
)

// What became of a webhook: the closed list behind Received.Outcome.
const (
	outcomeAccepted      = "accepted"
	outcomeIgnoredEvent  = "ignored event"
	outcomeIgnoredAction = "ignored action"
	outcomeNoPrompt      = "not a prompt"
	outcomeOwn           = "own output"
	outcomeNoSession     = "no session on that issue"
	outcomeRevoked       = "access revoked"
	outcomeSuperseded    = "access revoked, but granted since"
	outcomeAccess        = "team access changed"
)

// Types of webhooks.
const (
	eventSession       = "AgentSessionEvent"
	eventNotification  = "AppUserNotification"
	eventPermission    = "PermissionChange"
	eventApp           = "OAuthApp"
	eventAuthorization = "OAuthAuthorization"
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
	// Vault remembers which agent sessions an issue has.
	Vault session.Vault
	// Tokens are told of access that was taken away.
	Tokens *Tokens
	// Logger gets a line when the access to a workspace changes; nil discards.
	Logger *slog.Logger
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Receiver is the way in. It implements bot.Receiver.
type Receiver struct {
	verifier verifier
	rolls    rolls
	tokens   *Tokens
	log      *slog.Logger
	now      func() time.Time
}

var _ bot.Receiver = (*Receiver)(nil)

// NewReceiver returns a Receiver for the app's webhooks. It refuses to work
// without a secret, or with an empty one.
func NewReceiver(c ReceiverConfig) (*Receiver, error) {
	v, err := newVerifier(c.Secrets)
	if err != nil {
		return nil, err
	}
	if c.Vault == nil || c.Tokens == nil {
		return nil, errors.New("linear: nothing to remember sessions and access with")
	}
	r := &Receiver{verifier: v, rolls: rolls{c.Vault}, tokens: c.Tokens, log: c.Logger, now: c.Now}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.now == nil {
		r.now = time.Now
	}
	return r, nil
}

// Receive verifies a webhook and decodes what ship needs of it. It wraps
// bot.ErrForged, bot.ErrMalformed or, when the vault is away,
// bot.ErrUnavailable, after which Linear sends the webhook again. Receiving one twice leads to the same.
//
// A webhook that is up to eight hours old is taken, for that is how late
// Linear's own repetitions are. Whoever replays a recorded one within that time
// finds its keys taken, which is why they are kept for longer.
func (r *Receiver) Receive(ctx context.Context, header http.Header, body []byte) (bot.Received, error) {
	if err := r.verifier.verify(header.Get(headerSignature), body); err != nil {
		return bot.Received{}, fmt.Errorf("linear: %w", err)
	}
	received, err := r.decide(ctx, header, body)
	if err != nil && !errors.Is(err, bot.ErrForged) && !errors.Is(err, bot.ErrMalformed) {
		err = fmt.Errorf("%w: %w", bot.ErrUnavailable, err)
	}
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
		err = r.prompt(ctx, p, sent, &received)
	case eventNotification:
		err = r.withdraw(ctx, p, sent, &received)
	case eventApp:
		err = r.revoked(ctx, p, sent, &received)
	case eventPermission:
		r.accessChanged(ctx, p, &received)
	case eventAuthorization:
		received.Outcome = outcomeIgnoredEvent
	default:
		received.Event, received.Outcome = "other", outcomeIgnoredEvent
	}
	if err != nil {
		return bot.Received{}, fmt.Errorf("%s: %w", p.Type, err)
	}
	return received, nil
}

// prompt makes a delivery of what somebody asked in an agent session. That
// the issue has this session is known before anything can follow from it.
func (r *Receiver) prompt(ctx context.Context, p payload, sent time.Time, to *bot.Received) error {
	var a act
	var err error
	t := thread{p.Organization, p.Session.ID, p.Session.Issue}
	switch p.Action {
	case "created":
		a, to.Outcome, err = created(p, t)
	case "prompted":
		a, to.Outcome, err = prompted(p, t)
	default:
		to.Outcome = outcomeIgnoredAction
	}
	if err != nil || to.Outcome != "" {
		return err
	}
	if !t.valid() {
		return fmt.Errorf("agent session: %w", bot.ErrMalformed)
	}
	if err := r.tokens.Heard(ctx, t.organization, sent); err != nil {
		return err
	}
	if err := r.rolls.add(ctx, t, cmp.Or(moment(p.Session.Created), sent)); err != nil {
		return err
	}
	a.at = moment(p.Created)
	to.Outcome, to.Deliveries = outcomeAccepted, []session.Delivery{a.deliver(to.Delivery)}
	return nil
}
