package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"ship/bot"
	"ship/session"
)

// What became of a delivery: the closed list behind Received.Outcome.
const (
	outcomeAccepted      = "accepted"
	outcomeAnswered      = "answered at once"
	outcomeChallenge     = "challenge answered"
	outcomeIgnoredEvent  = "ignored event"
	outcomeIgnoredAction = "ignored action"
	outcomeLink          = "link opened"
	outcomeOwn           = "own output"
	outcomeBot           = "another bot"
	outcomeSubtype       = "not spoken"
	outcomeEdited        = "mentioned by an edit"
	outcomeUnaddressed   = "not addressed"
	outcomeReply         = "reply without a mention"
	outcomeUnusable      = "unusable"
	outcomeLimited       = "events held back"
	outcomeRevoked       = "access revoked"
)

// Types of deliveries and events.
const (
	typeEvent     = "event_callback"
	typeChallenge = "url_verification"
	typeLimited   = "app_rate_limited"
	typeCommand   = "slash_command"

	eventMention     = "app_mention"
	eventMessage     = "message"
	eventStopped     = "agent_session_stopped"
	eventUninstalled = "app_uninstalled"
	eventRevoked     = "tokens_revoked"
)

// errUnusable: it is of a kind that is for us, but lacks what that needs. To
// have it sent again would not help, so it is taken all the same.
var errUnusable = errors.New("something is missing")

// ReceiverConfig is what a Receiver is made from.
type ReceiverConfig struct {
	// Secrets sign what Slack posts. All are accepted, so that they can be
	// rotated.
	Secrets []string
	// OpenThreads: what people reply in a thread that has a session is for ship,
	// whether or not they mention it.
	OpenThreads bool
	// Logger gets a line for what an operator should know; nil discards.
	Logger *slog.Logger
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Receiver is the way in over HTTP: events, slash commands, buttons and
// shortcuts alike. It implements bot.Receiver.
type Receiver struct {
	verifier verifier
	reader   reader
}

var _ bot.Receiver = (*Receiver)(nil)

// NewReceiver returns a Receiver for what the app is sent. It refuses to work
// without a secret, or with an empty one.
func NewReceiver(c ReceiverConfig) (*Receiver, error) {
	v, err := newVerifier(c.Secrets)
	if err != nil {
		return nil, err
	}
	r := &Receiver{verifier: v, reader: newReader(c.Logger, c.Now)}
	r.reader.open = c.OpenThreads
	return r, nil
}

// Receive verifies a delivery and decodes what ship needs of it. It wraps
// bot.ErrForged, bot.ErrStale or bot.ErrMalformed. What is known to be of no
// use is no error, for Slack would send it again, and switch off the
// subscription of an app that refuses too much. Receiving one twice leads to
// the same.
func (r *Receiver) Receive(ctx context.Context, header http.Header, body []byte) (bot.Received, error) {
	if err := r.verifier.verify(header, body, r.reader.now()); err != nil {
		if errors.Is(err, bot.ErrStale) {
			// A repetition is believed to be signed anew. If that is wrong, it
			// shows here.
			r.reader.log.WarnContext(ctx, "genuine delivery refused as too old",
				"retry", header.Get(headerRetry), "reason", header.Get(headerRetryReason), "err", err)
		}
		return bot.Received{}, fmt.Errorf("slack: %w", err)
	}
	received, err := r.reader.posted(ctx, body)
	if err != nil {
		return bot.Received{}, fmt.Errorf("slack: %w", err)
	}
	return received, nil
}

// reader decodes what is known to come from Slack, whichever way.
type reader struct {
	log *slog.Logger
	now func() time.Time
	// open: see ReceiverConfig.OpenThreads.
	open bool
}

func newReader(log *slog.Logger, now func() time.Time) reader {
	r := reader{log: log, now: now}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.now == nil {
		r.now = time.Now
	}
	return r
}

// posted reads what came over HTTP: events as JSON, everything else as a form,
// in which interactions are JSON again.
func (r reader) posted(ctx context.Context, body []byte) (bot.Received, error) {
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return r.event(ctx, body)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return bot.Received{}, fmt.Errorf("form: %w", bot.ErrMalformed)
	}
	switch {
	case form.Has("payload"):
		return r.interaction(ctx, []byte(form.Get("payload")))
	case form.Has("command"):
		return r.command(ctx, commandFrom(form)), nil
	case form.Has("ssl_check"):
		return bot.Received{Event: typeCommand, Outcome: outcomeIgnoredAction, Answer: new("")}, nil
	}
	return bot.Received{}, fmt.Errorf("form without a purpose: %w", bot.ErrMalformed)
}

