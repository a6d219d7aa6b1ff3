// Package integrations is the list of platforms that ship speaks with. A new
// one is a folder beside this file, and a line in Settings and in Open.
package integrations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"ship/bot"
	"ship/integrations/github"
	"ship/session"
)

// Settings are the sections of ship.yaml that belong to platforms.
type Settings struct {
	GitHub github.Settings `yaml:"github"`
}

// Platform is one platform, both directions.
type Platform struct {
	Name      string
	Receiver  bot.Receiver
	Performer session.Performer
	// Recover asks the platform to deliver again what it never got accepted
	// since a moment; nil when it repeats by itself. Twice is once.
	Recover func(ctx context.Context, since time.Time) (asked int, err error)
	// Code is set by a platform that hosts repositories.
	Code *CodeHost
}

// CodeHost is where repositories live.
type CodeHost struct {
	// WebURL is where git reaches them over HTTP.
	WebURL string
	// Credential returns what git needs for one repository, narrowed to it.
	Credential func(ctx context.Context, repoKey string) (user, password string, err error)
	// Identity is whom commits are made by.
	Identity func(ctx context.Context) (name, email string, err error)
}

// Deps is what every platform gets.
type Deps struct {
	PublicURL string
	// Permission on a repository that a person needs: write or admin.
	Permission string
	Transport  http.RoundTripper
	Log        *slog.Logger
}

// ErrNone: not one platform is set up.
var ErrNone = errors.New("no platform is set up")

// Open opens every platform whose section is filled in.
func Open(s Settings, d Deps) ([]Platform, error) {
	var all []Platform
	if s.GitHub.Enabled() {
		p, err := openGitHub(s.GitHub, d)
		if err != nil {
			return nil, fmt.Errorf("set up github: %w", err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, ErrNone
	}
	return all, nil
}

func openGitHub(s github.Settings, d Deps) (Platform, error) {
	c := s.Config()
	c.PublicURL, c.Permission, c.Transport, c.Logger = d.PublicURL, d.Permission, d.Transport, d.Log
	g, err := github.New(c)
	if err != nil {
		return Platform{}, err
	}
	web := s.WebURL
	if web == "" {
		web = github.DefaultWebURL
	}
	return Platform{
		Name: github.Platform, Receiver: g.Receiver, Performer: g.Performer,
		Recover: g.Redeliver,
		Code:    &CodeHost{WebURL: web, Credential: g.GitCredential, Identity: g.Identity},
	}, nil
}
