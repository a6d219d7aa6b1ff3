package linear

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"ship/session"
)

// errKey: a key or ref that this package did not make.
var errKey = errors.New("not a key of the linear integration")

// validID is what one of Linear's ids may look like. They are UUIDs, and end
// up in keys and in the names of sessions.
var validID = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// thread is an agent session. Its key is
// "<organization>/<agent session>/<issue>", the last one empty for a session
// on a document or a project. Where nobody speaks with us, but what we do is
// shown, there is an issue and no agent session; see Linker.
type thread struct {
	organization, agentSession, issue string
}

func (t thread) key() string { return t.organization + "/" + t.agentSession + "/" + t.issue }

func (t thread) session() session.Thread {
	return session.Thread{Platform: Platform, Key: t.key()}
}

// id names the session that begins in this thread; in a silent one, none does.
func (t thread) id() session.ID { return session.ID("ln." + t.agentSession) }

func (t thread) valid() bool {
	return validID.MatchString(t.organization) && validID.MatchString(t.agentSession) &&
		(t.issue == "" || validID.MatchString(t.issue))
}

// silent: it is an issue alone, that shows how far the work is.
func (t thread) silent() bool {
	return t.agentSession == "" && validID.MatchString(t.organization) && validID.MatchString(t.issue)
}

func parseThread(key string) (thread, error) {
	parts := strings.Split(key, "/")
	if len(parts) != 3 {
		return thread{}, fmt.Errorf("thread key %q: %w", key, errKey)
	}
	t := thread{parts[0], parts[1], parts[2]}
	if !t.valid() && !t.silent() {
		return thread{}, fmt.Errorf("thread key %q: %w", key, errKey)
	}
	return t, nil
}

// refStatus is the ref of a session.Withdraw because the issue's status was
// changed: whether it is over, the issue has to be asked.
const refStatus = "status"

// A request that began a session has no ref: the thread's key says all. One
// that came later has "<activity>/<comment>", the comment empty where the
// prompt was not written as one. One that nobody wrote has refStatus or none.
type ref struct {
	activity, comment string
	status            bool
}

func (r ref) String() string {
	switch {
	case r.status:
		return refStatus
	case r.activity == "":
		return ""
	}
	return r.activity + "/" + r.comment
}

func parseRef(s string) (ref, error) {
	switch s {
	case "":
		return ref{}, nil
	case refStatus:
		return ref{status: true}, nil
	}
	activity, comment, ok := strings.Cut(s, "/")
	if !ok || !validID.MatchString(activity) || comment != "" && !validID.MatchString(comment) {
		return ref{}, fmt.Errorf("ref %q: %w", s, errKey)
	}
	return ref{activity: activity, comment: comment}, nil
}
