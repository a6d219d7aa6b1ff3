// Package bottest has what tests of the platforms share that speak through bot.
package bottest

import (
	"context"
	"errors"
	"strings"
	"sync"

	"ship/session"
)

// Host is a code host: what it has, and what people may. It implements
// bot.Repositories and bot.Rights. What it knows is changed between requests.
type Host struct {
	// Repos by OWNER/NAME.
	Repos []string
	// Logins by e-mail address.
	Logins map[string]string
	// Allowed is whether somebody may command, by "login repository".
	Allowed map[string]bool
	// Broken is what every look at a repository comes to.
	Broken error
	// Hidden repositories are listed, and cannot be had.
	Hidden bool

	mu      sync.Mutex
	lookups int // guarded by mu
}

// Lookups is how often a repository was looked up.
func (h *Host) Lookups() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lookups
}

// Repository finds one regardless of case.
func (h *Host) Repository(_ context.Context, name string) (session.Repo, string, error) {
	h.mu.Lock()
	h.lookups++
	h.mu.Unlock()
	if h.Broken != nil {
		return session.Repo{}, "", h.Broken
	}
	for _, r := range h.Repos {
		switch {
		case !strings.EqualFold(r, name):
		case h.Hidden:
			return session.Repo{}, "", &session.Problem{Say: "`" + r + "` is archived.", Err: errors.New("archived")}
		default:
			return session.Repo{Platform: "github", Name: r, Key: "key of " + r}, "main", nil
		}
	}
	return session.Repo{}, "", &session.Problem{Say: "I have no access to that repository.", Err: errors.New("not found")}
}

// Repositories lists all.
func (h *Host) Repositories(context.Context, int) ([]string, error) { return h.Repos, h.Broken }

// HasBranch: each has main and release.
func (h *Host) HasBranch(_ context.Context, _ session.Repo, branch string) (bool, error) {
	return branch == "main" || branch == "release", nil
}

// May tells what Allowed says.
func (h *Host) May(_ context.Context, repo session.Repo, login string) (session.Person, bool, error) {
	return session.Person{Email: login + "@users.noreply.github.example"}, h.Allowed[login+" "+repo.Name], nil
}

// Login is whose address that is.
func (h *Host) Login(_ context.Context, _ session.Repo, email string) (string, error) {
	return h.Logins[email], nil
}
