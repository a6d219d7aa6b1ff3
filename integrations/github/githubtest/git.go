package githubtest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// zeroSHA stands for a branch that is not there.
const zeroSHA = "0000000000000000000000000000000000000000"

func (s *Server) bare(r *repository) string {
	return filepath.Join(s.dir, "repos", r.owner.login, r.name+".git")
}

// gitEnv keeps the machine's and the user's git settings out.
func (s *Server) gitEnv() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(s.dir, "home"),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
	}
}

// git runs git in a bare repository.
func (s *Server) git(r *repository, stdin string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = s.bare(r), s.gitEnv(), strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// CreateRepo makes a repository OWNER/NAME with one commit of these files on
// the branch main. The app is installed on it.
func (s *Server) CreateRepo(name string, files map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.newRepo(name)
	if err != nil {
		return err
	}
	_, err = s.commit(r, r.base, files, "Initial commit")
	return err
}

func (s *Server) newRepo(name string) (*repository, error) {
	owner, base, ok := strings.Cut(name, "/")
	if !ok || s.repo(name) != nil {
		return nil, fmt.Errorf("create repository %s: the name is taken or not OWNER/NAME", name)
	}
	r := &repository{
		id: s.newID(), owner: s.person(owner), name: base, base: "main", installed: true,
		rights: map[string]string{strings.ToLower(owner): "admin"}, issues: map[int]*issue{}, created: clock(),
	}
	if err := os.MkdirAll(s.bare(r), 0o700); err != nil {
		return nil, fmt.Errorf("create repository %s: %w", name, err)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--bare", "--initial-branch=" + r.base},
		{"config", "http.receivepack", "true"},
	} {
		if _, err := s.git(r, "", args...); err != nil {
			return nil, fmt.Errorf("create repository %s: %w", name, err)
		}
	}
	s.installed(owner)
	s.repos[strings.ToLower(name)] = r
	return r, nil
}

// Fork copies a repository to another account, where the app is not installed,
// and returns its name.
func (s *Server) Fork(repo, owner string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.must(repo)
	fork, err := s.newRepo(owner + "/" + from.name)
	if err != nil {
		return "", err
	}
	fork.parent, fork.installed = from, false
	_, err = s.git(fork, "", "fetch", "--quiet", s.bare(from), "+refs/heads/*:refs/heads/*")
	return fork.full(), err
}

// Commit puts files on a branch, which it makes from the default branch when
// there is none, and returns the commit. It is what a person's push does.
func (s *Server) Commit(repo, branch string, files map[string]string, message string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit(s.must(repo), branch, files, message)
}

func (s *Server) commit(r *repository, branch string, files map[string]string, message string) (string, error) {
	return s.push(r, change{branch: branch, author: "person@example.com", message: message, files: files})
}

// change is a commit to be made.
type change struct {
	branch string
	// author is an address.
	author, message string
	files           map[string]string
}

func (s *Server) push(r *repository, c change) (string, error) {
	var in strings.Builder
	r.pushed = clock()
	fmt.Fprintf(&in, "commit refs/heads/%s\n", c.branch)
	fmt.Fprintf(&in, "author A Person <%s> %d +0000\n", c.author, r.pushed.Unix())
	fmt.Fprintf(&in, "committer A Person <person@example.com> %d +0000\n", r.pushed.Unix())
	fmt.Fprintf(&in, "data %d\n%s\n", len(c.message), c.message)
	if parent := cmpOr(s.head(r, c.branch), s.head(r, r.base)); parent != zeroSHA {
		fmt.Fprintf(&in, "from %s\n", parent)
	}
	for _, path := range slices.Sorted(maps.Keys(c.files)) {
		fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", path, len(c.files[path]), c.files[path])
	}
	if _, err := s.git(r, in.String(), "fast-import", "--quiet"); err != nil {
		return "", fmt.Errorf("commit to %s: %w", r.full(), err)
	}
	return s.head(r, c.branch), nil
}

func cmpOr(sha, other string) string {
	if sha != zeroSHA {
		return sha
	}
	return other
}

// head returns the commit of a branch, or zeroSHA.
func (s *Server) head(r *repository, branch string) string {
	sha, err := s.git(r, "", "rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
	if err != nil {
		return zeroSHA
	}
	return sha
}

func (s *Server) hasCommit(r *repository, sha string) bool {
	if len(sha) != 40 {
		return false
	}
	_, err := s.git(r, "", "cat-file", "-e", sha+"^{commit}")
	return err == nil
}

// refresh looks up where a pull request's branches are now.
func (s *Server) refresh(r *repository, p *pull) {
	if sha := s.head(p.headRepo, p.head); sha != zeroSHA {
		p.headSHA = sha
	}
	if sha := s.head(r, p.base); sha != zeroSHA {
		p.baseSHA = sha
	}
}

// DeleteBranch removes a branch.
func (s *Server) DeleteBranch(repo, branch string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.git(s.must(repo), "", "update-ref", "-d", "refs/heads/"+branch)
	return err
}

// serveGit is git over smart HTTP: real git behind GitHub's access rules.
func (s *Server) serveGit(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("owner") + "/" + strings.TrimSuffix(r.PathValue("repo"), ".git")
	service := r.URL.Query().Get("service")
	if r.Method == http.MethodPost {
		service = r.PathValue("action")
	}
	if s.Strike(w, r, "GIT "+strings.TrimPrefix(service, "git-")) {
		return
	}
	if !s.mayGit(w, r, name, service) {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left
	}
	// Names are compared without case, and the suffix may be left out.
	r.URL.Path = "/" + s.canonical(name) + ".git" + strings.TrimPrefix(r.URL.Path, "/"+r.PathValue("owner")+"/"+r.PathValue("repo"))
	// CGI needs to know how long the body is, which a chunked one does not say.
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	backend := &cgi.Handler{
		Path: "/bin/sh", Args: []string{"-c", "exec git http-backend"}, Root: "/",
		Env:    append(s.gitEnv(), "GIT_PROJECT_ROOT="+filepath.Join(s.dir, "repos"), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=x-access-token"),
		Stderr: io.Discard,
	}
	backend.ServeHTTP(w, r)
	if r.Method == http.MethodPost && service == "git-receive-pack" {
		s.SetPushed(name, clock())
	}
}

func (s *Server) canonical(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.must(name).full()
}

// mayGit answers itself when the token does not do.
func (s *Server) mayGit(w http.ResponseWriter, r *http.Request, name, service string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	user, password, ok := r.BasicAuth()
	t := s.live(password)
	if !ok || user != "x-access-token" || t == nil {
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, "Authentication failed", http.StatusUnauthorized)
		return false
	}
	need := "contents=read"
	if service == "git-receive-pack" {
		need = "contents=write"
	}
	switch {
	case !t.reaches(s.repo(name)):
		http.Error(w, "Repository not found.", http.StatusNotFound)
	case !t.allows(need):
		http.Error(w, "Write access to repository not granted.", http.StatusForbidden)
	default:
		return true
	}
	return false
}

// ahead tells whether head has commits that base lacks.
func (s *Server) ahead(r *repository, p *pull) bool {
	if p.headRepo != r {
		return true
	}
	n, err := s.git(r, "", "rev-list", "--count", p.baseSHA+".."+p.headSHA)
	if err != nil {
		return false
	}
	count, err := strconv.Atoi(n)
	return err == nil && count > 0
}
