package github

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ship/integrations/github/githubtest"
	"ship/session"
)

// TestGitCredential: it clones and pushes this repository, and can do nothing
// else: not another repository, and no API.
func TestGitCredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.CreateRepo("acme/secrets", map[string]string{"x": "y"}))
	user, password, err := w.GitCredential(t.Context(), w.repo().key())
	w.must(err)
	clone, err := w.CloneURL(w.repo().key())
	w.must(err)
	dir := filepath.Join(t.TempDir(), "clone")
	authorised := strings.Replace(clone, "://", "://"+user+":"+password+"@", 1)
	git(t, "", "clone", "--quiet", authorised, dir)
	git(t, dir, "checkout", "--quiet", "-b", "ship/work")
	w.must(os.WriteFile(filepath.Join(dir, "big.txt"), []byte(strings.Repeat("0123456789abcdef\n", 1<<17)), 0o600))
	git(t, dir, "add", ".")
	git(t, dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "Work")
	git(t, dir, "push", "--quiet", "origin", "ship/work")
	if _, ok := w.Branches(widgets)["ship/work"]; !ok {
		t.Error("nothing was pushed")
	}
	other := strings.Replace(authorised, "widgets", "secrets", 1)
	if out, err := gitOutput("", "ls-remote", other); err == nil {
		t.Errorf("another repository was read: %s", out)
	}
	if status := w.get(t, "/repos/acme/widgets/issues/1", password); status != http.StatusForbidden {
		t.Errorf("the issues answer %d", status)
	}
	if status := w.get(t, "/repos/acme/secrets", password); status != http.StatusNotFound {
		t.Errorf("another repository answers %d", status)
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	if out, err := gitOutput(dir, args...); err != nil {
		t.Fatalf("git %s: %v: %s", args[0], err, out)
	}
}

func gitOutput(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (w *world) get(t *testing.T, path, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.APIURL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "token "+token)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestGitCredentialIsKeptUntilItIsOld(t *testing.T) {
	t.Parallel()
	const mint = "POST /app/installations/{installation_id}/access_tokens"
	for name, tt := range map[string]struct {
		ttl   time.Duration
		mints int
	}{"fresh": {time.Hour, 1}, "about to expire": {4 * time.Minute, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(o *githubtest.Options, _ *Config) { o.TokenTTL = tt.ttl })
			for range 2 {
				if _, _, err := w.GitCredential(t.Context(), w.repo().key()); err != nil {
					t.Fatal(err)
				}
			}
			if n := w.Calls(mint); n != tt.mints {
				t.Errorf("minted %d times, want %d", n, tt.mints)
			}
		})
	}
}

func TestGitCredentialMayChangeWorkflowsIfTheAppMay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.SetAppPermission("acme", "workflows", "write")
	if _, _, err := w.GitCredential(t.Context(), w.repo().key()); err != nil {
		t.Fatal(err)
	}
	if got := w.LastToken(); got["workflows"] != "write" || got["contents"] != "write" || got["issues"] != "" {
		t.Errorf("permissions %v", got)
	}
}

func TestGitCredentialRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Uninstall(widgets)
	for _, key := range []string{w.repo().key(), "1/2/acme/widgets", "nonsense"} {
		_, _, err := w.GitCredential(t.Context(), key)
		var p *session.Problem
		if !errors.As(err, &p) || p.Again || p.Say == "" {
			t.Errorf("%q: got %v", key, err)
		}
	}
}
