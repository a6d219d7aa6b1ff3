package turn

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ship/sandbox"
)

// What an agent can leave that only it can put right.
var (
	// errDiverged: its work is on two branches that do not merge.
	errDiverged = errors.New("the work is on two branches that conflict")
	// errUnfinished: a merge with conflicts, and other changes in between.
	errUnfinished = errors.New("the work is in the middle of a merge")
)

// collect brings all that the agent left, wherever it went in the repository,
// onto the session's branch, as commits. It is repeatable.
func (r *repository) collect(ctx context.Context, start, message string) error {
	if err := r.unlock(ctx); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.commit(ctx, message); err != nil {
		return err
	}
	return r.comeHome(ctx, start)
}

// unlock removes a lock that a git which was killed has left. One that is young
// may belong to a git that lives; then the next command says so.
func (r *repository) unlock(ctx context.Context) error {
	lock := sandbox.RepoDir + "/.git/index.lock"
	_, err := sandbox.Exec(ctx, r.box, sandbox.Command{
		Name: processName("unlock"), Dir: sandbox.WorkDir, Env: r.env(),
		Args: []string{"find", lock, "-mmin", "+1", "-delete"}, // there is none: an exit code, no error
	})
	if err != nil {
		return fmt.Errorf("look for a stale lock: %w", err)
	}
	return nil
}

// settle ends what the agent was in the middle of: a rebase, and a merge (or
// the like) that has conflict markers left, which must not be committed as if
// they were the work. A merge whose conflicts are resolved is the work.
func (r *repository) settle(ctx context.Context) error {
	if _, err := r.git(ctx, "", "rebase", "--abort"); err != nil && !isGitError(err) { // mostly there is none
		return err
	}
	unmerged, err := r.git(ctx, "", "diff", "--name-only", "--diff-filter=U")
	if err != nil || unmerged == "" {
		return err
	}
	if _, err = r.git(ctx, "", "diff", "--check"); !said(err, "leftover conflict marker") {
		return nil // the markers alone matter here
	}
	if _, err = r.git(ctx, "", "reset", "-q", "--merge"); isGitError(err) { // it would lose what was changed besides
		return fmt.Errorf("%w: %w", errUnfinished, err)
	}
	return err
}

// comeHome checks the session's branch out, and merges what the agent did
// elsewhere. Commits that the remote has are not its work.
func (r *repository) comeHome(ctx context.Context, start string) error {
	home := "refs/heads/" + r.branch
	at, err := r.git(ctx, "", "symbolic-ref", "-q", "HEAD")
	if at == home || err != nil && !isGitError(err) {
		return err
	}
	tip, err := r.git(ctx, "", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	others, err := r.git(ctx, "", "for-each-ref", "--count=1", "--contains", tip, "refs/remotes")
	if err != nil {
		return err
	}
	if others != "" {
		tip = start
	}
	if _, err = r.git(ctx, "", "rev-parse", "-q", "--verify", home); isGitError(err) { // renamed or deleted
		_, err = r.git(ctx, "", "checkout", "-q", "-f", "-B", r.branch, "--no-track", tip)
		return err
	}
	if err == nil {
		_, err = r.git(ctx, "", "checkout", "-q", "-f", r.branch)
	}
	if err != nil || others != "" {
		return err
	}
	return r.join(ctx, tip, errDiverged)
}

// committed is the last commit of the session's branch, or the one that is
// checked out if that follows it: where the work is without anything being
// written. Commits that the remote has are not the agent's.
func (r *repository) committed(ctx context.Context) (string, error) {
	head, err := r.git(ctx, "", "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	tip, err := r.git(ctx, "", "rev-parse", "-q", "--verify", "refs/heads/"+r.branch)
	if isGitError(err) { // renamed or deleted
		return head, nil
	}
	if err != nil || tip == head {
		return tip, err
	}
	others, err := r.git(ctx, "", "for-each-ref", "--count=1", "--contains", head, "refs/remotes")
	if err != nil || others != "" {
		return tip, err
	}
	_, err = r.git(ctx, "", "merge-base", "--is-ancestor", tip, head)
	if isGitError(err) {
		return tip, nil
	}
	return head, err
}

// join merges a commit, or changes nothing and returns conflict.
func (r *repository) join(ctx context.Context, commit string, conflict error) error {
	_, err := r.git(ctx, "", "merge", "-q", "--no-edit", commit)
	if !isGitError(err) {
		return err
	}
	if _, aborted := r.git(ctx, "", "merge", "--abort"); aborted != nil && !strings.Contains(aborted.Error(), "MERGE_HEAD") {
		return errors.Join(err, aborted)
	}
	return fmt.Errorf("%w: %w", conflict, err)
}
