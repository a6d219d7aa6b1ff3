package github

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/go-github/v66/github"

	"ship/config"
)

// NewApp is a GitHub App that was just made, with its secrets.
type NewApp struct {
	ID   int64
	Slug string
	// URL is the app's page.
	URL           string
	PrivateKey    config.Secret
	WebhookSecret config.Secret
}

// InstallURL is where a person installs the app on repositories.
func (a NewApp) InstallURL() string { return a.URL + "/installations/new" }

// validCode is what GitHub's codes look like; one becomes part of a path.
var validCode = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)

// Convert exchanges the code that the browser brought for the app and its
// secrets. GitHub does that once: after an error that says that it could not
// be reached the same code may be tried again, after a success it is void. No
// error repeats the code.
func (r Registration) Convert(ctx context.Context, code string) (NewApp, error) {
	if !validCode.MatchString(code) {
		return NewApp{}, errors.New("this is not a code of GitHub's")
	}
	api, err := url.Parse(r.APIURL + "/")
	if err != nil {
		return NewApp{}, fmt.Errorf("parse api_url: %w", err)
	}
	client := github.NewClient(&http.Client{
		// A logger would get to see the code.
		Transport: transport{next: r.Transport, logger: slog.New(slog.DiscardHandler), timeout: requestTimeout},
	})
	client.BaseURL, client.UserAgent = api, "ship"
	made, _, err := client.Apps.CompleteAppManifest(ctx, code)
	if err != nil {
		return NewApp{}, conversionError(err)
	}
	return madeApp(made)
}

// conversionError keeps the code, which is in the address, out of the error.
func conversionError(err error) error {
	var way *url.Error
	switch status := refused(err); {
	case status == http.StatusNotFound:
		return errors.New("GitHub does not know this code: each works once, within an hour; start again")
	case status != 0:
		return fmt.Errorf("GitHub answered %d", status)
	case errors.As(err, &way):
		return fmt.Errorf("GitHub could not be reached: %w", way.Err)
	default:
		return errors.New("GitHub's answer was not understood, or it asks to come back later")
	}
}

func madeApp(made *github.AppConfig) (NewApp, error) {
	a := NewApp{
		ID: made.GetID(), Slug: made.GetSlug(), URL: strings.TrimRight(made.GetHTMLURL(), "/"),
		PrivateKey: config.NewSecret(made.GetPEM()), WebhookSecret: config.NewSecret(made.GetWebhookSecret()),
	}
	if a.ID <= 0 || a.Slug == "" || !strings.Contains(a.PrivateKey.Reveal(), "PRIVATE KEY-----") || a.WebhookSecret.Empty() {
		return a, fmt.Errorf("GitHub made the app, but did not send its secrets: make a private key and a webhook secret on %s", a.URL)
	}
	return a, nil
}
