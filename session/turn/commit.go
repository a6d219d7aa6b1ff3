package turn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ship/sandbox"
)

// errStrays: an agent left more new files than anybody writes, such as what a
// build made.
var errStrays = errors.New("there are too many new files to commit")

// commit records what the agent left uncommitted, but for files that are too
// large to be pushed; nothing when it left nothing.
func (r *repository) commit(ctx context.Context, message string) error {
	left, err := r.changes(ctx)
	if err != nil {
		return err
	}
	if left.strays > r.bounds.strays {
		return fmt.Errorf("%w: %d", errStrays, left.strays)
	}
	if err := r.stage(ctx, left.oversized); err != nil {
		return err
	}
	_, err = r.git(ctx, "", "diff", "--cached", "--quiet")
	if err == nil || !isGitError(err) {
		return err
	}
	_, err = r.git(ctx, message, "commit", "-q", "--no-verify", "-F", "-")
	return err
}

// stage puts all but some files into the index, which would copy them into the
// repository, and takes those out of it that the agent has put there already.
func (r *repository) stage(ctx context.Context, without []string) error {
	const fromInput, endedByZero = "--pathspec-from-file=-", "--pathspec-file-nul"
	all := "."
	for _, path := range without {
		all += "\x00:(exclude,top,literal)" + path
	}
	if _, err := r.git(ctx, all, "add", "-A", fromInput, endedByZero); err != nil || len(without) == 0 {
		return err
	}
	_, err := r.git(ctx, ":(top,literal)"+strings.Join(without, "\x00:(top,literal)"), "reset", "-q", fromInput, endedByZero)
	return err
}

// leftover is what an agent left uncommitted.
type leftover struct {
	// strays counts the new files.
	strays int
	// oversized are the files that are too large to be pushed.
	oversized []string
}

// changes looks at what would be committed.
func (r *repository) changes(ctx context.Context) (leftover, error) {
	large, err := r.large(ctx)
	if err != nil {
		return leftover{}, err
	}
	status, err := r.exec(ctx, "", "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
	if err != nil {
		return leftover{}, err
	}
	var left leftover
	for entry := range strings.SplitSeq(string(status.Data), "\x00") {
		if len(entry) < len("?? x") {
			continue
		}
		if strings.HasPrefix(entry, "??") {
			left.strays++
		}
		if path := entry[3:]; large[path] {
			left.oversized = append(left.oversized, path)
		}
	}
	if status.Truncated && left.strays <= r.bounds.strays {
		return leftover{}, fmt.Errorf("%w: the list of changes has %d bytes", errBulky, status.Size)
	}
	return left, nil
}

// large finds the files that are too large, ignored ones too.
func (r *repository) large(ctx context.Context) (map[string]bool, error) {
	const find = `find . -path ./.git -prune -o -type f -size "+$0" -print0 2>/dev/null` // what cannot be read is not committed either
	out, err := sandbox.Exec(ctx, r.box, sandbox.Command{
		Name: processName("large"), Dir: sandbox.RepoDir, Env: r.env(),
		Args: []string{"sh", "-c", find, strconv.FormatInt(r.bounds.file, 10) + "c"},
	})
	if err != nil {
		return nil, fmt.Errorf("look for large files: %w", err)
	}
	found := map[string]bool{}
	for path := range strings.SplitSeq(string(out.Data), "\x00") {
		found[strings.TrimPrefix(path, "./")] = true
	}
	return found, nil
}

// notPushed says which files stay behind; empty: none.
func (left leftover) notPushed() string {
	const most = 5
	if len(left.oversized) == 0 {
		return ""
	}
	var names []string
	for _, path := range left.oversized[:min(most, len(left.oversized))] {
		names = append(names, strconv.Quote(path))
	}
	if more := len(left.oversized) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return "Not pushed, because too large: " + strings.Join(names, ", ") + "."
}
