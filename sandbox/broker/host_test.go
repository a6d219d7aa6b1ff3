package broker

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const password = "ghs_installation_0123456789"

// codeHost serves real repositories with git's own server, to those who have
// the password.
type codeHost struct {
	t    *testing.T
	root string
	url  string
	mu   sync.Mutex
	seen []string // METHOD PATH?QUERY Git-Protocol
}

func newCodeHost(t *testing.T) *codeHost {
	t.Helper()
	dir, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Skip("git is not installed")
	}
	backend := filepath.Join(strings.TrimSpace(string(dir)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("git-http-backend is not installed")
	}
	h := &codeHost{t: t, root: t.TempDir()}
	program := &cgi.Handler{Path: backend, Env: append(gitEnv(t), "GIT_PROJECT_ROOT="+h.root, "GIT_HTTP_EXPORT_ALL=1"), Stderr: io.Discard}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.serve(w, r, program) }))
	t.Cleanup(srv.Close)
	h.url = srv.URL
	return h
}

func (h *codeHost) serve(w http.ResponseWriter, r *http.Request, program http.Handler) {
	h.mu.Lock()
	h.seen = append(h.seen, strings.TrimSpace(fmt.Sprint(r.Method, " ", r.URL, " ", r.Header.Get("Git-Protocol"))))
	h.mu.Unlock()
	if user, pass, _ := r.BasicAuth(); user != "x-access-token" || pass != password {
		w.Header().Set("WWW-Authenticate", "Basic")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.ContentLength < 0 { // CGI cannot be told of a body without a length
		spool, err := os.CreateTemp(h.t.TempDir(), "body")
		if err != nil {
			h.t.Error(err)
			return
		}
		defer spool.Close()
		if r.ContentLength, err = io.Copy(spool, r.Body); err != nil {
			return // the client broke off
		}
		if _, err := spool.Seek(0, io.SeekStart); err != nil {
			h.t.Error(err)
		}
		r.Body, r.TransferEncoding = spool, nil
	}
	program.ServeHTTP(w, r)
}

func (h *codeHost) requests() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.seen, "\n")
}

// add makes a repository with one commit on main.
func (h *codeHost) add(name string) {
	h.t.Helper()
	bare := filepath.Join(h.root, name+".git")
	g := git{h.t, h.t.TempDir(), nil}
	g.must("init", "-q", "-b", "main")
	g.commit("README.md", "hello")
	g.must("clone", "-q", "--bare", g.dir, bare)
	git{h.t, bare, nil}.must("config", "http.receivepack", "true")
}

// refs of a repository, by name.
func (h *codeHost) refs(name string) string {
	h.t.Helper()
	return git{h.t, filepath.Join(h.root, name+".git"), nil}.must("for-each-ref", "--format=%(refname) %(objectname)")
}

func gitEnv(t *testing.T) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
}

// git runs the real client in a folder.
type git struct {
	t   *testing.T
	dir string
	// config is given with every command: -c key=value.
	config []string
}

func (g git) run(args ...string) (string, error) {
	g.t.Helper()
	var all []string
	for _, c := range g.config {
		all = append(all, "-c", c)
	}
	cmd := exec.CommandContext(g.t.Context(), "git", append(all, args...)...)
	cmd.Dir, cmd.Env = g.dir, gitEnv(g.t)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (g git) must(args ...string) string {
	g.t.Helper()
	out, err := g.run(args...)
	if err != nil {
		g.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (g git) commit(file, content string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, file), []byte(content), 0o644); err != nil {
		g.t.Fatal(err)
	}
	g.must("add", ".")
	g.must("commit", "-q", "-m", file)
}

// noise writes a file that cannot be compressed.
func (g git) noise(file string, size int64) {
	g.t.Helper()
	f, err := os.Create(filepath.Join(g.dir, file))
	if err != nil {
		g.t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.CopyN(f, rand.Reader, size); err != nil {
		g.t.Fatal(err)
	}
}

// gitBench is a bench with a code host behind it, and a clone in a box.
type gitBench struct {
	*bench
	host *codeHost
}

func newGitBench(t *testing.T) *gitBench {
	t.Helper()
	h := newCodeHost(t)
	h.add("Octo/Widgets")
	h.add("octo/secrets")
	return &gitBench{newBench(t, Config{GitURL: h.url, Credentials: fixed{user: "x-access-token", password: password}}), h}
}

func (b *gitBench) remote(name string) string { return b.url + "/broker/git/" + name + ".git" }

// clone as a process in the box of a turn does; further configuration follows.
func (b *gitBench) clone(g Grant, config ...string) git {
	b.Helper()
	c := git{b.T, b.TempDir(), append(config, "http.extraHeader=Authorization: Bearer "+b.token(g))}
	c.must("clone", "-q", b.remote("octo/widgets"), c.dir)
	return c
}
