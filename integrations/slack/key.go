package slack

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"ship/session"
)

// errKey: a key or ref that this package did not make.
var errKey = errors.New("not a key of the slack integration")

var (
	// validID is what an id of a team, a channel or a user may look like. They
	// end up in keys and in the names of sessions.
	validID = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)
	// validUser is what the id of a person looks like, who can be mentioned by it.
	validUser = regexp.MustCompile(`^[UW][A-Z0-9]{1,63}$`)
	// validName is what blocks of ours are called: see nameDo.
	validName = regexp.MustCompile(`^[a-z]{1,16}(-[0-9]{1,9})?$`)
	// validDelivery is what the id of a delivery may look like.
	validDelivery = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	// validTS is what names a message within its channel: when it was sent.
	validTS = regexp.MustCompile(`^[0-9]{1,11}\.[0-9]{1,6}$`)
	// validCommand is what stands in for the root of a thread that a slash
	// command is going to begin.
	validCommand = regexp.MustCompile(`^c-[0-9a-f]{32}$`)
)

// thread is a thread of a channel, by its root message. In place of that it has
// the name of a slash command, until the thread is there. Its key is
// "<team>/<channel>/<root>".
//
// team is the workspace that installed the app, which in a channel that is
// shared with others need not be that of whoever writes.
type thread struct{ team, channel, root string }

func (t thread) key() string { return t.team + "/" + t.channel + "/" + t.root }

func (t thread) session() session.Thread {
	return session.Thread{Platform: Platform, Key: t.key()}
}

// id names the session that lives in this thread.
func (t thread) id() session.ID {
	return session.ID("sl." + t.team + "." + t.channel + "." + dashed(t.root))
}

// pending tells whether the thread is yet to begin, by a slash command.
func (t thread) pending() bool { return validCommand.MatchString(t.root) }

func (t thread) valid() bool {
	return validID.MatchString(t.team) && validID.MatchString(t.channel) &&
		(validTS.MatchString(t.root) || t.pending())
}

func parseThread(key string) (thread, error) {
	parts := strings.Split(key, "/")
	if len(parts) != 3 {
		return thread{}, fmt.Errorf("thread key %q: %w", key, errKey)
	}
	t := thread{parts[0], parts[1], parts[2]}
	if !t.valid() {
		return thread{}, fmt.Errorf("thread key %q: %w", key, errKey)
	}
	return t, nil
}

// dashed writes a message's time where dots mean something else.
func dashed(ts string) string { return strings.ReplaceAll(ts, ".", "-") }

// commandOf names a slash command by the id that opens dialogs for it, which
// itself is nobody else's business.
func commandOf(trigger string) string { return "c-" + digest(trigger) }

// triggered is the id of a delivery that has none but that; empty for none.
func triggered(trigger string) string {
	if trigger == "" {
		return ""
	}
	return "t-" + digest(trigger)
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// moment is when a message was sent; zero when ts says nothing.
func moment(ts string) time.Time {
	if !validTS.MatchString(ts) {
		return time.Time{}
	}
	whole, fraction, _ := strings.Cut(ts, ".")
	seconds, _ := strconv.ParseInt(whole, 10, 64)                    // digits only
	micros, _ := strconv.ParseInt((fraction + "000000")[:6], 10, 64) // digits only
	return time.Unix(seconds, micros*1000).UTC()
}

// refKind is how a request was made.
type refKind string

const (
	// refMessage: a message, which can be reacted to.
	refMessage refKind = "message"
	// refShortcut: the shortcut on a message, which the requester need not have
	// written.
	refShortcut refKind = "shortcut"
	// refButton: a button on a message of ours.
	refButton refKind = "button"
	// refCommand: a slash command. It has the root message that was posted for
	// it as soon as that is there.
	refCommand refKind = "command"
	// refStop: the stop button that Slack itself shows while a session works.
	refStop refKind = "stop"
)

// ref is where a request was made, and by whom: "<kind>/<message>", then the
// name of the block for a button, then the person. The message is empty for a
// command without a thread and for refStop, and then there is no more but the
// command's person. The name and the person may be missing.
type ref struct {
	kind refKind
	ts   string
	// name of the block that the button is in, such as "do-3".
	name string
	// user is the person's id, which is not kept elsewhere: to the code host they
	// are somebody else.
	user string
}

// of is the ref of the same, asked by whoever has this login.
func (r ref) of(login string) ref {
	user, _, err := parseLogin(login)
	if err == nil && r.kind != refStop && validUser.MatchString(user) {
		r.user = user
	}
	return r
}

func (r ref) String() string {
	s := string(r.kind) + "/" + r.ts
	for _, part := range []string{r.name, r.user} {
		if part != "" {
			s += "/" + part
		}
	}
	return s
}

func (r ref) valid() bool {
	switch r.kind {
	case refMessage, refShortcut, refButton:
		return validTS.MatchString(r.ts)
	case refCommand:
		return r.ts == "" || validTS.MatchString(r.ts)
	case refStop:
		return r.ts == ""
	}
	return false
}

func parseRef(s string) (ref, error) {
	parts := strings.Split(s, "/")
	if len(parts) < 2 {
		return ref{}, fmt.Errorf("ref %q: %w", s, errKey)
	}
	r, rest := ref{kind: refKind(parts[0]), ts: parts[1]}, parts[2:]
	if len(rest) > 0 && r.kind == refButton && validName.MatchString(rest[0]) {
		r.name, rest = rest[0], rest[1:]
	}
	if len(rest) > 0 && r.kind != refStop && validUser.MatchString(rest[0]) {
		r.user, rest = rest[0], rest[1:]
	}
	if len(rest) > 0 || !r.valid() {
		return ref{}, fmt.Errorf("ref %q: %w", s, errKey)
	}
	return r, nil
}

// login is whom Slack vouches for. Who is of another workspace, in a channel
// that is shared with it, is "<team>/<user>", so that nobody who looks for one
// of ours finds them.
func login(user, foreign string) string {
	if foreign == "" {
		return user
	}
	return foreign + "/" + user
}

// parseLogin takes a login apart; foreign is empty for one of ours.
func parseLogin(login string) (user, foreign string, err error) {
	foreign, user, ok := strings.Cut(login, "/")
	if !ok {
		foreign, user = "", login
	}
	if !validID.MatchString(user) || ok && !validID.MatchString(foreign) {
		return "", "", fmt.Errorf("login %q: %w", login, errKey)
	}
	return user, foreign, nil
}
