package github

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strconv"

	"ship/bot"
	"ship/session"
)

// What became of a webhook: the closed list behind Received.Outcome.
const (
	outcomeAccepted       = "accepted"
	outcomePing           = "ping"
	outcomeIgnoredEvent   = "ignored event"
	outcomeIgnoredAction  = "ignored action"
	outcomeNoCommand      = "not a command"
	outcomeOwn            = "own output"
	outcomeBot            = "from a bot"
	outcomeNoInstallation = "no installation"
	outcomeNotOurs        = "not ours"
)

// Headers of a delivery.
const (
	headerEvent     = "X-Github-Event"
	headerDelivery  = "X-Github-Delivery"
	headerSignature = "X-Hub-Signature-256"
	headerTarget    = "X-Github-Hook-Installation-Target-Id"
)

// validGUID is what X-GitHub-Delivery may look like: it becomes a key.
var validGUID = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// Receiver is the way in. It implements bot.Receiver.
type Receiver struct {
	verifier verifier
	appID    int64
	// noreply is the host of the addresses that GitHub gives people who hide
	// theirs.
	noreply string
}

var _ bot.Receiver = (*Receiver)(nil)

// NewReceiver returns a Receiver for the app's webhooks, signed with any of
// the secrets. It refuses to work without a secret, or with an empty one.
func NewReceiver(appID int64, webURL string, secrets []string) (*Receiver, error) {
	v, err := newVerifier(secrets)
	if err != nil {
		return nil, err
	}
	return &Receiver{verifier: v, appID: appID, noreply: noreplyHost(webURL)}, nil
}

// Receive verifies a webhook and decodes what ship needs of it. An event that
// is not for us costs its signature only. It wraps bot.ErrForged or
// bot.ErrMalformed.
func (r *Receiver) Receive(_ context.Context, header http.Header, body []byte) (bot.Received, error) {
	if err := r.verifier.verify(header.Get(headerSignature), body); err != nil {
		return bot.Received{}, fmt.Errorf("github: %w", err)
	}
	if err := r.checkHeader(header); err != nil {
		return bot.Received{}, fmt.Errorf("github: %w", err)
	}
	event := header.Get(headerEvent)
	received := bot.Received{Event: event, Delivery: header.Get(headerDelivery)}
	trigger := triggerOf(event)
	if trigger == nil {
		received.Event, received.Outcome = "other", outcomeIgnoredEvent
		return received, nil
	}
	p, ok := cut(body)
	if !ok {
		return bot.Received{}, fmt.Errorf("github: %s: %w", event, bot.ErrMalformed)
	}
	var err error
	if received.Outcome, received.Deliveries, err = trigger(r, received.Delivery, p); err != nil {
		return bot.Received{}, fmt.Errorf("github: %s: %w", event, err)
	}
	return received, nil
}

// checkHeader refuses what is signed and still not one of our app's webhooks
// as they are set up.
func (r *Receiver) checkHeader(h http.Header) error {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return fmt.Errorf("content type %q, set the webhook to application/json: %w", h.Get("Content-Type"), bot.ErrMalformed)
	}
	if !validGUID.MatchString(h.Get(headerDelivery)) {
		return fmt.Errorf("no delivery id: %w", bot.ErrMalformed)
	}
	if target := h.Get(headerTarget); target != "" && target != strconv.FormatInt(r.appID, 10) {
		return fmt.Errorf("sent for app %q: %w", target, bot.ErrMalformed)
	}
	return nil
}

// trigger makes deliveries of one kind of event, and says what became of it.
type trigger func(r *Receiver, guid string, p payload) (string, []session.Delivery, error)

// triggerOf returns what looks into an event, nil for those that nothing
// follows from.
func triggerOf(event string) trigger {
	switch event {
	case "ping":
		return ping
	case "issue_comment":
		return issueComment
	case "pull_request_review_comment":
		return reviewComment
	case "pull_request_review":
		return review
	case "issues":
		return labeled
	case "check_run":
		return checkRun
	case "pull_request":
		return pullClosed
	}
	return nil
}

func ping(*Receiver, string, payload) (string, []session.Delivery, error) {
	return outcomePing, nil, nil
}
