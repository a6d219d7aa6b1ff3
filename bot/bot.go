// Package bot is the front door: the HTTP server, the /ship grammar, and the
// words that people read. Integrations verify and decode; bot makes what they
// decoded durable, and answers.
package bot

import (
	"context"
	"errors"
	"net/http"

	"ship/session"
)

// What a Receiver refuses a delivery with. Each becomes one plain line and a
// status of its own; anything else is a 500.
var (
	// ErrForged: no signature, or none of the secrets made it. 401.
	ErrForged = errors.New("signature does not match")
	// ErrStale: signed, but so long ago that somebody may be repeating it. 401.
	ErrStale = errors.New("sent too long ago")
	// ErrMalformed: signed, but not what the platform sends. 400.
	ErrMalformed = errors.New("body is malformed")
	// ErrUnavailable: what has to be remembered of it cannot be now. 503.
	ErrUnavailable = errors.New("cannot take it now, send it again")
)

// Receiver is one platform's way in. It verifies over the raw bytes, decodes
// only what is needed, and does nothing slow: no network, no disk.
type Receiver interface {
	// Receive turns one webhook into deliveries, none for what is not for us.
	// It wraps ErrForged, ErrStale, ErrMalformed or ErrUnavailable, and is done
	// when ctx is.
	Receive(ctx context.Context, header http.Header, body []byte) (Received, error)
}

// Received is what a webhook amounted to.
type Received struct {
	// Event and Outcome label the metric: both from a small fixed set, such as
	// "issue_comment" and "accepted", "own output", "not a command".
	Event   string
	Outcome string
	// Delivery is the platform's delivery id, for the log.
	Delivery   string
	Deliveries []session.Delivery
	// Answer is the whole body of the answer, once everything is in the inbox,
	// where the platform reads it or shows it to somebody. It may be empty. Nil:
	// one plain line says what became of the webhook.
	Answer *string
}

// Command is what one text asks for.
type Command struct {
	Verb session.Verb
	// Text is the instruction, or the argument of model and budget, or for
	// Unclear the sentence that says what was wrong.
	Text string
	// Options: [repo=… branch=… model=…].
	Repo, Branch, Model string
}
