// Package github is ship's GitHub integration, both ways: Receiver verifies
// and decodes webhooks, Performer does the effects that are decided for
// GitHub, and GitCredential mints what git needs to reach one repository. Host
// answers what sessions that began elsewhere ask of repositories and people.
//
// A session that begins here is named after the issue or pull request it
// lives on, "gh.<repository id>.<number>", so that routing a webhook needs no
// look-up. What is opaque to the rest of ship, the keys of threads and
// repositories and the refs of requests, is made and read in key.go only.
//
// GitHub has no idempotency keys. Whatever is posted therefore carries a
// hidden marker in its first line (check runs carry an external id), and what
// may have been posted before is looked for by that marker, and by its author,
// before it is posted again.
package github

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Platform is the name of this integration in threads, effects and metrics.
const Platform = "github"

// GitHub's own addresses, for Config.APIURL and Config.WebURL.
const (
	DefaultAPIURL = "https://api.github.com"
	DefaultWebURL = "https://github.com"
)

// createInterval is the least time between two content-creating requests of
// one installation, as GitHub's guidance on secondary rate limits asks for.
const createInterval = time.Second

// Config is what the integration is made from.
type Config struct {
	AppID int64
	// PrivateKey is the app's key as PEM text.
	PrivateKey string
	// WebhookSecrets are all accepted, so that they can be rotated.
	WebhookSecrets []string
	// APIURL and WebURL are without a trailing slash; empty: github.com's. For
	// GitHub Enterprise Server https://HOST/api/v3 and https://HOST.
	APIURL, WebURL string
	// PublicURL is where check runs link to while there is no better place.
	PublicURL string
	// Logger gets a line for each request, at the debug level.
	Logger *slog.Logger
	// Transport carries every request; nil: http.DefaultTransport.
	Transport http.RoundTripper
	// clock is what Transport learns, and signatures go by.
	clock *clock
	// Permission on the repository that a person needs, write or admin; empty:
	// write.
	Permission string
	// CreateInterval is the least time between two content-creating requests
	// of one installation. Zero: one second.
	CreateInterval time.Duration
}

// Integration is GitHub, ready for use.
type Integration struct {
	*Receiver
	*Performer
	*Credentials
	*Recovery
	*Host
}

// New checks the configuration and returns the integration. It speaks with
// nobody yet.
func New(c Config) (*Integration, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	receiver, err := NewReceiver(c.AppID, c.WebURL, c.WebhookSecrets)
	if err != nil {
		return nil, err
	}
	app, err := newApp(c)
	if err != nil {
		return nil, err
	}
	who := newPeople(c, app)
	return &Integration{
		Receiver:    receiver,
		Performer:   newPerformer(c, who),
		Credentials: newCredentials(c, app),
		Recovery:    &Recovery{app: app},
		Host:        newHost(c, who),
	}, nil
}

func (c Config) withDefaults() (Config, error) {
	if c.AppID <= 0 {
		return c, errors.New("github: app_id is missing")
	}
	if strings.TrimSpace(c.PrivateKey) == "" {
		return c, errors.New("github: private_key is empty")
	}
	if c.Permission == "" {
		c.Permission = "write"
	}
	if c.Permission != "write" && c.Permission != "admin" {
		return c, errors.New("github: the permission is write or admin")
	}
	var err error
	if c.APIURL, err = baseURL("api_url", c.APIURL, DefaultAPIURL); err != nil {
		return c, err
	}
	if c.WebURL, err = baseURL("web_url", c.WebURL, DefaultWebURL); err != nil {
		return c, err
	}
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.clock = &clock{}
	c.Transport = transport{next: c.Transport, logger: c.Logger, timeout: requestTimeout, clock: c.clock}
	if c.CreateInterval == 0 {
		c.CreateInterval = createInterval
	}
	return c, nil
}

func baseURL(key, given, standard string) (string, error) {
	if given == "" {
		return standard, nil
	}
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return "", fmt.Errorf("github: %s is not an http(s) address", key)
	}
	return strings.TrimRight(given, "/"), nil
}
