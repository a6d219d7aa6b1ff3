package opencode

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/sandbox"
)

// repo is a repository in a hostBox.
type repo struct {
	t   *testing.T
	box *hostBox
	dir string
}

// newRepo commits the files. A value that begins with "->" is a link.
func newRepo(t *testing.T, files map[string]string) *repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	box := newHostBox(t)
	r := &repo{t: t, box: box, dir: box.path(sandbox.RepoDir)}
	r.git("init", "-q", "-b", "main")
	r.put(files)
	r.git("add", "-A")
	r.git("commit", "-qm", "first")
	return r
}

func (r *repo) put(files map[string]string) {
	r.t.Helper()
	for name, text := range files {
		path := filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatal(err)
		}
		var err error
		if target, link := strings.CutPrefix(text, "->"); link {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *repo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

// status is git's short status, sorted by git.
func (r *repo) status() string { return r.git("status", "--porcelain", "-uall") }

func (r *repo) read(name string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

func (r *repo) has(name string) bool {
	_, err := os.Lstat(filepath.Join(r.dir, name))
	return err == nil
}

func (r *repo) shelve() {
	r.t.Helper()
	if err := Shelve(r.t.Context(), r.box); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repo) unshelve() {
	r.t.Helper()
	if err := Unshelve(r.t.Context(), r.box); err != nil {
		r.t.Fatal(err)
	}
}

var hostile = map[string]string{
	"README.md":                         "hello\n",
	".opencode/plugins/evil.js":         "export default 1\n",
	".opencode/agent/ old\nfriend .md":  "odd name\n",
	"pkg/web/.opencode/command/x.md":    "nested\n",
	"pkg/web/main.go":                   "package web\n",
	"linked/.opencode":                  "->../elsewhere",
	"dangling/.opencode":                "->nowhere",
	"elsewhere/plugins/evil.js":         "export default 2\n",
	".opencode/.opencode/plugins/in.js": "inside\n",
}

func TestShelfHidesAndRestores(t *testing.T) {
	t.Parallel()
	r := newRepo(t, hostile)
	r.put(map[string]string{".opencode/untracked.txt": "mine\n", "README.md": "changed\n"})
	before := r.status()
	for range 2 { // twice: a repeat changes nothing
		r.shelve()
		for _, name := range []string{".opencode", "pkg/web/.opencode", "linked/.opencode", "dangling/.opencode"} {
			if r.has(name) {
				t.Errorf("%s is still in the repository", name)
			}
		}
		if got := r.status(); got != " M README.md" {
			t.Errorf("status while shelved:\n%s", got)
		}
	}
	for range 2 {
		r.unshelve()
		if diff := cmp.Diff(before, r.status()); diff != "" {
			t.Errorf("status afterwards (-before +after):\n%s", diff)
		}
	}
	for name, text := range hostile {
		if name != "README.md" && !strings.HasPrefix(text, "->") && r.read(name) != text {
			t.Errorf("%s holds %q", name, r.read(name))
		}
	}
	if target, err := os.Readlink(filepath.Join(r.dir, "linked/.opencode")); target != "../elsewhere" {
		t.Errorf("link leads to %q, %v", target, err)
	}
	if r.read(".opencode/untracked.txt") != "mine\n" {
		t.Error("the untracked file was lost")
	}
}

func TestShelfSurvivesTheAgentsOwnCommit(t *testing.T) {
	t.Parallel()
	r := newRepo(t, hostile)
	r.shelve()
	r.put(map[string]string{"new.go": "package main\n"})
	r.git("add", "-A")
	r.git("commit", "-qam", "by the agent")
	r.unshelve()
	if got := r.git("diff", "--name-status", "HEAD~1", "HEAD"); got != "A\tnew.go" {
		t.Errorf("the agent's commit holds:\n%s", got)
	}
	if got := r.status(); got != "" {
		t.Errorf("status afterwards:\n%s", got)
	}
}

func TestShelfFollowsAMerge(t *testing.T) {
	t.Parallel()
	r := newRepo(t, hostile)
	r.git("checkout", "-q", "-b", "other")
	r.put(map[string]string{".opencode/plugins/evil.js": "newer\n"})
	r.git("rm", "-q", "pkg/web/.opencode/command/x.md")
	r.git("commit", "-qam", "other")
	r.git("checkout", "-q", "main")
	r.put(map[string]string{"a.txt": "a\n"})
	r.git("add", "-A")
	r.git("commit", "-qm", "main")
	r.shelve()
	r.git("merge", "-q", "--no-edit", "other")
	r.unshelve()
	if got := r.read(".opencode/plugins/evil.js"); got != "newer\n" {
		t.Errorf("the merged file holds %q", got)
	}
	if got := r.status(); got != "" {
		t.Errorf("status afterwards:\n%s", got)
	}
}

func TestShelfKeepsWhatTheAgentMade(t *testing.T) {
	t.Parallel()
	r := newRepo(t, hostile)
	r.put(map[string]string{".opencode/plugins/evil.js": "changed before\n"})
	r.shelve()
	r.put(map[string]string{".opencode/agent/new.md": "asked for\n"})
	r.shelve() // the next turn, without a commit in between
	if r.has(".opencode") {
		t.Error("what the agent made is still active")
	}
	r.unshelve()
	if got := r.read(".opencode/agent/new.md"); got != "asked for\n" {
		t.Errorf("the agent's file holds %q", got)
	}
	if got := r.read(".opencode/plugins/evil.js"); got != "changed before\n" {
		t.Errorf("the changed file holds %q", got)
	}
	want := " M .opencode/plugins/evil.js\n?? .opencode/agent/new.md"
	if diff := cmp.Diff(want, r.status()); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestShelfWhenTheFolderAroundItIsGone(t *testing.T) {
	t.Parallel()
	r := newRepo(t, hostile)
	r.shelve()
	r.git("clean", "-fdq") // removes folders that are empty now
	if err := os.RemoveAll(filepath.Join(r.dir, "pkg")); err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	r.put(map[string]string{"pkg": "->" + outside})
	r.unshelve()
	if got := r.status(); strings.Contains(got, "linked/.opencode") || strings.Contains(got, "dangling") {
		t.Errorf("status afterwards:\n%s", got)
	}
	if list, _ := os.ReadDir(outside); len(list) > 0 {
		t.Errorf("something was written through the link: %v", list)
	}
}

func TestShelfWithoutGitOrRepository(t *testing.T) {
	t.Parallel()
	box := newHostBox(t)
	r := &repo{t: t, box: box, dir: box.path(sandbox.RepoDir)}
	r.put(map[string]string{".opencode/plugins/p.js": "x"})
	r.shelve()
	if r.has(".opencode") {
		t.Error(".opencode is still there")
	}
	r.unshelve()
	if r.read(".opencode/plugins/p.js") != "x" {
		t.Error("the file was lost")
	}
	// Without a repository there is nothing to do.
	if err := os.Rename(r.dir, r.dir+".away"); err != nil {
		t.Fatal(err)
	}
	r.shelve()
	r.unshelve()
}
