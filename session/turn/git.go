package turn

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	// secrets must not be pushed, nor what exceeds the bounds.
	secrets []string
	bounds  bounds
	// closed: nobody waits for the work any more, so that a branch which is gone
	// stays gone.
	closed bool
	// index takes the place of the agent's own, if it is set. Nothing of the
	// agent's is locked or written then.
	index string
}

// errConflict: what was pushed meanwhile by others touches the same lines.
var errConflict = errors.New("somebody else's commits conflict")

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

// making is a setting of a repository that no turn has begun in: what is there is
// what an attempt to make it ready has left. Those of earlier releases lack it.
const making = "ship.making"

// Exit codes of git config, by its manual: what was asked for is not set, and
// what was to be unset is not set.
const (
	configUnset          = 1
	configNothingToUnset = 5
)

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
		if _, err := r.git(ctx, "", "config", "--get", making); err != nil {
			return false, unlessExit(err, configUnset)
		}
	}
	if _, err := r.git(ctx, "", "init", "-q", sandbox.RepoDir); err != nil {
		return false, err
	}
	remote := sandbox.BrokerURL + "/broker/git/" + r.name + ".git"
	for _, kv := range [][2]string{
		{making, "true"},
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

// markWhole notes that all is there that a turn begins with. May be called again.
func (r *repository) markWhole(ctx context.Context) error {
	_, err := r.git(ctx, "", "config", "--unset-all", making)
	return unlessExit(err, configNothingToUnset)
}

// fetch brings the base and, when it exists there, the session's branch.
func (r *repository) fetch(ctx context.Context) (branchOnRemote bool, err error) {
	ours := []string{"refs/heads/" + r.base, "refs/heads/" + r.branch} // there may be more of them than can be read
	heads, err := r.git(ctx, "", append([]string{"ls-remote", "-q", "--heads", "origin"}, ours...)...)
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
		return false, r.noBase(ctx)
	}
	_, err = r.git(ctx, "", append([]string{"fetch", "-q", "--no-tags", "origin"}, want...)...)
	return names[r.branch], r.unreachable(err)
}

func (r *repository) noBase(ctx context.Context) error {
	heads, err := r.git(ctx, "", "ls-remote", "-q", "--heads", "origin")
	if err != nil {
		return r.unreachable(err)
	}
	say := fmt.Sprintf("%s has no branch `%s`. Name one that exists: `/ship [branch=…] …`.", r.name, r.base)
	if heads == "" {
		say = fmt.Sprintf("%s is empty. Push a first commit to it, then `/ship retry`.", r.name)
	}
	return &session.Problem{Say: say, Err: fmt.Errorf("base branch %q is not on the remote", r.base)}
}

func (r *repository) unreachable(err error) error {
	if err == nil || errors.Is(err, sandbox.ErrGone) || noRoom(err) {
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
		// What is in its way was left by an attempt that did not come to its end.
		_, err := r.git(ctx, "", "checkout", "-q", "-f", "-B", r.branch, "--no-track", from)
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

// unlessExit is err, or nil if it is git's answer with this exit code.
func unlessExit(err error, code int) error {
	var g *gitError
	if errors.As(err, &g) && g.Code == code {
		return nil
	}
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
		err = r.pushCommit(ctx, head)
		if !said(err, "fetch first", "non-fast-forward", "cannot lock ref") {
			return head, err
		}
		if err := r.merge(ctx); err != nil {
			return "", err
		}
	}
	return "", err
}

func (r *repository) pushCommit(ctx context.Context, commit string) error {
	_, err := r.git(ctx, "", "push", "-q", "origin", commit+":refs/heads/"+r.branch)
	return err
}

func (r *repository) merge(ctx context.Context) error {
	if _, err := r.fetch(ctx); err != nil {
		return err
	}
	return r.join(ctx, "origin/"+r.branch, errConflict)
}

// files counts what differs between the base and a commit.
func (r *repository) files(ctx context.Context, commit string) (int, error) {
	out, err := r.git(ctx, "", "diff", "--name-only", "origin/"+r.base+"..."+commit)
	if isGitError(err) { // no common history
		out, err = r.git(ctx, "", "diff", "--name-only", "origin/"+r.base, commit)
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
