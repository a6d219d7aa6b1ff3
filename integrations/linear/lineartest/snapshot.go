package lineartest

import (
	"encoding/json"
	"slices"
	"time"

	"ship/graphql/linear"
)

// Session is a session as people see it.
type Session struct {
	ID string
	// Issue by its identifier, empty for documents. By is who is responsible,
	// by handle; empty: nobody.
	Issue, By string
	Status    linear.AgentSessionStatus
	Plan      linear.Plan
	Links     []linear.Link
	// Activities of everybody, also those that are gone.
	Activities []Activity
	Created    time.Time
	// Answered is how long it took the app to say something or set a link;
	// after ten seconds people see it as unresponsive. Negative: not yet.
	Answered time.Duration
}

// Activity is an activity as people see it.
type Activity struct {
	ID string
	// By is the author's handle.
	By       string
	Content  linear.Content
	Signal   linear.AgentActivitySignal
	Metadata json.RawMessage
	// Ephemeral ones are gone when something follows.
	Ephemeral, Gone bool
	Created         time.Time
}

// Sessions returns those of an issue, or all when it is empty, the oldest
// first.
func (s *Server) Sessions(issue string) []Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Session
	for _, a := range s.sessions {
		if issue == "" || (a.issue != nil && a.issue == s.must(issue)) {
			out = append(out, s.snapshot(a))
		}
	}
	return out
}

// Session returns one by its id.
func (s *Server) Session(id string) Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot(s.mustSession(id))
}

func (s *Server) snapshot(a *session) Session {
	out := Session{
		ID: a.id, By: handle(a.creator), Status: a.status(s.now()), Plan: slices.Clone(a.plan), Links: slices.Clone(a.links),
		Created: a.created, Answered: -1,
	}
	if a.issue != nil {
		out.Issue = a.issue.identifier()
	}
	if !a.seen.IsZero() {
		out.Answered = a.seen.Sub(a.created)
	}
	for _, said := range a.activities {
		out.Activities = append(out.Activities, Activity{
			ID: said.id, By: handle(said.author), Content: said.content, Signal: said.signal, Metadata: slices.Clone(said.metadata),
			Ephemeral: said.ephemeral, Gone: said.gone, Created: said.created,
		})
	}
	return out
}

func handle(u *user) string {
	if u == nil {
		return ""
	}
	return u.handle
}

// Tracked is an issue as people see it.
type Tracked struct {
	ID, Identifier string
	// State by its name, and what kind of state that is.
	State, StateType string
	// Assignee and Delegate by handle; empty: nobody.
	Assignee, Delegate string
	Attachments        []Attachment
}

// Attachment is a link on an issue. Source is "github" for pull requests.
type Attachment struct{ Title, Subtitle, URL, Source string }

// Issue returns an issue by its id or identifier.
func (s *Server) Issue(id string) Tracked {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.must(id)
	out := Tracked{
		ID: i.id, Identifier: i.identifier(), State: i.state.name, StateType: i.state.kind,
		Assignee: handle(i.assignee), Delegate: handle(i.delegate),
	}
	for _, a := range i.attachments {
		out.Attachments = append(out.Attachments, Attachment{Title: a.title, Subtitle: a.subtitle, URL: a.url, Source: a.source})
	}
	return out
}

// Said is a comment as people see it. By is empty for the root that Linear
// makes for a session.
type Said struct{ ID, By, Body, Parent string }

// Comments returns what was written on an issue, the oldest first.
func (s *Server) Comments(issue string) []Said {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.must(issue)
	var out []Said
	for _, c := range s.comments {
		if c.issue != i {
			continue
		}
		said := Said{ID: c.id, By: handle(c.author), Body: c.body}
		if c.parent != nil {
			said.Parent = c.parent.id
		}
		out = append(out, said)
	}
	return out
}
