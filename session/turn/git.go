package turn

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ship/sandbox"
	"ship/session"
)

// repository does git's part of a turn, inside the box. The remote is the
// broker, which adds the credential outside: there is none in any URL,
// setting, environment or file here.
type repository struct {
	box    sandbox.Box
	name   string // OWNER/NAME
	base   string
	branch string
	author Identity
}

// gitTimeout bounds one git command; a large clone takes its time.
const gitTimeout = 20 * time.Minute

// errConflict: what was pushed meanwhile by others touches the same lines.
var errConflict = errors.New("somebody else's commits conflict")

// gitFlags keep whatever the repository or the agent has configured from
// running code or changing what our own commands do.
func gitFlags() []string {
	return []string{
		"git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
		"-c", "safe.directory=*", "-c", "protocol.file.allow=never", "-c", "commit.gpgSign=false",
		"-c", "gc.auto=0", "-c", "core.pager=cat", "-c", "credential.helper=",
	}
}

func (r *repository) env() []string {
	return []string{
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=" + r.author.Name, "GIT_AUTHOR_EMAIL=" + r.author.Email,
		"GIT_COMMITTER_NAME=" + r.author.Name, "GIT_COMMITTER_EMAIL=" + r.author.Email,
	}
}

// git runs one command and returns what it printed, without the last newline.
func (r *repository) git(ctx context.Context, stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	out, err := sandbox.Exec(ctx, r.box, sandbox.Command{
		Name: processName("git"), Args: append(gitFlags(), args...),
		Env: r.env(), Dir: r.dir(args), Stdin: []byte(stdin),
	})
	text := strings.TrimRight(string(out.Data), "\n")
	if err != nil {
		return text, fmt.Errorf("git %s: %w", args[0], err)
	}
	if out.ExitCode != 0 {
		return text, &gitError{Command: args[0], Code: out.ExitCode, Output: text}
	}
	return text, nil
}

// dir is where git runs: init comes before there is a repository.
func (r *repository) dir(args []string) string {
	if args[0] == "init" {
		return sandbox.WorkDir
	}
	return sandbox.RepoDir
}

// gitError is a git command that ran and said no.
type gitError struct {
	Command string
	Code    int
	Output  string
}

func (e *gitError) Error() string {
	text := e.Output
	if len(text) > 600 {
		text = "…" + text[len(text)-600:]
	}
	return fmt.Sprintf("git %s: exit %d: %s", e.Command, e.Code, text)
}

func said(err error, words ...string) bool {
	var g *gitError
	if !errors.As(err, &g) {
		return false
	}
	for _, w := range words {
		if strings.Contains(g.Output, w) {
			return true
		}
	}
	return false
}

// httpStatus is how git words a status, but for 404, of which it says something
// else. Of the rest that it prints nothing can be concluded: branches and commits
// have numbers in their names too.
var httpStatus = regexp.MustCompile(`(?:returned error:|RPC failed; HTTP) ([0-9]{3})\b`)

// status is the HTTP status that git ran into; zero: none.
func status(err error) int {
	var g *gitError
	if !errors.As(err, &g) {
		return 0
	}
	if strings.Contains(g.Output, "fatal: repository '") && strings.Contains(g.Output, "' not found") {
		return http.StatusNotFound
	}
	found := httpStatus.FindStringSubmatch(g.Output)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1]) // three digits
	return n
}

// forbidden: the other side said no, and will say it again.
func forbidden(err error) bool {
	code := status(err)
	return code >= 400 && code < 500 && code != http.StatusTooManyRequests && code != http.StatusRequestTimeout
}

// away: git could not speak with the remote, or not to the end.
func away(err error) bool {
	var g *gitError
	return errors.As(err, &g) && slices.Contains([]string{"push", "fetch", "ls-remote"}, g.Command) && !forbidden(err)
}

// checkout makes the repository ready for a turn and returns its head. In a
// box that has it already, what an interrupted turn left stays.
func (r *repository) checkout(ctx context.Context) (head string, fresh bool, err error) {
	fresh, err = r.init(ctx)
	if err != nil {
		return "", false, err
	}
	onRemote, err := r.fetch(ctx)
	if err != nil {
		return "", false, err
	}
	if err := r.enter(ctx, fresh, onRemote); err != nil {
		return "", false, err
	}
	head, err = r.git(ctx, "", "rev-parse", "HEAD")
	return head, fresh, err
}

// init makes an empty repository whose remote is the broker, unless a whole
// one is there.
func (r *repository) init(ctx context.Context) (fresh bool, err error) {
	out, err := sandbox.Exec(ctx, r.box, sandbox.Command{
		Name: processName("look"), Dir: sandbox.WorkDir, Env: r.env(),
		Args: append(gitFlags(), "-C", sandbox.RepoDir, "rev-parse", "--verify", "-q", "HEAD"),
	})
	if err != nil {
		return false, fmt.Errorf("look for the repository: %w", err)
	}
	if out.ExitCode == 0 {
		return false, nil
	}
	if _, err := r.git(ctx, "", "init", "-q", sandbox.RepoDir); err != nil {
		return false, err
	}
	remote := sandbox.BrokerURL + "/broker/git/" + r.name + ".git"
	for _, kv := range [][2]string{
		{"remote.origin.url", remote},
		{"remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"},
		{"user.name", r.author.Name}, {"user.email", r.author.Email},
	} {
		if _, err := r.git(ctx, "", "config", kv[0], kv[1]); err != nil {
			return false, err
		}
	}
	return true, nil
}

