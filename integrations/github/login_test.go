package github

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ship/integrations/github/githubtest"
	"ship/session"
)

const (
	commitsRoute = "GET /repos/{owner}/{repo}/commits"
	searchRoute  = "GET /search/users"
)

// login asks who owns an address, and wants an answer.
func (w *world) login(address string) string {
	w.t.Helper()
	got, err := w.Login(w.t.Context(), w.repo().session(), address)
	w.must(err)
	return got
}

func (w *world) commitAs(address string) {
	w.t.Helper()
	_, err := w.CommitAs(widgets, "main", address, map[string]string{"by.txt": address + time.Now().String()})
	w.must(err)
}

// TestLogin: GitHub tells by a commit, by a profile, and by its own addresses.
func TestLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	host := "@users.noreply.127.0.0.1"
	w.SetEmail("alice", "Alice@Example.com", false)
	w.commitAs("alice@example.com")
	w.SetEmail("carol", "carol@example.com", true)
	w.SetEmail("dave", "dave@example.com", false) // never committed here
	w.commitAs("unlinked@example.com")
	w.SetEmail("bot[bot]", "bot@example.com", false)
	w.commitAs("bot@example.com")
	// What GitHub lists for an address may be what its owner wrote by another.
	w.SetEmail("erin", "erin@example.com", false)
	w.SetEmail("erin", "erin@home.example", false)
	w.commitAs("erin@example.com")
	w.commitAs("erin@home.example")
	tests := map[string]string{
		"alice@example.com": "alice", "ALICE@EXAMPLE.COM": "alice", " alice@example.com ": "alice",
		"carol@example.com": "carol", "dave@example.com": "", "unlinked@example.com": "", "bot@example.com": "",
		"erin@example.com": "erin", "nobody@example.com": "",
		fmt.Sprintf("%d+alice%s", w.UserID("alice"), host):                   "alice",
		fmt.Sprintf("%d+carol%s", w.UserID("alice"), host):                   "", // carol's name, another's number
		fmt.Sprintf("%d+nobody%s", w.UserID("alice"), host):                  "",
		fmt.Sprintf("%d+alice@users.noreply.example.com", w.UserID("alice")): "",
		fmt.Sprintf("%d+bot%s", w.UserID("bot[bot]"), host):                  "",
		"alice" + host: "",
		// What cannot be an address is not looked for.
		"": "", "alice": "", "alice@": "", "@example.com": "", "alice@example.com in:login": "", "a@b@c.d": "",
		"alice@example.com\nin:name": "", `"alice@example.com"`: "", strings.Repeat("a", 300) + "@example.com": "",
	}
	for address, want := range tests {
		if got := w.login(address); got != want {
			t.Errorf("%q belongs to %q, want %q", address, got, want)
		}
	}
}

// TestLoginIsNotImpersonated: what anybody can write makes nobody somebody
// else.
func TestLoginIsNotImpersonated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// Mallory commits with Alice's address: that is Alice's, as it was.
	w.SetEmail("alice", "alice@example.com", false)
	w.commitAs("alice@example.com")
	if got := w.login("alice@example.com"); got != "alice" {
		t.Errorf("a commit with her address makes it %q's", got)
	}
	// Carol's public address contains the one that is looked for.
	w.SetEmail("carol", "carol@example.com.example.org", true)
	if got := w.login("carol@example.com"); got != "" {
		t.Errorf("a longer address is taken for it: %q", got)
	}
	// Two show it: no telling who.
	w.SetEmail("dan", "shared@example.com", true)
	w.SetEmail("dana", "shared@example.com", true)
	if got := w.login("shared@example.com"); got != "" {
		t.Errorf("one of two was chosen: %q", got)
	}
	// An account that is no person's.
	w.SetEmail("robo[bot]", "robo@example.com", true)
	if got := w.login("robo@example.com"); got != "" {
		t.Errorf("a bot asks: %q", got)
	}
}

func TestLoginIsRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.SetEmail("alice", "alice@example.com", false)
	w.commitAs("alice@example.com")
	for range 3 {
		w.login("alice@example.com")
		w.login("Alice@example.com")
		w.login("nobody@example.com")
	}
	if commits, searches := w.Calls(commitsRoute), w.Calls(searchRoute); commits != 2 || searches != 1 {
		t.Errorf("%d lists of commits, %d searches", commits, searches)
	}
}

// TestLoginInTrouble: a search that is put off says nothing about anybody, and
// holds nothing else up.
func TestLoginInTrouble(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]githubtest.Fault{
		"primary limit":   githubtest.PrimaryLimit(searchRoute, time.Now().Add(time.Hour)),
		"secondary limit": githubtest.SecondaryLimit(searchRoute, time.Minute),
	} {
		w := newWorld(t)
		w.SetEmail("carol", "carol@example.com", true)
		w.Inject(fault)
		if got := w.login("carol@example.com"); got != "" {
			t.Errorf("%s: got %q", name, got)
		}
		if _, may, err := w.May(t.Context(), w.repo().session(), "alice"); err != nil || !may {
			t.Errorf("%s: the rest is held up: %v", name, err)
		}
		// Another process, which was not told to wait, finds her.
		other, err := New(Config{
			AppID: w.AppID(), PrivateKey: w.PrivateKey(), WebhookSecrets: []string{secret},
			APIURL: w.APIURL(), WebURL: w.URL, Transport: w.transport,
		})
		w.must(err)
		if got, err := other.Login(t.Context(), w.repo().session(), "carol@example.com"); err != nil || got != "carol" {
			t.Errorf("%s: afterwards %q, %v", name, got, err)
		}
	}
	w := newWorld(t)
	w.SetEmail("carol", "carol@example.com", true)
	w.Inject(githubtest.Fault{On: commitsRoute, Status: 409, Body: `{"message":"Git Repository is empty."}`})
	if got := w.login("carol@example.com"); got != "carol" {
		t.Errorf("an empty repository: %q", got)
	}
	w.Inject(githubtest.Fault{On: searchRoute, Status: 422, Body: `{"message":"Validation Failed"}`})
	if got := w.login("other@example.com"); got != "" {
		t.Errorf("a search that is refused: %q", got)
	}
	for _, route := range []string{commitsRoute, searchRoute} {
		w.Inject(githubtest.Fault{On: route, Status: 502})
		_, err := w.Login(t.Context(), w.repo().session(), "late@example.com")
		if p := problem(t, err); !p.Again {
			t.Errorf("%s: %+v", route, p)
		}
	}
	_, err := w.Login(t.Context(), session.Repo{Platform: "gitlab", Key: "1"}, "carol@example.com")
	problem(t, err)
}

// FuzzAddress: what is looked for is one plain word with one @ in it.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"alice@example.com", "1+alice@users.noreply.github.com", "a b@c.d", "a@b", "@", "a@b.c in:login", "ä@example.com"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if validAddress.MatchString(s) && (strings.Count(s, "@") != 1 || strings.ContainsAny(s, " \t\r\n\":<>*()/\\")) {
			t.Errorf("%q is looked for", s)
		}
	})
}

// TestLoginKeepsAddressesToItself: they are in no error that is logged.
func TestLoginKeepsAddressesToItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, route := range []string{commitsRoute, searchRoute} {
		w.Inject(githubtest.Fault{On: route, Status: 500, Body: `{"message":"oops"}`})
		_, err := w.Login(t.Context(), w.repo().session(), "private@example.com")
		if err == nil || strings.Contains(err.Error(), "private") {
			t.Errorf("%s: %v", route, err)
		}
	}
}
