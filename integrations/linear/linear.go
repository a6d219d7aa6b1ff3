// Package linear is ship's Linear integration, both ways: Receiver verifies
// and decodes webhooks, Performer does the effects that are decided for
// Linear. Tokens keeps the access to each workspace, Governor shares out what
// Linear lets one credential do, and Transport brings the latter two under
// whatever speaks with Linear's API.
//
// A session that begins here is named after the agent session it lives in,
// "ln.<agent session>", so that routing a webhook needs no look-up. What is
// opaque to the rest of ship, the keys of threads and the refs of requests, is
// made and read in key.go only.
//
// Whatever is created on Linear carries the id of the effect that it was
// decided by, which was kept before. To create it twice is refused by Linear,
// and that refusal is the success of the first time.
package linear

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"

	"ship/bot"
	"ship/session"
)

// Platform is the name of this integration in threads, effects and metrics.
const Platform = "linear"

// Linear's own addresses, for Settings.APIURL and Settings.TokenURL.
const (
	DefaultAPIURL   = "https://api.linear.app/graphql"
	DefaultTokenURL = "https://api.linear.app/oauth/token"
)

// Config is what the integration is made from.
type Config struct {
	Settings
	// PublicURL is where browsers and Linear reach this ship.
	PublicURL string
	// Gate says who may ask for what.
	Gate *bot.Gate
	// Vault, Locker and Quota are shared by all gateways.
	Vault  session.Vault
	Locker session.Locker
	Quota  session.Quota
	// Inbox takes what was missed while ship was down; only Recover needs it.
	Inbox session.Inbox
	// Transport carries every request; nil: http.DefaultTransport.
	Transport http.RoundTripper
	// Logger gets a line when something about the access changes.
	Logger *slog.Logger
}

// Integration is Linear, ready for use.
type Integration struct {
	*Receiver
	*Performer
	*Recovery
	// Links finds the issues that a text on another platform names.
	Links *Linker
	// Pages let admins install the app, by their patterns for http.ServeMux;
	// nil unless they have to, and PublicURL is known.
	Pages map[string]http.Handler
}

// New checks the configuration and returns the integration. It speaks with
// nobody yet.
func New(c Config) (*Integration, error) {
	if c.Gate == nil || c.Quota == nil {
		return nil, errors.New("linear: nothing to ask who may command, or what may be spent")
	}
	c.APIURL = cmp.Or(c.APIURL, DefaultAPIURL)
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	settings := c.Tokens()
	settings.Vault, settings.Locker, settings.Transport, settings.Logger = c.Vault, c.Locker, c.Transport, c.Logger
	tokens, err := NewTokens(settings)
	if err != nil {
		return nil, err
	}
	receiver, err := NewReceiver(ReceiverConfig{Secrets: c.WebhookSecret.Reveal(), Vault: c.Vault, Tokens: tokens, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	pages, err := installPages(c, tokens)
	if err != nil {
		return nil, err
	}
	app, rolls := newApp(c, tokens), rolls{c.Vault}
	return &Integration{
		Receiver: receiver, Pages: pages, Links: &Linker{app: app},
		Performer: &Performer{app: app, gate: c.Gate, rolls: rolls},
		Recovery:  newRecovery(app, rolls, c.Inbox),
	}, nil
}
