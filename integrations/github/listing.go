package github

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/go-github/v66/github"
)

const (
	// listedKept is how long the list of repositories is good for. It is what
	// people choose from, so a new one may be missing from it for a while.
	listedKept = 5 * time.Minute
	// maxListCalls bounds what one list costs, in requests for a hundred
	// repositories each, and maxListed what is kept of it.
	maxListCalls = 30
	maxListed    = 1000
)

// listing is the list of repositories as it was a while ago.
type listing struct {
	mu    sync.Mutex
	names []string  // guarded by mu
	until time.Time // guarded by mu
}

func (l *listing) get() ([]string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names, time.Now().Before(l.until)
}

func (l *listing) put(names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names, l.until = names, time.Now().Add(listedKept)
}

// Repositories lists the names of up to n repositories that the app may work
// on, those that were pushed to last first. An installation that cannot be
// asked is left out, and so is what goes beyond a few thousand repositories.
func (h *Host) Repositories(ctx context.Context, n int) ([]string, error) {
	names, fresh := h.listed.get()
	if !fresh {
		var whole bool
		var err error
		if names, whole, err = h.list(ctx); err != nil {
			return nil, err
		}
		if whole {
			h.listed.put(names)
		}
	}
	return slices.Clone(names[:max(0, min(n, len(names)))]), nil
}

// reachable is a repository that work may go to.
type reachable struct {
	name   string
	pushed time.Time
}

// list asks every installation, in turn and for its share of the calls. It is
// not whole when one of them could not be asked.
func (h *Host) list(ctx context.Context) (names []string, whole bool, err error) {
	ids, err := h.active(ctx)
	if err != nil {
		return nil, false, h.app.problem(ctx, repo{}, fmt.Errorf("list installations: %w", err))
	}
	ids = ids[:min(len(ids), maxListCalls)]
	var all []reachable
	var failed error
	for _, id := range ids {
		got, err := h.reached(ctx, id, maxListCalls/len(ids))
		if err != nil {
			failed = h.app.problem(ctx, repo{installation: id}, fmt.Errorf("list repositories of installation %d: %w", id, err))
			if ctx.Err() != nil {
				return nil, false, failed
			}
			h.log.Warn("repositories not listed", "installation", id, "err", failed)
		}
		all = append(all, got...)
	}
	if len(all) == 0 && failed != nil {
		return nil, false, failed
	}
	return newestFirst(all), failed == nil, nil
}

func newestFirst(all []reachable) []string {
	slices.SortFunc(all, func(a, b reachable) int {
		return cmp.Or(b.pushed.Compare(a.pushed), cmp.Compare(a.name, b.name))
	})
	names := make([]string, min(len(all), maxListed))
	for i := range names {
		names[i] = all[i].name
	}
	return names
}

// active returns the installations that are not suspended.
func (h *Host) active(ctx context.Context) ([]int64, error) {
	var ids []int64
	for page := (&github.ListOptions{PerPage: 100}); len(ids) < maxListCalls; {
		list, resp, err := h.app.self.Apps.ListInstallations(ctx, page)
		if err != nil {
			return nil, err
		}
		for _, in := range list {
			if in.SuspendedAt == nil {
				ids = append(ids, in.GetID())
			}
		}
		if page.Page = resp.NextPage; page.Page == 0 {
			break
		}
	}
	return ids, nil
}

// reached returns the repositories of one installation. GitHub cannot sort
// them, so the newest are known when all were seen.
func (h *Host) reached(ctx context.Context, id int64, calls int) ([]reachable, error) {
	in, err := h.app.installation(id)
	if err != nil {
		return nil, err
	}
	var all []reachable
	for page := (&github.ListOptions{PerPage: 100}); calls > 0; calls-- {
		list, resp, err := in.rest.Apps.ListRepos(ctx, page)
		if err != nil {
			return all, err
		}
		for _, r := range list.Repositories {
			if validRepo(r.GetOwner().GetLogin(), r.GetName()) && !r.GetArchived() && !r.GetDisabled() {
				all = append(all, reachable{name: r.GetFullName(), pushed: r.GetPushedAt().Time})
			}
		}
		if page.Page = resp.NextPage; page.Page == 0 {
			break
		}
	}
	return all, nil
}
