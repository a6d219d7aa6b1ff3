package linear

import (
	"context"
	"fmt"
	"time"

	"ship/bot"
)

// NoteKind is what a Note says.
type NoteKind string

// The kinds of notes.
const (
	// Unassigned: the issue was taken away from ship. Its sessions are to stop.
	Unassigned NoteKind = "unassigned"
	// StatusChanged: the issue has another status; the webhook does not tell
	// which. If it is completed or canceled, its sessions are over.
	StatusChanged NoteKind = "status changed"
	// Revoked: the workspace took its access back. Its tokens are dead.
	Revoked NoteKind = "access revoked"
	// AccessChanged: other teams of the workspace are open to ship now.
	AccessChanged NoteKind = "team access changed"
)

// Note is what a webhook says that is about no agent session: Linear names an
// issue or the whole workspace, and which sessions that means takes a look-up
// that a Receiver does not make.
type Note struct {
	Kind NoteKind
	// Organization is the workspace; Issue is set for Unassigned and
	// StatusChanged, Actor (the id of a person) where Linear names one.
	Organization, Issue, Actor string
	// Added and Removed teams, for AccessChanged.
	Added, Removed []string
	// Keys are dedupe keys as those of a session.Delivery.
	Keys []string
	// Sent is when it was true. A webhook may come hours late, so an access
	// that was granted later than this was not revoked.
	Sent time.Time
}

// Notebook takes notes.
type Notebook interface {
	// Note makes a note durable, or acts on it at once. It is called within the
	// webhook's request and has a second or two. After an error Linear sends
	// the webhook again; it may also come twice without one.
	Note(ctx context.Context, n Note) error
}

// noteOf returns the note in a webhook that is not about an agent session, and
// the outcome that names it; no note for what nothing follows from.
func noteOf(p payload, delivery string, sent time.Time) (*Note, string, error) {
	kind := kindOf(p)
	if kind == "" {
		return nil, outcomeIgnoredAction, nil
	}
	n := &Note{
		Kind: kind, Organization: p.Organization, Added: p.AddedTeams, Removed: p.RemovedTeams, Sent: sent,
		Keys: []string{"ln:" + delivery, fmt.Sprintf("ln:%s:%s:%d", p.Type, p.Organization, sent.UnixMilli())},
	}
	if !validID.MatchString(p.Organization) {
		return nil, "", fmt.Errorf("organization: %w", bot.ErrMalformed)
	}
	if p.Type != eventNotification {
		return n, string(kind), nil
	}
	about := p.Notification
	if !validID.MatchString(about.ID) || !validID.MatchString(about.Issue) {
		return nil, "", fmt.Errorf("notification: %w", bot.ErrMalformed)
	}
	if about.Actor != "" && about.Actor == p.App {
		return nil, outcomeOwn, nil
	}
	n.Issue, n.Actor, n.Keys[1] = about.Issue, about.Actor, "ln:notification:"+about.ID
	return n, string(kind), nil
}

// kindOf: mentions and assignments also come as an AgentSessionEvent, and are
// left to that.
func kindOf(p payload) NoteKind {
	switch p.Type + " " + p.Action {
	case eventNotification + " issueUnassignedFromYou":
		return Unassigned
	case eventNotification + " issueStatusChanged":
		return StatusChanged
	case eventApp + " revoked":
		return Revoked
	case eventPermission + " teamAccessChanged":
		return AccessChanged
	}
	return ""
}
