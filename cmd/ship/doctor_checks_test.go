package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ship/bot"
	"ship/config"
	"ship/integrations/github"
	"ship/integrations/github/githubtest"
	"ship/sandbox/agent/modeltest"
	"ship/session/memory"
	"ship/session/redis"
	"ship/session/redis/redistest"
)

// appKey is the app's in all tests: finding one takes a while.
var appKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// ward is a patient in perfect health, with stand-ins for all that it talks
// with.
type ward struct {
	*patient
	t    *testing.T
	host *githubtest.Server
	// model and door may be replaced by what shall answer instead.
	model, door atomic.Value // of http.HandlerFunc
	ready       atomic.Bool
	ship        *httptest.Server
}

func newWard(t *testing.T) *ward {
	t.Helper()
	key, err := appKey()
	if err != nil {
		t.Fatal(err)
	}
	w := &ward{t: t, patient: &patient{}}
	if w.host, err = githubtest.New(githubtest.Options{Key: key, Validator: validator(t)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	if err := w.host.CreateRepo(rigRepo, map[string]string{"README.md": "# widgets\n"}); err != nil {
		t.Fatal(err)
	}
	w.host.InstallationID("acme")
	model := modeltest.New(modeltest.Steps(modeltest.Say("no prompt is sent")))
	upstream := w.serve(&w.model, model.ServeHTTP)
	w.ready.Store(true)
	w.ship = w.serve(&w.door, w.front(rigSecret))
	s := &w.settings
	s.Listen, s.PublicURL, s.DataDir = strings.TrimPrefix(w.ship.URL, "http://"), w.ship.URL, t.TempDir()
	s.Sandbox.Provider, s.Sandbox.Local.Isolation = "local", "none"
	s.GitHub = github.Settings{
		AppID: w.host.AppID(), PrivateKey: config.NewSecret(w.host.PrivateKey()), WebhookSecret: config.NewSecrets(rigSecret),
		APIURL: w.host.APIURL(), WebURL: w.host.URL,
	}
	s.Models = map[string]ModelProvider{"stand-in": {
		BaseURL: upstream.URL + "/v1", APIKey: config.NewSecret(modelKey), Models: map[string]Price{"scripted": {Input: 3, Output: 15}},
	}}
	w.host.SetHook(githubtest.Hook{URL: s.PublicURL + hookPath, ContentType: "json"})
	return w
}

func (w *ward) close() {
	for _, v := range w.host.Violations() {
		w.t.Errorf("not as GitHub describes its API: %s", v)
	}
	_ = w.host.Close()
}

// serve answers with what is in a place, which h is at first.
func (w *ward) serve(place *atomic.Value, h http.HandlerFunc) *httptest.Server {
	place.Store(h)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if now, ok := place.Load().(http.HandlerFunc); ok {
			now(rw, r)
		}
	}))
	w.t.Cleanup(s.Close)
	return s
}

// front is ship's own front door, which knows one secret.
func (w *ward) front(secret string) http.HandlerFunc {
	w.t.Helper()
	receiver, err := github.NewReceiver(w.host.AppID(), w.host.URL, []string{secret})
	if err != nil {
		w.t.Fatal(err)
	}
	return bot.NewServer(bot.Config{
		Inbox: memory.New(), Receivers: map[string]bot.Receiver{"github": receiver}, Logger: slog.New(slog.DiscardHandler),
		Ready: func(context.Context) error {
			if !w.ready.Load() {
				return errTestOver
			}
			return nil
		},
	}).Handler().ServeHTTP
}

// hook answers webhooks with a status and a line, and is ship otherwise.
func (w *ward) hook(status int, line string) {
	ship := w.front(rigSecret)
	w.door.Store(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != hookPath {
			ship(rw, r)
			return
		}
		rw.Header().Set("Location", "http://127.0.0.1:1/")
		rw.WriteHeader(status)
		fmt.Fprintln(rw, line)
	}))
}

