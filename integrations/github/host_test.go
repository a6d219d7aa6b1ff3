package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/integrations/github/githubtest"
	"ship/session"
)

const (
	permissionRoute   = "GET /repos/{owner}/{repo}/collaborators/{username}/permission"
	installationRoute = "GET /installation/repositories"
)

// problem is an error with a sentence for people, or the test ends.
func problem(t *testing.T, err error) *session.Problem {
	t.Helper()
	var p *session.Problem
	if !errors.As(err, &p) || p.Say == "" || p.Err == nil {
		t.Fatalf("not a problem: %v", err)
	}
	return p
}

func TestRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 2 {
		got, base, err := w.Repository(t.Context(), "Acme/Widgets")
		if err != nil || got != w.repo().session() || base != "main" {
			t.Errorf("got %+v, %q, %v", got, base, err)
		}
	}
}

func TestRepositoryThatCannotBeHad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"acme/private", "umbrella/labs", "acme/old"} {
		w.must(w.CreateRepo(name, map[string]string{"x": "y"}))
	}
	w.Uninstall("acme/private")
	w.Suspend("umbrella", true)
	w.Archive("acme/old")
	const unseen = "no repository of that name, or the GitHub App is not installed"
	for name, say := range map[string]string{
		"acme/nope": unseen, "nobody/nothing": unseen, "acme/private": unseen,
		"umbrella/labs": "suspended", "acme/old": "archived",
		"acme": "OWNER/NAME", "../..": "OWNER/NAME", "a/b/c": "OWNER/NAME", "": "OWNER/NAME", "acme/wid gets": "OWNER/NAME",
	} {
		_, _, err := w.Repository(t.Context(), name)
		if p := problem(t, err); p.Again || !strings.Contains(p.Say, say) {
			t.Errorf("%q: %+v", name, p)
		}
	}
}

// TestRepositoryInTrouble: what passes is worth another try.
func TestRepositoryInTrouble(t *testing.T) {
	t.Parallel()
	for _, route := range []string{"GET /repos/{owner}/{repo}/installation", "GET /repos/{owner}/{repo}"} {
		w := newWorld(t)
		w.Inject(githubtest.Fault{On: route, Status: 502})
		_, _, err := w.Repository(t.Context(), widgets)
		if p := problem(t, err); !p.Again {
			t.Errorf("%s: %+v", route, p)
		}
		if _, _, err := w.Repository(t.Context(), widgets); err != nil {
			t.Errorf("%s: the second time: %v", route, err)
		}
	}
}

func TestHasBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.branch("release/1.x")
	for branch, want := range map[string]bool{
		"main": true, "release/1.x": true, "release": false, "Main": false, "": false, ".": false, "..": false, "../..": false, "a b%2F": false,
	} {
		if got, err := w.HasBranch(t.Context(), w.repo().session(), branch); err != nil || got != want {
			t.Errorf("%q: %t, %v", branch, got, err)
		}
	}
	// GitHub forwards from a branch's old name, which git does not.
	w.Inject(githubtest.Fault{
		On: "GET /repos/{owner}/{repo}/branches/{branch...}", Status: http.StatusMovedPermanently,
		Header: http.Header{"Location": {w.APIURL() + "/repos/acme/widgets/branches/main"}}, Body: `{"message":"Moved Permanently"}`,
	})
	if got, err := w.HasBranch(t.Context(), w.repo().session(), "master"); err != nil || got {
		t.Errorf("renamed: %t, %v", got, err)
	}
	w.Uninstall(widgets)
	w.ExpireTokens()
	if _, err := w.HasBranch(t.Context(), session.Repo{Key: "nonsense"}, "main"); err == nil {
		t.Error("a foreign key passed")
	}
}

// TestMay: the answer is the one that a command on GitHub gets, and is asked
// for once.
func TestMay(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]map[string]bool{
		"write": {"ada": true, "wes": true, "rea": false, "nobody-knows-me": false, "": false, "a/../b": false},
		"admin": {"ada": true, "wes": false, "rea": false},
	} {
		w := newWorld(t, func(_ *githubtest.Options, c *Config) { c.Permission = level })
		for login, level := range map[string]string{"ada": "admin", "wes": "write", "rea": "read"} {
			w.SetPermission(widgets, login, level)
		}
		for login, may := range want {
			who, got, err := w.May(t.Context(), w.repo().session(), login)
			if err != nil || got != may {
				t.Errorf("%s for %q: %t, %v", level, login, got, err)
			}
			if want := fmt.Sprintf("%d+%s@users.noreply.127.0.0.1", w.UserID(login), login); may && who.Email != want {
				t.Errorf("%s is credited as %q, want %q", login, who.Email, want)
			}
		}
		before := w.Calls(permissionRoute)
		if a := w.ask(w.on(w.issue, false), by("ADA"), session.State{}); a.Refusal != "" {
			t.Errorf("admitted %+v", a)
		}
		if n := w.Calls(permissionRoute); n != before {
			t.Errorf("a command asked again: %d calls, then %d", before, n)
		}
	}
}

