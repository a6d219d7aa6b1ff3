package session

import (
	"context"
	"errors"
	"time"
)

// What a caller of a store decides on.
var (
	// ErrNotDue: somebody else holds the session, or nobody needs to look.
	ErrNotDue = errors.New("session is not due")
	// ErrConflict: the state's version is not the one that the commit builds
	// on. A bug, or a second coordinator under one lease.
	ErrConflict = errors.New("state was changed by another commit")
	// ErrTooNew: a newer release wrote the state; leave it to that.
	ErrTooNew = errors.New("state was written by a newer release")
	// ErrUnknown: there is no such session.
	ErrUnknown = errors.New("no such session")
)

// Delivery is one accepted webhook (or the like) on its way into an inbox.
type Delivery struct {
	Session ID
	// Keys are the dedupe keys: the platform's delivery id first, then content
	// keys, for one act may arrive as two deliveries. If any was seen, nothing
	// is appended. Already prefixed with the platform's name.
	Keys []string
	// Keep is how long the keys are remembered: longer than the platform
	// redelivers.
	Keep time.Duration
	// Known: it is only for a session that there is, and comes to nothing
	// otherwise.
	Known bool
	Event Event
}

// Receipt says what became of a delivery.
type Receipt struct {
	// Seq is the event's position in the inbox. For a duplicate, that of the
	// event it repeats.
	Seq       int64
	Duplicate bool
	// Unknown: there is no such session, and nothing was appended. See
	// Delivery.Known.
	Unknown bool
}

// Inbox takes deliveries in.
type Inbox interface {
	// Append dedupes, appends and makes the session due, in one atomic step,
	// and returns once that is durable. On an error nothing was appended, or
	// it was and Append may be called again with the same keys.
	Append(ctx context.Context, d Delivery) (Receipt, error)
}

// ProvenAfter is how long an owner has to live until what it found cannot be what
// brought it down. A turn may take an hour without a word that moves the cursor,
// and the machines under it may well be replaced more often than that.
const ProvenAfter = 5 * time.Minute

// Lease is the right to change a session until somebody else claims it.
type Lease struct {
	ID ID
	// Token is new for every claim. Only its holder can commit.
	Token string
	// Epoch is the generation: the fencing token. It only rises.
	Epoch int64
}

// Claim is a session as it was found.
type Claim struct {
	Lease Lease
	// Version of the state; the first commit builds on it.
	Version int64
	// Cursor is the Seq of the last event that the state includes.
	Cursor int64
	// State as it was committed, nil for a new session.
	State []byte
	// Events behind the cursor, in order, at most 100.
	Events []Event
	// Stolen: the last owner did not release it.
	Stolen bool
	// Tries counts the claims since the last commit that made progress, or since
	// an owner lived for ProvenAfter.
	Tries int
	// Now is the store's clock.
	Now time.Time
}

// Commit is one fenced change.
type Commit struct {
	// Version that it builds on. The store's version is one higher afterwards.
	Version int64
	// Cursor after it; what lies at or below is trimmed from the inbox.
	Cursor int64
	// State, encoded.
	State []byte
	// StateVersion is the format's number, checked by Claim.
	StateVersion int
	// Lease is how long the lease is good from now; ignored with Release.
	Lease time.Duration
	// Release gives the lease back. If mail came in between, the session stays
	// due.
	Release bool
	// Due is when somebody must look next, from now; negative: never. Only
	// with Release.
	Due time.Duration
	// Dead letters to be kept with this commit.
	Dead []DeadLetter
}

// DeadLetter is an event or an effect that was given up, kept for people.
type DeadLetter struct {
	// ID is the store's, by which it is found again: letters, digits, dash.
	ID      string    `json:"id,omitempty"`
	Session ID        `json:"session"`
	At      time.Time `json:"at"`
	Cause   string    `json:"cause"`
	Event   *Event    `json:"event,omitempty"`
	Effect  *Effect   `json:"effect,omitempty"`
	// Turn is what an Answer would have told of, without its Context. A session
	// keeps less of a turn that is over.
	Turn *Turn `json:"turn,omitempty"`
	// Raw is what lay in the inbox and is no event.
	Raw []byte `json:"raw,omitempty"`
}

// Store keeps sessions. All methods are safe for concurrent use and may be
// performed twice: the second time changes nothing and answers the same.
type Store interface {
	// Due returns up to limit sessions that somebody must look at now, the
	// longest waiting first.
	Due(ctx context.Context, limit int) ([]ID, error)
	// Claim takes a due session under a new token. ErrNotDue, ErrTooNew.
	Claim(ctx context.Context, id ID, token string, lease time.Duration) (Claim, error)
	// Renew makes the lease good for d from now, and returns the Seq of the
	// newest event in the inbox. Whoever renews ProvenAfter its claim is proven:
	// Tries begin anew. ErrLeaseLost.
	Renew(ctx context.Context, l Lease, d time.Duration) (newest int64, err error)
	// Read returns up to 100 events after a position, in order.
	Read(ctx context.Context, id ID, after int64) ([]Event, error)
	// Commit changes state, cursor and lease in one step. ErrLeaseLost,
	// ErrConflict. Repeating a commit whose answer was lost: nil.
	Commit(ctx context.Context, l Lease, c Commit) error
	// Wakes tells of sessions that became due, or of mail for one that is
	// held. A hint only: it may be lost or doubled. Closed when ctx ends.
	Wakes(ctx context.Context) <-chan ID
}

// Register is the list of sessions that there is something to come of. Those with
// a box are always among them.
type Register interface {
	// Scheduled returns the sessions that somebody holds or has to look at, now or
	// later, in no particular order: all of them, or an error.
	Scheduled(ctx context.Context) ([]ID, error)
}

// Archive is the store as people and tools look at it.
type Archive interface {
	// Peek returns a session's state without claiming it. ErrUnknown.
	Peek(ctx context.Context, id ID) (Claim, error)
	// Sessions returns all ids, in no particular order.
	Sessions(ctx context.Context) ([]ID, error)
	// Forget deletes a session that nobody holds, with its inbox. Its dedupe
	// records live on. A session that is gone: nil. ErrNotDue when it is held.
	Forget(ctx context.Context, id ID) error
}

// Graveyard is where dead letters lie until somebody replays or drops them. Each
// store keeps the newest 10,000 or more.
type Graveyard interface {
	// DeadLetters returns the newest n, newest first.
	DeadLetters(ctx context.Context, n int) ([]DeadLetter, error)
	// DeadLetter returns one by its id. ErrUnknown.
	DeadLetter(ctx context.Context, id string) (DeadLetter, error)
	// DropDeadLetter removes one for good. One that is gone: nil.
	DropDeadLetter(ctx context.Context, id string) error
}

// Transcript is what the agent did, line by line: a capped stream that
// expires, readable from any cursor.
type Transcript interface {
	// Write appends lines. They are redacted already.
	Write(ctx context.Context, id ID, lines []string) error
	// Lines returns up to n lines after a cursor ("" is the beginning), with
	// the cursor of the last.
	Lines(ctx context.Context, id ID, cursor string, n int) (lines []string, next string, err error)
}

// Ledger counts what turns spend. It survives restarts.
type Ledger interface {
	// Spend adds to an account and returns its total. Not idempotent: the
	// caller counts a call before making it, so a crash can only overcount.
	Spend(ctx context.Context, account string, u Usage) (Usage, error)
	// Totals reads accounts, in the order of their names; an unknown one is
	// empty. To be read is no use of an account, which keeps none alive.
	Totals(ctx context.Context, accounts ...string) ([]Usage, error)
}
