// Package integrations is the list of platforms that ship speaks with. A new
// one is a folder beside this file, and a line in Settings and in Open.
package integrations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"ship/bot"
	"ship/integrations/github"
	"ship/integrations/linear"
	"ship/integrations/slack"
	"ship/session"
)

// Settings are the sections of ship.yaml that belong to platforms.
type Settings struct {
	GitHub github.Settings `yaml:"github"`
	Linear linear.Settings `yaml:"linear"`
	Slack  slack.Settings  `yaml:"slack"`
	// Routes and People are what platforms that host no code go by.
	Routes bot.RouteSettings `yaml:"repositories"`
}

// Platform is one platform, both directions.
type Platform struct {
	Name string
	// Receiver takes the platform's webhooks; nil when it sends none.
	Receiver bot.Receiver
	// Run fetches what happens there until ctx ends; nil when all of that comes
	// as webhooks. Several gateways may run it at the same time.
	Run       func(ctx context.Context) error
	Performer session.Performer
	// Recover asks the platform to deliver again what it never got accepted
	// since a moment; nil when it repeats by itself. Twice is once.
	Recover func(ctx context.Context, since time.Time) (asked int, err error)
	// Pace of the reports to its threads.
	Pace func(running time.Duration) session.Pace
	// Idiom is how people speak with ship there.
	Idiom bot.Idiom
	// Pages are what people open in a browser to set the platform up, by their
	// patterns for http.ServeMux; nil when there are none.
	Pages map[string]http.Handler
	// Code is set by a platform that hosts repositories.
	Code *CodeHost
	// Links finds what people name of this platform on another, where their
	// request is shown too; nil when that is nowhere.
	Links slack.Linker
}

// CodeHost is where repositories live.
type CodeHost struct {
	// WebURL is where git reaches them over HTTP.
	WebURL string
	// Credential returns what git needs for one repository, narrowed to it.
	Credential func(ctx context.Context, repoKey string) (user, password string, err error)
	// Identity is whom commits are made by.
	Identity func(ctx context.Context) (name, email string, err error)
	// Repositories and Rights are what other platforms ask before a session that
	// began with them may work here.
	Repositories bot.Repositories
	Rights       bot.Rights
}

// Deps is what every platform gets.
type Deps struct {
	PublicURL string
	// Permission on a repository that a person needs: write or admin.
	Permission string
	// People say who is who.
	People bot.PeopleSettings
	// Shared is what all gateways share.
	Shared Shared
	// Inbox takes what a platform fetches by itself, and Heard returns what is to
	// be told of that for the metrics; may be nil.
	Inbox session.Inbox
	Heard func(platform string) func(event, outcome string, took time.Duration)
	// Archive is where sessions that are open are looked up.
	Archive   session.Archive
	Transport http.RoundTripper
	Log       *slog.Logger
}

// Shared keeps tokens and shares out allowances over all gateways.
type Shared struct {
	Vault  session.Vault
	Locker session.Locker
	Quota  session.Quota
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
	if s.Linear.Enabled() {
		p, err := openLinear(s, d, all)
		if err != nil {
			return nil, fmt.Errorf("set up linear: %w", err)
		}
		all = append(all, p)
	}
	if s.Slack.Enabled() {
		p, err := openSlack(s, d, all)
		if err != nil {
			return nil, fmt.Errorf("set up slack: %w", err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, ErrNone
	}
	return all, nil
}

// errNoHost: the work has to go somewhere.
var errNoHost = errors.New("it needs a platform that hosts repositories: fill in the section github")

// gate is what a platform that hosts no code asks before anything is begun.
func gate(s Settings, d Deps, others []Platform) (*bot.Gate, error) {
	i := slices.IndexFunc(others, func(p Platform) bool { return p.Code != nil })
	if i < 0 {
		return nil, errNoHost
	}
	host := others[i].Code
	return &bot.Gate{Repositories: host.Repositories, Rights: host.Rights, Routes: s.Routes, People: d.People}, nil
}

func openLinear(s Settings, d Deps, others []Platform) (Platform, error) {
	who, err := gate(s, d, others)
	if err != nil {
		return Platform{}, err
	}
	l, err := linear.New(linear.Config{
		Settings: s.Linear, PublicURL: d.PublicURL, Gate: who,
		Vault: d.Shared.Vault, Locker: d.Shared.Locker, Quota: d.Shared.Quota, Inbox: d.Inbox,
		Transport: d.Transport, Logger: d.Log,
	})
	if err != nil {
		return Platform{}, err
	}
	return Platform{Name: linear.Platform, Receiver: l.Receiver, Performer: l.Performer, Recover: l.Recover, Idiom: bot.Talking, Pace: linear.Pace, Pages: l.Pages, Links: l.Links}, nil
}

// linker is that of the platform whose things are named on others; nil when
// there is none.
func linker(others []Platform) slack.Linker {
	for _, p := range others {
		if p.Links != nil {
			return p.Links
		}
	}
	return nil
}

func openSlack(s Settings, d Deps, others []Platform) (Platform, error) {
	who, err := gate(s, d, others)
	if err != nil {
		return Platform{}, err
	}
	c := slack.Config{
		Settings: s.Slack, Gate: who,
		Vault: d.Shared.Vault, Quota: d.Shared.Quota, Inbox: d.Inbox, Archive: d.Archive,
		Links: linker(others), Transport: d.Transport, Logger: d.Log,
	}
	if d.Heard != nil {
		c.Heard = d.Heard(slack.Platform)
	}
	i, err := slack.New(c)
	if err != nil {
		return Platform{}, err
	}
	p := Platform{Name: slack.Platform, Performer: i.Performer, Recover: i.Recover, Idiom: bot.Talking, Pace: slack.Pace}
	if i.Receiver != nil { // else it would not be nil as a bot.Receiver either
		p.Receiver = i.Receiver
	}
	if i.Socket != nil {
		p.Run = i.Socket.Run
	}
	return p, nil
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
		Code:    &CodeHost{WebURL: web, Credential: g.GitCredential, Identity: g.Identity, Repositories: g.Host, Rights: g.Host},
	}, nil
}
