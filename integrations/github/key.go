package github

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"ship/session"
)

// errKey: a key or ref that this package did not make.
var errKey = errors.New("not a key of the github integration")

// validName is what GitHub allows as an owner's or a repository's name. A
// name ends up in URLs, so nothing else may pass.
var validName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)

// repo is a repository as an installation sees it. Its key is
// "<installation>/<id>/<owner>/<name>".
type repo struct {
	installation int64
	id           int64
	owner, name  string
}

func (r repo) fullName() string { return r.owner + "/" + r.name }

// path returns an address of the API below the repository's.
func (r repo) path(format string, args ...any) string {
	return "repos/" + r.fullName() + "/" + fmt.Sprintf(format, args...)
}

func (r repo) key() string {
	return fmt.Sprintf("%d/%d/%s/%s", r.installation, r.id, r.owner, r.name)
}

// session returns the form in which the rest of ship carries it.
func (r repo) session() session.Repo {
	return session.Repo{Platform: Platform, Name: r.fullName(), Key: r.key()}
}

func parseRepo(key string) (repo, error) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 {
		return repo{}, fmt.Errorf("repository key %q: %w", key, errKey)
	}
	r := repo{owner: parts[2], name: parts[3]}
	var ok bool
	if r.installation, ok = parseID(parts[0]); !ok {
		return repo{}, fmt.Errorf("repository key %q: %w", key, errKey)
	}
	if r.id, ok = parseID(parts[1]); !ok || !validRepo(r.owner, r.name) {
		return repo{}, fmt.Errorf("repository key %q: %w", key, errKey)
	}
	return r, nil
}

// validRepo also refuses the names that mean something else in a path.
func validRepo(owner, name string) bool {
	for _, s := range []string{owner, name} {
		if !validName.MatchString(s) || s == "." || s == ".." {
			return false
		}
	}
	return true
}

// thread is an issue or a pull request. Its key is the repository's with
// "/issues/<number>" or "/pull/<number>".
type thread struct {
	repo
	number int
	pull   bool
}

func (t thread) key() string {
	kind := "issues"
	if t.pull {
		kind = "pull"
	}
	return fmt.Sprintf("%s/%s/%d", t.repo.key(), kind, t.number)
}

func (t thread) session() session.Thread {
	return session.Thread{Platform: Platform, Key: t.key()}
}

// id names the session that begins in this thread.
func (t thread) id() session.ID {
	return session.ID(fmt.Sprintf("%s%d", t.prefix(), t.number))
}

// prefix is common to the sessions that began in this repository.
func (r repo) prefix() string { return fmt.Sprintf("gh.%d.", r.id) }

func parseThread(key string) (thread, error) {
	bad := fmt.Errorf("thread key %q: %w", key, errKey)
	head, last, ok := cutLast(key, "/")
	if !ok {
		return thread{}, bad
	}
	head, kind, ok := cutLast(head, "/")
	number, valid := parseID(last)
	if !ok || !valid || number > 1<<31-1 || (kind != "issues" && kind != "pull") {
		return thread{}, bad
	}
	r, err := parseRepo(head)
	if err != nil {
		return thread{}, bad
	}
	return thread{repo: r, number: int(number), pull: kind == "pull"}, nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+len(sep):], true
}

// parseID reads a positive number written in the one canonical way, so that
// one thing has one key.
func parseID(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n > 0 && strconv.FormatInt(n, 10) == s
}

// sessionThread reads the repository and number out of a session's id.
func sessionThread(id session.ID) (repoID, number int64, ok bool) {
	rest, ok := strings.CutPrefix(string(id), "gh.")
	if !ok {
		return 0, 0, false
	}
	first, second, _ := strings.Cut(rest, ".")
	repoID, ok = parseID(first)
	if !ok {
		return 0, 0, false
	}
	number, ok = parseID(second)
	return repoID, number, ok
}

// refKind says what a request came by.
type refKind string

const (
	// refThread: the issue or pull request itself, by a label.
	refThread refKind = "thread"
	// refComment: a comment in the conversation.
	refComment refKind = "comment"
	// refInline: a review comment in the diff.
	refInline refKind = "inline"
	// refReview: a review's own text.
	refReview refKind = "review"
	// refCheck: a button of a check run.
	refCheck refKind = "check"
)

// ref is what it takes to react to a request and to answer it in place.
type ref struct {
	kind refKind
	id   int64
	// root is the first comment of an inline thread: replies go there.
	root int64
	// node is a review's GraphQL id, for REST cannot react to reviews.
	node string
}

func (r ref) String() string {
	switch r.kind {
	case refThread:
		return string(refThread)
	case refInline:
		return fmt.Sprintf("%s/%d/%d", r.kind, r.id, r.root)
	case refReview:
		return fmt.Sprintf("%s/%d/%s", r.kind, r.id, r.node)
	default:
		return fmt.Sprintf("%s/%d", r.kind, r.id)
	}
}

func parseRef(s string) (ref, error) {
	bad := fmt.Errorf("ref %q: %w", s, errKey)
	if s == string(refThread) {
		return ref{kind: refThread}, nil
	}
	parts := strings.SplitN(s, "/", 3)
	if len(parts) < 2 {
		return ref{}, bad
	}
	r := ref{kind: refKind(parts[0])}
	var ok bool
	if r.id, ok = parseID(parts[1]); !ok {
		return ref{}, bad
	}
	rest := strings.Join(parts[2:], "")
	switch r.kind {
	case refComment, refCheck:
		ok = len(parts) == 2
	case refInline:
		r.root, ok = parseID(rest)
	case refReview:
		r.node, ok = rest, len(parts) == 3
	default:
		ok = false
	}
	if !ok {
		return ref{}, bad
	}
	return r, nil
}