// answer makes the provider of models answer with a status, and its request's
// key in the text.
func (w *ward) answer(status int, text string) {
	w.model.Store(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Location", "http://127.0.0.1:1/")
		rw.WriteHeader(status)
		fmt.Fprint(rw, strings.ReplaceAll(text, "KEY", r.Header.Get("Authorization")))
	}))
}

func (w *ward) file(name, text string, mode os.FileMode) string {
	w.t.Helper()
	path := filepath.Join(w.settings.DataDir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *ward) program(script string) {
	w.settings.Agent.OpenCode = filepath.Join(w.settings.DataDir, "opencode")
	writeScript(w.t, w.settings.Agent.OpenCode, script)
}

func (w *ward) permissions(without string) map[string]string {
	needs, err := github.Needed()
	if err != nil {
		w.t.Fatal(err)
	}
	delete(needs.Permissions, without)
	return needs.Permissions
}

func (w *ward) events(without string) []string {
	needs, err := github.Needed()
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(needs.Events, func(e string) bool { return e == without })
}

func (w *ward) date(ahead time.Duration, status int) {
	at := time.Now().Add(-ahead).UTC().Format(http.TimeFormat)
	w.host.Inject(githubtest.Fault{On: "GET /app", Status: status, Header: http.Header{"Date": {at}}, Body: `{"slug":"ship"}`})
}

func (w *ward) redis(args ...string) {
	w.settings.Redis.URL = config.NewSecret(redistest.Start(w.t, args...).URL())
}

// said makes one check and those that it needs something of, and returns its
// lines.
func (w *ward) said(name string) string {
	w.t.Helper()
	var list []check
	for _, c := range checks() {
		platform, what, _ := strings.Cut(name, ".")
		wanted := c.name == name || what != "" && c.name == platform+".app" || what == "ping" && c.name == "serve" || what == "repositories" && c.name == "github.app"
		if wanted {
			list = append(list, c)
		}
	}
	var out strings.Builder
	broke := false
	err := diagnose(w.t.Context(), w.patient, list, func(f finding) error {
		broke = broke || f.Status == broken
		if f.Check == name || strings.HasPrefix(f.Check, name+".") {
			return sayText(&out)(f)
		}
		return nil
	})
	if (err != nil) != broke {
		w.t.Errorf("a check failed: %t, and the error is %v", broke, err)
	}
	for _, secret := range []string{rigSecret, modelKey, "s3cret-of-redis", "BEGIN RSA", "ghs_"} {
		if strings.Contains(out.String(), secret) {
			w.t.Errorf("a secret was printed:\n%s", &out)
		}
	}
	return out.String()
}

// TestDoctorsFindings: each thing that can be wrong, and the line that says so.
func TestDoctorsFindings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		check, name string
		change      func(*ward)
		// want are parts of what is said: the first is the beginning.
		want []string
	}{
		{"data_dir", "is not there", func(w *ward) { w.settings.DataDir += "/a/b" }, []string{"ok ", "/a/b is not there yet"}},
		{"data_dir", "is a file", func(w *ward) { w.settings.DataDir = w.file("f", "", 0o600) }, []string{"fail", "not a folder"}},
		{"data_dir", "below a file", func(w *ward) { w.settings.DataDir = w.file("f", "", 0o600) + "/x" }, []string{"fail", "not a directory"}},

		{"broker_key", "for everybody", func(w *ward) { w.file("broker.key", strings.Repeat("k", 32), 0o644) }, []string{"fail", "can be read by others"}},
		{"broker_key", "too short", func(w *ward) { w.file("broker.key", "k", 0o600) }, []string{"fail", "does not hold a key"}},

		{"redis", "nobody there", func(w *ward) { w.settings.Redis.URL = config.NewSecret("redis://:s3cret-of-redis@127.0.0.1:1") }, []string{"fail", "127.0.0.1:1", "→ start it, or correct redis.url"}},
		{"redis", "everysec", func(w *ward) { w.redis("--appendfsync", "everysec") }, []string{"warn", "a power cut loses about a second"}},
		{"redis", "no file", func(w *ward) { w.redis("--appendonly", "no") }, []string{"warn", "since its last snapshot"}},
		{"redis", "evicts", func(w *ward) { w.redis("--maxmemory-policy", "allkeys-lru") }, []string{"fail", "may evict sessions"}},
		{"redis", "embedded, not yet", func(*ward) {}, []string{"ok ", "embedded: ", "started by ship serve"}},
		{"redis", "embedded, path too long", func(w *ward) { w.settings.DataDir += strings.Repeat("/long", 30) }, []string{"fail", "set a shorter data_dir"}},

		{"sandbox", "not isolated", func(*ward) {}, []string{"warn", "the agent can read all that ship can", "set sandbox.local.isolation to bubblewrap"}},
		{"sandbox", "no such provider", func(w *ward) { w.settings.Sandbox.Provider = "moon" }, []string{"fail", `"moon" is not known`}},

		{"opencode", "the right one", func(w *ward) { w.program("echo " + opencodeVersion) }, []string{"ok ", opencodeVersion}},
		{"opencode", "another version", func(w *ward) { w.program("echo 1.2.3") }, []string{"warn", "has version 1.2.3", "npm install -g opencode-ai@" + opencodeVersion}},
		{"opencode", "another program", func(w *ward) { w.program("echo hello") }, []string{"fail", "does not tell its version", "hello"}},
		{"opencode", "broken", func(w *ward) { w.program("exit 3") }, []string{"fail", "exit status 3"}},
		{"opencode", "not there", func(w *ward) { w.settings.Agent.OpenCode = "/nothing" }, []string{"fail", "no program at /nothing", "→ correct agent.opencode"}},

		{"models", "good", func(*ward) {}, []string{"ok ", "does not refuse the key"}},
		{"models", "refused", func(w *ward) { w.answer(401, "KEY is no good") }, []string{"fail", "refuses the key (401)", "models.stand-in.api_key"}},
		{"models", "forbidden", func(w *ward) { w.answer(403, "") }, []string{"fail", "refuses the key (403)"}},
		{"models", "no list", func(w *ward) { w.answer(404, "") }, []string{"warn", "no list of models (404)"}},
		{"models", "slow down", func(w *ward) { w.answer(429, "") }, []string{"warn", "asks to slow down"}},
		{"models", "broken", func(w *ward) { w.answer(500, "KEY") }, []string{"fail", "answered 500"}},
		{"models", "redirects", func(w *ward) { w.answer(302, "") }, []string{"fail", "answered 302"}},
		{"models", "not listed", func(w *ward) { w.answer(200, `{"data":[{"id":"another"}]}`) }, []string{"warn", "does not list scripted"}},
		{"models", "listed", func(w *ward) { w.answer(200, `{"data":[{"id":"scripted"}]}`) }, []string{"ok "}},
		{"models", "no JSON", func(w *ward) { w.answer(200, `<html>KEY`) }, []string{"ok "}},
		{"models", "nobody there", func(w *ward) { w.settings.Models["stand-in"] = ModelProvider{BaseURL: "http://127.0.0.1:1"} }, []string{"fail", "cannot be reached", "connection refused"}},
		{"models", "silent", func(w *ward) {
			w.model.Store(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		}, []string{"fail", "cannot be reached"}},
		{"models", "none", func(w *ward) { w.settings.Models = nil }, []string{"fail", "no model is set up"}},

		{"default_model", "none", func(w *ward) { w.settings.Models = nil }, []string{"fail", "no model to use"}},
		{"default_model", "free", func(w *ward) { w.settings.Models["stand-in"].Models["scripted"] = Price{} }, []string{"warn", "no budget ends a turn"}},

		{"serve", "does not run", func(w *ward) { w.ship.Close() }, []string{"warn", "no ship answers", "→ start it: ship serve"}},
		{"serve", "is another", func(w *ward) { w.door.Store(http.HandlerFunc(http.NotFound)) }, []string{"warn", "no ship answers"}},
		{"serve", "not ready", func(w *ward) { w.ready.Store(false) }, []string{"fail", "is not ready (503)"}},

		{"github.app", "not set up", func(w *ward) { w.settings.GitHub = github.Settings{} }, []string{"fail", "→ ship setup github"}},
		{"github.app", "no key", func(w *ward) { w.settings.GitHub.PrivateKey = config.NewSecret("-----BEGIN RSA PRIVATE KEY-----\nx") }, []string{"fail", "private_key"}},
		{"github.app", "another's key", func(w *ward) { w.settings.GitHub.PrivateKey = config.NewSecret(anotherKey(w.t)) }, []string{"fail", "does not accept app_id 4242 with this key", "github.clock"}},
		{"github.app", "another id", func(w *ward) { w.settings.GitHub.AppID = 7 }, []string{"fail", "does not accept app_id 7"}},
		{"github.app", "broken", func(w *ward) { w.date(0, 503) }, []string{"fail", "GitHub answered 503"}},
		{"github.app", "not there", func(w *ward) { w.settings.GitHub.APIURL = "http://127.0.0.1:1" }, []string{"fail", "GitHub cannot be reached", "connection refused"}},

		{"github.clock", "a little ahead", func(w *ward) { w.date(10*time.Second, 200) }, []string{"warn", "ahead of GitHub's"}},
		{"github.clock", "behind and refused", func(w *ward) { w.date(-time.Hour, 401) }, []string{"fail", "behind GitHub's, which GitHub refuses", "NTP"}},
		{"github.clock", "unknown", func(w *ward) { w.settings.GitHub.APIURL = "http://127.0.0.1:1" }, []string{"skip", "because GitHub did not answer"}},

		{"github.permissions", "one lacks", func(w *ward) { w.host.SetApp(w.permissions("checks"), w.events("")) }, []string{"fail", "does not ask for checks: write"}},
		{"github.permissions", "one is less", func(w *ward) {
			p := w.permissions("")
			p["contents"] = "read"
			w.host.SetApp(p, w.events(""))
		}, []string{"fail", "does not ask for contents: write"}},
		{"github.permissions", "workflows too", func(w *ward) {
			p := w.permissions("")
			p["workflows"] = "write"
			w.host.SetApp(p, w.events(""))
		}, []string{"ok ", "and workflows: write"}},
		{"github.permissions", "no app", func(w *ward) { w.settings.GitHub = github.Settings{} }, []string{"skip", "because github.app failed"}},
		{"github.events", "one lacks", func(w *ward) { w.host.SetApp(w.permissions(""), w.events("issue_comment")) }, []string{"fail", "is not sent issue_comment"}},

		{"github.webhook", "elsewhere", func(w *ward) {
			w.host.SetHook(githubtest.Hook{URL: "https://old.example.com/webhooks/github", ContentType: "json"})
		}, []string{"fail", "GitHub sends to https://old.example.com/webhooks/github, but public_url says"}},
		{"github.webhook", "a form", func(w *ward) {
			w.host.SetHook(githubtest.Hook{URL: w.settings.PublicURL + hookPath, ContentType: "form"})
		}, []string{"fail", "content type is form"}},
		{"github.webhook", "nowhere", func(w *ward) { w.host.SetHook(githubtest.Hook{ContentType: "json"}) }, []string{"fail", "sends no webhooks"}},
		{"github.webhook", "certificate not looked at", func(w *ward) {
			w.settings.PublicURL = "https://ship.example.com"
			w.host.SetHook(githubtest.Hook{URL: w.settings.PublicURL + hookPath, ContentType: "json", Insecure: true})
		}, []string{"warn", "without verifying its certificate"}},
		{"github.webhook", "no public_url", func(w *ward) { w.settings.PublicURL = "" }, []string{"warn", "public_url is not set"}},
		{"github.webhook", "broken", func(w *ward) { w.host.Inject(githubtest.Fault{On: "GET /app/hook/config", Status: 502}) }, []string{"fail", "GitHub answered 502"}},

		{"github.installations", "suspended", func(w *ward) { w.host.Suspend("acme", true) }, []string{"ok ", "\nwarn", "acme: suspended"}},
		{"github.installations", "not accepted", func(w *ward) { w.host.SetAppPermission("acme", "checks", "") }, []string{"ok ", "\nwarn", "acme: not granted checks: write"}},
		{"github.installations", "no repository", func(w *ward) { w.host.Uninstall(rigRepo) }, []string{"ok ", "\nwarn", "acme: on no repository"}},
		{"github.installations", "two", func(w *ward) { w.host.InstallationID("umbrella") }, []string{"ok ", "on 2 accounts", "acme: 1 repository", "umbrella: on no repository"}},
		{"github.installations", "no token", func(w *ward) {
			w.host.Inject(githubtest.Fault{On: "POST /app/installations/{installation_id}/access_tokens", Status: 500})
		}, []string{"ok ", "\nfail", "answered 500 when asked for a token"}},
		{"github.installations", "broken", func(w *ward) { w.host.Inject(githubtest.Fault{On: "GET /app/installations", Status: 500}) }, []string{"fail", "GitHub answered 500"}},

		{"github.ping", "other secret", func(w *ward) { w.door.Store(w.front("another secret")) }, []string{"fail", "refuses the signature (401)"}},
		{"github.ping", "second secret unknown", func(w *ward) {
			w.settings.GitHub.WebhookSecret = config.NewSecrets(rigSecret, "a newer secret")
		}, []string{"fail", "refuses the signature (401)"}},
		{"github.ping", "no secret", func(w *ward) { w.settings.GitHub.WebhookSecret = nil }, []string{"fail", "no webhook secret"}},
		{"github.ping", "other app", func(w *ward) { w.settings.GitHub.AppID = 7 }, []string{"fail", "belongs to another app"}},
		{"github.ping", "not led there", func(w *ward) { w.hook(404, "") }, []string{"fail", "is not there (404)"}},
		{"github.ping", "a stranger", func(w *ward) { w.hook(200, "<html>hello") }, []string{"fail", "it is not ship"}},
		{"github.ping", "redirects", func(w *ward) { w.hook(308, "") }, []string{"fail", "redirects (308)"}},
		{"github.ping", "unavailable", func(w *ward) { w.hook(503, "") }, []string{"fail", "(503)"}},
		{"github.ping", "proxy without ship", func(w *ward) {
			w.hook(502, "")
			w.settings.Listen = "127.0.0.1:1"
		}, []string{"warn", "answered 502", "again when ship serve runs"}},
		{"github.ping", "public_url leads nowhere", func(w *ward) { w.settings.PublicURL = "http://127.0.0.1:1" }, []string{"fail", "cannot be reached"}},
		{"github.ping", "not running, not public", func(w *ward) { w.settings.PublicURL = ""; w.ship.Close() }, []string{"warn", "nothing was sent"}},
		{"github.ping", "running, not public", func(w *ward) { w.settings.PublicURL = "" }, []string{"ok ", "accepts a signed ping"}},
	} {
		t.Run(c.check+" "+c.name, func(t *testing.T) {
			t.Parallel()
			w := newWard(t)
			c.change(w)
			said := w.said(c.check)
			if !strings.HasPrefix(said, c.want[0]) {
				t.Errorf("it should begin with %q:\n%s", c.want[0], said)
			}
			for _, want := range c.want[1:] {
				if !strings.Contains(said, want) {
					t.Errorf("%q was not said:\n%s", want, said)
				}
			}
		})
	}
}

