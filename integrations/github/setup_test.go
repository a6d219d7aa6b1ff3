package github

import (
	"crypto/rand"
	"crypto/rsa"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ship/integrations/github/githubtest"
	"ship/integrations/github/githubtest/openapi"
	"ship/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	widgets = "acme/widgets"
	secret  = "a webhook secret"
)

// shared returns the path of a file that lies beside the repository on some
// machines, and skips the test elsewhere.
func shared(t testing.TB, path ...string) string {
	t.Helper()
	full := filepath.Join(append([]string{"..", "..", "..", "shared", "data"}, path...)...)
	if _, err := os.Stat(full); err != nil {
		t.Skipf("needs GitHub's published examples: %v", err)
	}
	return full
}

// description is GitHub's own, loaded once; nil where it is not to be had.
var description = sync.OnceValues(func() (githubtest.Validator, error) {
	path := filepath.Join("..", "..", "..", "shared", "data", "github-openapi-trim.json")
	if _, err := os.Stat(path); err != nil {
		return nil, nil
	}
	return openapi.Load(path)
})

// appKey is the app's in all tests: finding one takes a while.
var appKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// world is a stand-in with one repository, and the integration that uses it.
type world struct {
	*githubtest.Server
	*Integration
	t         *testing.T
	issue     int
	transport *http.Transport
}

func newWorld(t *testing.T, options ...func(*githubtest.Options, *Config)) *world {
	t.Helper()
	validator, err := description()
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	key, err := appKey()
	if err != nil {
		t.Fatal(err)
	}
	o := githubtest.Options{Validator: validator, Key: key}
	c := Config{
		WebhookSecrets: []string{secret}, Transport: transport, CreateInterval: time.Nanosecond,
		Logger: slog.New(slog.DiscardHandler),
	}
	for _, option := range options {
		option(&o, &c)
	}
	server, err := githubtest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		for _, v := range server.Violations() {
			t.Error(v)
		}
	})
	c.AppID, c.PrivateKey, c.APIURL, c.WebURL = server.AppID(), server.PrivateKey(), server.APIURL(), server.URL
	integration, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Server: server, Integration: integration, t: t, transport: transport}
	w.must(server.CreateRepo(widgets, map[string]string{"README.md": "# Widgets\n"}))
	server.SetPermission(widgets, "alice", "write")
	server.SetPermission(widgets, "mallory", "read")
	w.issue = server.CreateIssue(widgets, "bob", "The frobnicator wobbles", "It wobbles when @carol frobnicates.")
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) repo() repo {
	return repo{installation: w.InstallationID("acme"), id: w.RepositoryID(widgets), owner: "acme", name: "widgets"}
}

func (w *world) on(number int, pull bool) thread {
	return thread{repo: w.repo(), number: number, pull: pull}
}

// state is a session that began on an issue or pull request.
func (w *world) state(th thread) session.State {
	return session.State{
		ID: th.id(), Repo: w.repo().session(), Base: "main", Title: "The frobnicator wobbles",
		Threads: []session.Voice{{Thread: th.session()}},
	}
}

// effect is one of a kind in a thread.
func effect(kind session.EffectKind, th thread) session.Effect {
	s := th.session()
	return session.Effect{ID: "4f7c1d1e-0000-4000-8000-00000000000" + string(kind[0]), Kind: kind, By: Platform, Thread: &s}
}

// perform performs an effect and wants it to succeed.
func (w *world) perform(job session.Job) session.Performed {
	w.t.Helper()
	done, err := w.Perform(w.t.Context(), job)
	if err != nil {
		w.t.Fatal(err)
	}
	if done.Effect != job.Effect.ID {
		w.t.Fatalf("performed %q, want %q", done.Effect, job.Effect.ID)
	}
	return done
}

// branch pushes a commit to a branch as a person would.
func (w *world) branch(name string) string {
	w.t.Helper()
	sha, err := w.Commit(widgets, name, map[string]string{"fix.txt": "fixed on " + name + "\n"}, "Fix it")
	w.must(err)
	return sha
}
