package main

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/integrations/github/githubtest"
)

const apiRepo = "/repos/{owner}/{repo}"

// place is a route, and how often it is asked for in peace first.
type place struct {
	route string
	peace int
}

// apiPlaces are all of the API that the tour asks for. Each effect is struck a
// few times at most: it waits for longer each time.
func apiPlaces() []place {
	return []place{
		{"POST /app/installations/{installation_id}/access_tokens", 0},
		{"GET " + apiRepo + "/collaborators/{username}/permission", 0},
		{"GET " + apiRepo + "/issues/{number}", 1},
		{"GET " + apiRepo, 1},
		{"GET " + apiRepo + "/issues/{number}/comments", 0},
		{"POST " + apiRepo + "/issues/{number}/comments", 0},
		{"PATCH " + apiRepo + "/issues/comments/{id}", 0},
		{"POST " + apiRepo + "/issues/comments/{id}/reactions", 0},
		{"GET " + apiRepo + "/pulls", 0},
		{"POST " + apiRepo + "/pulls", 0},
		{"GET " + apiRepo + "/pulls/{number}", 0},
		{"GET " + apiRepo + "/pulls/{number}/comments", 1},
		{"POST " + apiRepo + "/pulls/{number}/comments/{id}/replies", 0},
		{"POST " + apiRepo + "/pulls/comments/{id}/reactions", 0},
		{"GET " + apiRepo + "/commits/{ref}/check-runs", 0},
		{"POST " + apiRepo + "/check-runs", 0},
		{"PATCH " + apiRepo + "/check-runs/{id}", 1},
		{"POST /graphql", 0},
	}
}

// gitPlaces are git's: the first request of each service lists the branches,
// the second moves commits.
func gitPlaces() []place {
	return []place{{"GIT upload-pack", 0}, {"GIT upload-pack", 1}, {"GIT receive-pack", 0}, {"GIT receive-pack", 1}}
}

// faulty makes one fault at each place.
func faulty(kind githubtest.Fault, places []place) []githubtest.Fault {
	var all []githubtest.Fault
	for _, p := range places {
		f := kind
		f.On, f.Skip = p.route, p.peace
		all = append(all, f)
	}
	return all
}

// tour asks in an issue, in the diff of the pull request that came of it, and
// for finishing that, and returns the world after it.
func tour(t *testing.T, faults []githubtest.Fault) string {
	t.Helper()
	r := newRig(t, rigOptions{})
	for _, f := range faults {
		r.host.Inject(f)
	}
	r.start()
	for i, text := range []string{"/ship help", "/ship status"} {
		r.deliver(r.says(r.issue, text))
		r.await("the answer", patience, func() bool { return r.said(r.issue, "<!-- ship:say=") == i+1 })
	}
	r.deliver(r.says(r.issue, "/ship fix the widgets"))
	r.endedTurns(1, patience)
	prs := r.host.PullRequests(rigRepo)
	if len(prs) != 1 {
		t.Fatalf("pull requests: %+v", prs)
	}
	n := prs[0].Number
	r.deliver(r.host.ReviewComment(rigRepo, n, githubtest.ReviewComment{User: "mona", Body: "/ship oil it", Path: "WORK.md", Line: 1, Hunk: "@@"}))
	r.endedTurns(2, patience)
	r.deliver(r.says(n, "/ship"))
	r.endedTurns(3, patience)
	for _, f := range faults {
		if n := r.host.Calls(f.On); n <= f.Skip {
			t.Errorf("%s was asked for %d times, so nothing struck it", f.On, n)
		}
	}
	r.stop()
	return r.world()
}

// TestFaultsOfGitHub: every route fails once in each way that there is, and the
// world is as if nothing had.
func TestFaultsOfGitHub(t *testing.T) {
	t.Parallel()
	all := slices.Concat(apiPlaces(), gitPlaces())
	tours(t, tour, map[string][]githubtest.Fault{
		"clean":           nil,
		"answer lost":     faulty(githubtest.Fault{Lost: true}, all),
		"bad gateway":     faulty(githubtest.Fault{Status: http.StatusBadGateway, Body: "<html>Unicorn!</html>"}, all),
		"secondary limit": faulty(githubtest.SecondaryLimit("", 2*time.Second), apiPlaces()),
	})
}

// tours plays a story for each set of faults, of which the clean one is empty, and
// demands that the world is the same after all of them.
func tours[F any](t *testing.T, tour func(*testing.T, []F) string, all map[string][]F) {
	t.Helper()
	var mu sync.Mutex
	worlds := map[string]string{}
	t.Run("tours", func(t *testing.T) {
		for name, faults := range all {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				world := tour(t, faults)
				mu.Lock()
				defer mu.Unlock()
				worlds[name] = world
			})
		}
	})
	for name, world := range worlds {
		if diff := cmp.Diff(worlds["clean"], world); diff != "" {
			t.Errorf("the world (-clean +%s):\n%s", name, diff)
		}
	}
}

// TestGitHubHangs: a request that is never answered is given up and repeated.
func TestGitHubHangs(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"issues/{number}/comments", "pulls", "check-runs"} {
		t.Run(strings.ReplaceAll(what, "/", " "), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, rigOptions{})
			r.host.Inject(githubtest.Fault{On: "POST " + apiRepo + "/" + what, Hang: true})
			r.start()
			r.deliver(r.says(r.issue, "/ship fix the widgets"))
			r.endedTurns(1, patience)
			r.checkOutcome(t, 1)
			r.stop()
		})
	}
}