func anotherKey(t *testing.T) string {
	t.Helper()
	other, err := githubtest.New(githubtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	return other.PrivateKey()
}

// TestDoctorSeesInstalledNowhere needs an app without the first installation.
func TestDoctorSeesInstalledNowhere(t *testing.T) {
	t.Parallel()
	got := checkInstallations(t.Context(), &patient{hub: emptyHub{}, about: github.About{URL: "https://github.com/apps/ship"}})
	if len(got) != 1 || got[0].Status != broken || got[0].Remedy != "install it: https://github.com/apps/ship/installations/new" {
		t.Errorf("%+v", got)
	}
}

// emptyHub is a GitHub where the app is installed nowhere.
type emptyHub struct{ hub }

func (emptyHub) Installations(context.Context) ([]github.Installed, error) { return nil, nil }

// TestDoctorBesideTheEmbeddedRedis looks at the server that runs.
func TestDoctorBesideTheEmbeddedRedis(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	dir, err := os.MkdirTemp("/tmp", "ship-doc-") // short, for the socket in it
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	w.settings.DataDir = dir
	server, err := redis.Embedded(t.Context(), filepath.Join(dir, "redis"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if said := w.said("redis"); !strings.HasPrefix(said, "ok ") || !strings.Contains(said, "embedded, running: Redis ") {
		t.Error(said)
	}
}

// TestDoctorWantsARedisThatIsNewEnough puts others on the PATH.
func TestDoctorWantsARedisThatIsNewEnough(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for script, want := range map[string]string{
		"echo 'Redis server v=6.2.7 sha=0'":  "fail has version 6.2.7",
		"echo 'Redis server v=7.0.15 sha=0'": "ok 7.0.15, started by ship serve",
		"echo 'Valkey server v=8.1.0 sha=0'": "ok 8.1.0, started by ship serve",
		"echo 'something else'":              "warn does not tell its version",
		"exit 1":                             "fail does not start",
	} {
		writeScript(t, filepath.Join(dir, "redis-server"), script)
		got := checkRedisServer(t.Context())
		status, what, _ := strings.Cut(want, " ")
		if string(got.Status) != status || !strings.Contains(got.What, what) {
			t.Errorf("%s: %+v", script, got)
		}
	}
}

// TestDoctorReadsSettings: every problem is a line.
func TestDoctorReadsSettings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ship.yaml")
	if err := os.WriteFile(path, []byte("lissten: x\nsandbox: {max: 0}\ngithub: {webhook_secret: s3cret-of-the-webhook}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := diagnose(t.Context(), &patient{configPath: path}, checks(), sayText(&out))
	absent := len(linearChecks()) + len(slackChecks()) // neither is in these settings
	if err == nil || strings.Count(out.String(), "\nskip ") != len(checks())-1-absent || strings.Contains(out.String(), "s3cret") {
		t.Errorf("%v\n%s", err, &out)
	}
	for _, want := range []string{"there is no such setting → did you mean listen?", "sandbox.max", "github.app_id is missing", "not checked, because settings failed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q was not said:\n%s", want, &out)
		}
	}
	out.Reset()
	_ = diagnose(t.Context(), &patient{}, checks()[:1], sayText(&out))
	if !strings.Contains(out.String(), "the environment alone is used") {
		t.Error(out.String())
	}
	out.Reset()
	_ = diagnose(t.Context(), &patient{configPath: path + "x"}, checks()[:1], sayText(&out))
	if !strings.Contains(out.String(), "there is no file") {
		t.Error(out.String())
	}
}

// TestFindingsAreClean: what others say cannot draw on the terminal, fill it,
// or hold a secret.
func TestFindingsAreClean(t *testing.T) {
	t.Parallel()
	p := &patient{}
	p.settings.Redis.URL = config.NewSecret("redis://user:s3cret-of-redis@host:6379")
	p.settings.GitHub.PrivateKey = config.NewSecret("-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----")
	f := bad("and s3cret-of-redis", "one\ntwo\x1b[31m %s MIIEowIBAAKCAQEA", strings.Repeat("x", 2000)).clean(p)
	if strings.ContainsAny(f.What, "\n\x1b") || len(f.What) > 620 || !strings.HasPrefix(f.What, "one two[31m x") || f.Remedy != "and [redacted]" {
		t.Errorf("%q %q", f.What, f.Remedy)
	}
	if got := bad("", "key MIIEowIBAAKCAQEA").clean(p); got.What != "key [redacted]" {
		t.Errorf("%q", got.What)
	}
}

// TestOpenCodeVersionIsOne: what is installed is what the doctor wants.
func TestOpenCodeVersionIsOne(t *testing.T) {
	t.Parallel()
	for _, path := range []string{".ci/setup", "README.md"} {
		b, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), opencodeVersion) {
			t.Errorf("%s speaks of another version than %s", path, opencodeVersion)
		}
	}
}
