package turn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ship/sandbox"
)

// gitTimeout bounds one git command; a large clone takes its time.
const gitTimeout = 20 * time.Minute

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
	env := []string{
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0", // to look at the files writes nothing, for which there may be no room
		"GIT_AUTHOR_NAME=" + r.author.Name, "GIT_AUTHOR_EMAIL=" + r.author.Email,
		"GIT_COMMITTER_NAME=" + r.author.Name, "GIT_COMMITTER_EMAIL=" + r.author.Email,
	}
	if r.index != "" {
		env = append(env, "GIT_INDEX_FILE="+r.index)
	}
	return env
}

// git runs one command and returns what it printed, without the last newline.
// Its warnings are not a part of that.
func (r *repository) git(ctx context.Context, stdin string, args ...string) (string, error) {
	out, err := r.exec(ctx, stdin, args...)
	return strings.TrimRight(string(out.Data), "\n"), err
}

// apart runs a command with its stderr in the file of the name that comes
// first, since a box keeps what a process prints in one file. The file stays
// when the command fails. The last line is missing if there was no room for what
// came before it, in either file.
const apart = `"$@" 2>"$0"; code=$?; if [ $code -eq 0 ]; then rm -f "$0"; else echo >>"$0" || exit $code; fi; printf '` + complete + `'; exit $code`

// exec runs one git command.
func (r *repository) exec(ctx context.Context, stdin string, args ...string) (sandbox.Output, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	name := processName("git")
	warnings := sandbox.RunDir + "/" + name + ".stderr"
	out, err := sandbox.Exec(ctx, r.box, sandbox.Command{
		Name: name, Args: slices.Concat([]string{"sh", "-c", apart, warnings}, gitFlags(), args),
		Env: r.env(), Dir: r.dir(args), Stdin: []byte(stdin),
	})
	if err != nil {
		return out, fmt.Errorf("git %s: %w", args[0], err)
	}
	if err := whole(&out); err != nil {
		return out, fmt.Errorf("git %s: exit %d: %w", args[0], out.ExitCode, err)
	}
	if out.ExitCode == 0 {
		return out, nil
	}
	said, err := r.box.ReadFrom(ctx, warnings, 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a shell that was killed leaves none
		return out, fmt.Errorf("read why git %s failed: %w", args[0], err)
	}
	text := strings.TrimSpace(string(out.Data) + "\n" + string(said))
	return out, &gitError{Command: args[0], Code: out.ExitCode, Output: text}
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