// fetch brings the base and, when it exists there, the session's branch.
func (r *repository) fetch(ctx context.Context) (branchOnRemote bool, err error) {
	heads, err := r.git(ctx, "", "ls-remote", "-q", "--heads", "origin")
	if err != nil {
		return false, r.unreachable(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(heads) {
		if _, ref, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			names[strings.TrimPrefix(ref, "refs/heads/")] = true
		}
	}
	var want []string
	for _, b := range []string{r.base, r.branch} {
		if names[b] {
			want = append(want, "+refs/heads/"+b+":refs/remotes/origin/"+b)
		}
	}
	if !names[r.base] && !names[r.branch] {
		return false, r.noBase(names)
	}
	_, err = r.git(ctx, "", append([]string{"fetch", "-q", "--no-tags", "origin"}, want...)...)
	return names[r.branch], r.unreachable(err)
}

func (r *repository) noBase(names map[string]bool) error {
	say := fmt.Sprintf("%s has no branch `%s`. Name one that exists: `/ship [branch=…] …`.", r.name, r.base)
	if len(names) == 0 {
		say = fmt.Sprintf("%s is empty. Push a first commit to it, then `/ship retry`.", r.name)
	}
	return &session.Problem{Say: say, Err: fmt.Errorf("base branch %q is not on the remote", r.base)}
}

func (r *repository) unreachable(err error) error {
	if err == nil || errors.Is(err, sandbox.ErrGone) {
		return err
	}
	return &session.Problem{
		Say:     fmt.Sprintf("I could not fetch %s. Check that the app is installed on it with read and write access to contents, then `/ship retry`.", r.name),
		Err:     err,
		Again:   !forbidden(err),
		Passing: away(err),
	}
}

// enter checks the session's branch out. In a used box it only moves forward
// to what others pushed; what cannot be moved now is merged before the push.
func (r *repository) enter(ctx context.Context, fresh, onRemote bool) error {
	from := "origin/" + r.base
	if onRemote {
		from = "origin/" + r.branch
	}
	if fresh {
		_, err := r.git(ctx, "", "checkout", "-q", "-B", r.branch, "--no-track", from)
		return err
	}
	if onRemote {
		if _, err := r.git(ctx, "", "merge", "-q", "--ff-only", from); err != nil && !isGitError(err) {
			return err
		}
	}
	return nil
}

func isGitError(err error) bool {
	var g *gitError
	return errors.As(err, &g)
}

// commit records what the agent left uncommitted; nothing when it left nothing.
func (r *repository) commit(ctx context.Context, message string) error {
	if _, err := r.git(ctx, "", "add", "-A"); err != nil {
		return err
	}
	_, err := r.git(ctx, "", "diff", "--cached", "--quiet")
	if err == nil || !isGitError(err) {
		return err
	}
	_, err = r.git(ctx, message, "commit", "-q", "--no-verify", "-F", "-")
	return err
}

// push brings HEAD to the session's branch. It is repeatable: what is there
// already is not pushed again. Commits that others pushed meanwhile are merged
// in, never overwritten.
func (r *repository) push(ctx context.Context) (head string, err error) {
	for range 3 {
		head, err = r.git(ctx, "", "rev-parse", "HEAD")
		if err != nil {
			return "", err
		}
		_, err = r.git(ctx, "", "push", "-q", "origin", "HEAD:refs/heads/"+r.branch)
		if !said(err, "fetch first", "non-fast-forward", "cannot lock ref") {
			return head, err
		}
		if err := r.merge(ctx); err != nil {
			return "", err
		}
	}
	return "", err
}

func (r *repository) merge(ctx context.Context) error {
	if _, err := r.fetch(ctx); err != nil {
		return err
	}
	return r.join(ctx, "origin/"+r.branch, errConflict)
}

// files counts what differs from the base.
func (r *repository) files(ctx context.Context) (int, error) {
	out, err := r.git(ctx, "", "diff", "--name-only", "origin/"+r.base+"...HEAD")
	if isGitError(err) { // no common history
		out, err = r.git(ctx, "", "diff", "--name-only", "origin/"+r.base, "HEAD")
	}
	if err != nil || out == "" {
		return 0, err
	}
	return strings.Count(out, "\n") + 1, nil
}

// onRemote returns the commit of the session's branch as last fetched or
// pushed; empty when it is not there.
func (r *repository) onRemote(ctx context.Context) (string, error) {
	out, err := r.git(ctx, "", "ls-remote", "-q", "--heads", "origin", "refs/heads/"+r.branch)
	sha, _, _ := strings.Cut(out, "\t")
	return sha, err
}