// event reads what the Events API sends.
func (r reader) event(ctx context.Context, body []byte) (bot.Received, error) {
	e, err := decode[envelope](body)
	if err != nil {
		return bot.Received{}, err
	}
	switch e.Type {
	case typeChallenge:
		return bot.Received{Event: e.Type, Outcome: outcomeChallenge, Answer: &e.Challenge}, nil
	case typeLimited:
		r.log.WarnContext(ctx, "slack held events back, because there were too many",
			"team", e.Team, "minute", time.Unix(e.Limited, 0).UTC())
		return bot.Received{Event: e.Type, Outcome: outcomeLimited}, nil
	case typeEvent:
		return r.happened(ctx, e), nil
	}
	return bot.Received{Event: "other", Outcome: outcomeIgnoredEvent}, nil
}

// happened reads one event of a workspace.
func (r reader) happened(ctx context.Context, e envelope) bot.Received {
	received := bot.Received{Event: e.Event.Type, Delivery: e.ID}
	var a act
	var err error
	switch e.Event.Type {
	case eventMention, eventMessage:
		a, received.Outcome, err = written(e, r.open)
	case eventStopped:
		a, err = stopped(e)
	case eventUninstalled, eventRevoked:
		received.Outcome = r.revoked(ctx, e)
	default:
		received.Event, received.Outcome = "other", outcomeIgnoredEvent
	}
	return r.deliver(ctx, received, a, err)
}

// revoked: there is nothing to forget, as the token is in the settings. Tokens
// of people are none of ours.
func (r reader) revoked(ctx context.Context, e envelope) string {
	if e.Event.Type == eventRevoked && len(e.Event.Tokens.Bot) == 0 {
		return outcomeIgnoredEvent
	}
	r.log.ErrorContext(ctx, "slack took back the access of the app: install it again and set its new token",
		"team", e.team(), "event", e.Event.Type)
	return outcomeRevoked
}

// command reads a slash command. Without an answer people see nothing.
func (r reader) command(ctx context.Context, c command) bot.Received {
	received := bot.Received{Event: typeCommand, Delivery: triggered(c.Trigger)}
	a, say, err := begun(c, r.now())
	received.Answer = &say
	if a.id == "" {
		received.Outcome = outcomeAnswered
	}
	return r.deliver(ctx, received, a, err)
}

// interaction reads what was pressed. The body of the answer would mean
// something, and in a dialog break it, so it is empty.
func (r reader) interaction(ctx context.Context, body []byte) (bot.Received, error) {
	i, err := decode[interaction](body)
	if err != nil {
		return bot.Received{}, err
	}
	received := bot.Received{Event: "interaction", Delivery: triggered(i.Trigger), Answer: new("")}
	if i.Type == interactionButton {
		received.Event = i.Type
	}
	a, ignored, err := interacted(i)
	received.Outcome = ignored
	return r.deliver(ctx, received, a, err), nil
}

// deliver adds the delivery of an act, if it is one.
func (r reader) deliver(ctx context.Context, received bot.Received, a act, err error) bot.Received {
	switch {
	case err != nil:
		r.log.WarnContext(ctx, "delivery cannot be used", "event", received.Event, "delivery", received.Delivery, "err", err)
		received.Outcome = outcomeUnusable
	case received.Outcome == "":
		received.Outcome = outcomeAccepted
		received.Deliveries = []session.Delivery{a.deliver(received.Delivery)}
	}
	return received
}