func TestMayInTrouble(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Inject(githubtest.Fault{On: permissionRoute, Status: 503})
	_, _, err := w.May(t.Context(), w.repo().session(), "alice")
	if p := problem(t, err); !p.Again {
		t.Errorf("%+v", p)
	}
	_, _, err = w.May(t.Context(), session.Repo{Key: "T1/C1"}, "alice")
	problem(t, err)
	w.Suspend("acme", true)
	w.ExpireTokens()
	_, _, err = w.May(t.Context(), w.repo().session(), "bob")
	for range 2 { // the first answer is about the token
		_, _, err = w.May(t.Context(), w.repo().session(), "bob")
	}
	if p := problem(t, err); !strings.Contains(p.Say, "suspended") {
		t.Errorf("%+v", p)
	}
}

func TestRepositoriesNewestFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now()
	for name, age := range map[string]time.Duration{"acme/older": 3, "umbrella/newest": 0, "acme/archived": 1, "acme/private": 1, "dormant/asleep": 1} {
		w.must(w.CreateRepo(name, map[string]string{"x": "y"}))
		w.SetPushed(name, now.Add(-age*time.Hour))
	}
	w.SetPushed(widgets, now.Add(-2*time.Hour))
	w.Archive("acme/archived")
	w.Uninstall("acme/private")
	w.Suspend("dormant", true)
	all := []string{"umbrella/newest", widgets, "acme/older"}
	for _, n := range []int{10, 3, 2, 1, 0, -1} {
		got, err := w.Repositories(t.Context(), n)
		if diff := cmp.Diff(all[:max(0, min(n, len(all)))], got, cmp.Transformer("", func(s []string) []string { return append([]string{}, s...) })); err != nil || diff != "" {
			t.Errorf("%d of them: %v (-want +got):\n%s", n, err, diff)
		}
	}
	if n := w.Calls(installationRoute); n != 2 {
		t.Errorf("asked %d times", n)
	}
	mine, err := w.Repositories(t.Context(), 3)
	w.must(err)
	mine[0] = "changed"
	if again, _ := w.Repositories(t.Context(), 1); again[0] != all[0] {
		t.Error("the list that is kept was changed")
	}
}

// TestRepositoriesOfManyPages: the newest may be on the last one.
func TestRepositoriesOfManyPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page := func(n int, next bool, repos ...string) githubtest.Fault {
		f := githubtest.Fault{On: installationRoute, Status: 200, Header: http.Header{}}
		f.Body = fmt.Sprintf(`{"total_count":%d,"repositories":[%s]}`, n, strings.Join(repos, ","))
		if next {
			f.Header.Set("Link", fmt.Sprintf(`<%s/installation/repositories?page=2>; rel="next"`, w.APIURL()))
		}
		return f
	}
	repo := func(name, pushed string) string {
		return fmt.Sprintf(`{"name":%q,"full_name":"acme/%s","owner":{"login":"acme"},"pushed_at":%s}`, name, name, pushed)
	}
	w.Inject(page(3, true, repo("never", "null"), repo("old", `"2020-01-01T00:00:00Z"`)))
	w.Inject(page(3, false, repo("new", `"2026-01-01T00:00:00Z"`), repo("..", `"2026-01-01T00:00:00Z"`)))
	got, err := w.Repositories(t.Context(), 9)
	if want := []string{"acme/new", "acme/old", "acme/never"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestRepositoriesCostLittle: however many there are, the calls are bounded,
// and every installation gets one.
func TestRepositoriesCostLittle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.CreateRepo("umbrella/labs", map[string]string{"x": "y"}))
	endless := githubtest.Fault{On: installationRoute, Status: 200, Times: -1, Header: http.Header{}}
	endless.Header.Set("Link", fmt.Sprintf(`<%s/installation/repositories?page=2>; rel="next"`, w.APIURL()))
	endless.Body = `{"total_count":9999,"repositories":[{"name":"x","full_name":"acme/x","owner":{"login":"acme"}}]}`
	w.Inject(endless)
	if got, err := w.Repositories(t.Context(), 5); err != nil || len(got) != 5 {
		t.Errorf("got %q, %v", got, err)
	}
	if n := w.Calls(installationRoute); n != maxListCalls {
		t.Errorf("asked %d times", n)
	}
}

// TestRepositoriesInTrouble: one installation that cannot be asked hides its
// own repositories only, and not for long.
func TestRepositoriesInTrouble(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.CreateRepo("umbrella/labs", map[string]string{"x": "y"}))
	w.Inject(githubtest.Fault{On: installationRoute, Status: 500})
	got, err := w.Repositories(t.Context(), 9)
	if err != nil || len(got) != 1 {
		t.Errorf("one fails: %q, %v", got, err)
	}
	if got, err = w.Repositories(t.Context(), 9); err != nil || len(got) != 2 {
		t.Errorf("afterwards: %q, %v", got, err)
	}
	other := newWorld(t)
	other.Inject(githubtest.Fault{On: installationRoute, Status: 500})
	_, err = other.Repositories(t.Context(), 9)
	if p := problem(t, err); !p.Again {
		t.Errorf("all fail: %+v", p)
	}
	other.Inject(githubtest.Fault{On: "GET /app/installations", Status: 401, Body: `{"message":"Bad credentials"}`})
	_, err = other.Repositories(t.Context(), 9)
	problem(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	other.Inject(githubtest.Fault{On: installationRoute, Hang: true, Do: func(*http.Request) { cancel(session.ErrShutdown) }})
	if _, err := other.Repositories(ctx, 9); !errors.Is(err, session.ErrShutdown) {
		t.Errorf("cancelled: %v", err)
	}
}
