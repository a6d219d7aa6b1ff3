package slack

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"time"

	"ship/bot"
)

// What became of an envelope that its reader did not decide on, in the front
// door's words.
const (
	outcomeDuplicate   = "duplicate"
	outcomeUnknown     = "no such session"
	outcomeMalformed   = "malformed"
	outcomeUnavailable = "unavailable"
	outcomeBroken      = "broken"
)

// frame is what comes over a Socket Mode connection: an envelope, or a word
// about the connection itself.
type frame struct {
	Type    string          `json:"type"`
	ID      string          `json:"envelope_id"`
	Payload json.RawMessage `json:"payload"`
	// Accepts: the acknowledgement may say something.
	Accepts bool `json:"accepts_response_payload"`
	// Reason of a disconnect.
	Reason string `json:"reason"`
}

// ack says that an envelope is taken. One of 20 KB is dropped without a word,
// and what is said here is far shorter.
type ack struct {
	ID      string  `json:"envelope_id"`
	Payload *notice `json:"payload,omitempty"`
}

// notice is shown to who wrote a slash command, and to nobody else.
type notice struct {
	Text string `json:"text"`
}

func acknowledge(f frame, received bot.Received) ack {
	a := ack{ID: f.ID}
	if f.Accepts && received.Answer != nil && *received.Answer != "" {
		a.Payload = &notice{*received.Answer}
	}
	return a
}

// fetched reads an envelope: what would be posted, but never as a form.
func (r reader) fetched(ctx context.Context, f frame) (bot.Received, error) {
	switch f.Type {
	case "events_api":
		return r.event(ctx, f.Payload)
	case "interactive":
		return r.interaction(ctx, f.Payload)
	case "slash_commands":
		c, err := decode[command](f.Payload)
		if err != nil {
			return bot.Received{Event: typeCommand}, err
		}
		return r.command(ctx, c), nil
	}
	return bot.Received{Event: "other", Outcome: outcomeIgnoredEvent}, nil
}

// take brings an envelope into the inbox, and tells whether it is to be
// acknowledged. One that is not, Slack sends again.
func (s *Socket) take(ctx context.Context, f frame) (a ack, taken bool) {
	start := time.Now()
	received := bot.Received{Outcome: outcomeBroken}
	defer func() {
		if p := recover(); p != nil {
			s.reader.log.ErrorContext(ctx, "envelope panicked", "envelope", f.ID, "panic", p, "stack", string(debug.Stack()))
		}
		s.cfg.Heard(received.Event, received.Outcome, time.Since(start))
	}()
	received, err := s.reader.fetched(ctx, f)
	switch {
	case errors.Is(err, bot.ErrMalformed): // and so it would be again
		received.Outcome = outcomeMalformed
		s.reader.log.WarnContext(ctx, "envelope is malformed", "envelope", f.ID, "type", f.Type)
		return acknowledge(f, received), true
	case err == nil:
		err = s.keep(ctx, &received)
	}
	if err != nil {
		s.reader.log.WarnContext(ctx, "envelope not taken", "envelope", f.ID, "delivery", received.Delivery, "err", err)
		return ack{}, false
	}
	return acknowledge(f, received), true
}

// keep appends all deliveries of an envelope. When ship ends meanwhile, that
// is finished all the same.
func (s *Socket) keep(ctx context.Context, received *bot.Received) error {
	if len(received.Deliveries) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Append)
	defer cancel()
	outcome := outcomeDuplicate
	for _, d := range received.Deliveries {
		receipt, err := s.cfg.Inbox.Append(ctx, d)
		if err != nil {
			received.Outcome = outcomeUnavailable
			return err
		}
		switch {
		case receipt.Unknown:
			outcome = outcomeUnknown
		case !receipt.Duplicate:
			outcome = outcomeAccepted
		}
	}
	received.Outcome = outcome
	return nil
}
