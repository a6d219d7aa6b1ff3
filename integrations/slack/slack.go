// Package slack is ship's Slack integration, both ways. Receiver verifies and
// decodes what Slack posts, and Socket fetches the same over connections of its
// own where Slack cannot reach this ship; Performer does the effects that are
// decided for Slack; Recovery reads back what was said while nobody listened.
//
// A session that begins here is named after its thread,
// "sl.<team>.<channel>.<root message>", so that routing needs no look-up. A
// slash command is in no thread yet: see command.go. What is opaque to the rest
// of ship, the keys of threads, the refs of requests and those of voices, is
// made and read in key.go and shown.go only.
//
// Slack knows no key that makes a repeated post harmless. Every message of ours
// carries the id of the effect that it was decided by, in its metadata, and
// whoever cannot be sure whether it was posted looks for that first.
package slack

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"ship/bot"
	"ship/session"
)

// Platform is the name of this integration in threads, effects and metrics.
const Platform = "slack"

// DefaultAPIURL is where Slack's own API is, for Settings.APIURL.
const DefaultAPIURL = "https://slack.com/api/"

// Linker finds threads on other platforms that a text names, such as the issue
// behind an address.
type Linker interface {
	// Link returns what is named, nothing if there is nothing that ship can see,
	// and what it found before an error along with that. It may be asked again,
	// and asks the other platform. who is who wrote the text: what they may not
	// read is not described.
	Link(ctx context.Context, text string, who bot.Asker) ([]bot.Link, error)
}

// Config is what the integration is made from.
type Config struct {
	Settings
	// Gate says who may ask for what.
	Gate *bot.Gate
	// Vault and Quota are shared by all gateways.
	Vault session.Vault
	Quota session.Quota
	// Inbox takes what slash commands lead to, what Socket Mode brings and what
	// was missed.
	Inbox session.Inbox
	// Archive is where threads that are open are looked up; only Recover needs
	// it.
	Archive session.Archive
	// Links finds what a request names elsewhere; may be nil.
	Links Linker
	// Heard is told what became of each envelope of Socket Mode; may be nil.
	Heard func(event, outcome string, took time.Duration)
	// Transport carries every request; nil: http.DefaultTransport.
	Transport http.RoundTripper
	Logger    *slog.Logger
}

// Integration is Slack, ready for use.
type Integration struct {
	*Performer
	*Recovery
	// Receiver is nil without a signing secret, and Socket without an app-level
	// token. One of them is there.
	Receiver *Receiver
	Socket   *Socket
}

// New checks the configuration and returns the integration. It speaks with
// nobody yet.
func New(c Config) (*Integration, error) {
	if c.Gate == nil || c.Quota == nil || c.Vault == nil || c.Inbox == nil {
		return nil, errors.New("slack: nothing to ask who may command, or to keep anything in")
	}
	c.APIURL = cmp.Or(c.APIURL, DefaultAPIURL)
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	app := newApp(c)
	i := &Integration{
		Performer: newPerformer(app, c),
		Recovery:  newRecovery(app, c),
	}
	var err error
	if len(c.SigningSecret) > 0 {
		if i.Receiver, err = NewReceiver(ReceiverConfig{Secrets: c.SigningSecret.Reveal(), OpenThreads: c.OpenThreads(), Logger: c.Logger}); err != nil {
			return nil, err
		}
	}
	if c.SocketMode() {
		if i.Socket, err = newSocket(socketConfig{
			AppToken: c.AppToken, APIURL: c.APIURL, Connections: c.Connections, OpenThreads: c.OpenThreads(), Inbox: c.Inbox,
			Heard: c.Heard, Reconnected: i.catchUp, Transport: c.Transport, Logger: c.Logger,
		}); err != nil {
			return nil, err
		}
	}
	return i, nil
}
