package lineartest

import (
	"strings"

	"ship/graphql/linear"
)

// Delegate has somebody hand an issue to the app, or an automation when by is
// empty. It returns the id of the new session, and the webhook that tells.
func (s *Server) Delegate(issue, by string) (id string, d Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.must(issue)
	i.delegate = s.app
	thread := s.comment(comment{body: "This thread is for an agent session with " + s.app.name + ".", issue: i})
	a := s.open(&session{creator: s.someone(by), issue: i, comment: thread})
	return a.id, s.created(a, nil, nil)
}

// Mention is somebody's comment that names the app.
type Mention struct {
	// Issue that it is on; empty: a document.
	Issue    string
	By, Body string
	// Thread is the id of a comment that it answers; empty: it starts its own.
	Thread string
}

// Mention has somebody name the app in a comment. It returns the id of the new
// session, and the webhook that tells.
func (s *Server) Mention(m Mention) (id string, d Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := comment{body: m.Body, author: s.person(m.By)}
	if m.Issue != "" {
		c.issue = s.must(m.Issue)
	}
	var before []*comment
	if m.Thread != "" {
		c.parent = root(find(s.comments, func(c *comment) bool { return c.id == m.Thread }))
		before = s.thread(c.parent)
	}
	asked := s.comment(c)
	a := s.open(&session{creator: asked.author, issue: asked.issue, comment: asked})
	return a.id, s.created(a, asked, before)
}

// thread is a comment with what answers it.
func (s *Server) thread(top *comment) []*comment {
	var out []*comment
	for _, c := range s.comments {
		if root(c) == top {
			out = append(out, c)
		}
	}
	return out
}

// open starts a session. The caller holds mu.
func (s *Server) open(a *session) *session {
	now := s.now()
	a.id, a.derived = newID(), linear.AgentSessionStatusPending
	a.created, a.updated, a.spoke = now, now, now
	s.sessions = append(s.sessions, a)
	return a
}

func (s *Server) created(a *session, asked *comment, before []*comment) Delivery {
	var previous any
	if before != nil {
		list := []any{}
		for _, c := range before {
			list = append(list, renderComment(c))
		}
		previous = list
	}
	return s.event("AgentSessionEvent", "created", object{
		"appUserId": s.app.id, "agentSession": s.renderSession(a), "agentActivity": nil, "guidance": s.renderGuidance(a.issue),
		"previousComments": previous, "promptContext": s.promptContext(a, asked),
	})
}

// Prompt has somebody write into a session, or choose an answer.
func (s *Server) Prompt(session, by, body string) Delivery {
	return s.prompt(session, by, body, "")
}

// Stop has somebody ask for the work to end at once.
func (s *Server) Stop(session, by string) Delivery {
	return s.prompt(session, by, "stop", linear.AgentActivitySignalStop)
}

func (s *Server) prompt(session, by, body string, signal linear.AgentActivitySignal) Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.mustSession(session)
	said := &activity{
		id: newID(), author: s.person(by), content: linear.Content{Type: linear.TypePrompt, Body: body},
		signal: signal, metadata: null, created: s.now(),
	}
	said.source = s.comment(comment{body: body, issue: a.issue, author: said.author, parent: root(a.comment)})
	a.say(said)
	return s.event("AgentSessionEvent", "prompted", object{
		"appUserId": s.app.id, "agentSession": s.renderSession(a), "agentActivity": renderActivity(said), "guidance": s.renderGuidance(a.issue),
		"previousComments": nil, "promptContext": nil,
	})
}

// Unassign has somebody take an issue away from the app.
func (s *Server) Unassign(issue, by string) Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.must(issue)
	i.delegate = nil
	return s.notification("issueUnassignedFromYou", i, s.someone(by), nil)
}

// Move has somebody put an issue into another state, by its name.
func (s *Server) Move(issue, by, state string) Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.must(issue)
	i.state = mustState(i.team, state)
	return s.notification("issueStatusChanged", i, s.someone(by), nil)
}

// Assigned is the notification that goes with Delegate.
func (s *Server) Assigned(issue, by string) Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notification("issueAssignedToYou", s.must(issue), s.someone(by), nil)
}

// Comment has somebody comment on an issue that the app has, and returns the
// comment's id.
func (s *Server) Comment(issue, by, body string) (id string, d Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.comment(comment{body: body, issue: s.must(issue), author: s.person(by)})
	return c.id, s.notification("issueNewComment", c.issue, c.author, c)
}

func (s *Server) notification(action string, i *issue, by *user, c *comment) Delivery {
	now := stamp(s.now())
	n := object{
		"type": action, "id": newID(), "createdAt": now, "updatedAt": now, "archivedAt": nil, "externalUserActorId": nil,
		"actorId": userID(by), "actor": renderUser(by), "userId": s.app.id, "issueId": i.id, "issue": renderIssue(i),
	}
	if c != nil {
		n["commentId"], n["comment"] = c.id, renderComment(c)
	}
	return s.event("AppUserNotification", action, object{"appUserId": s.app.id, "notification": n})
}

// ChangeAccess gives teams to the app and takes others away, by their keys.
// What is of a team that it may not see is not found.
func (s *Server) ChangeAccess(added, removed []string) Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := func(keys []string, hidden bool) []string {
		out := []string{}
		for _, key := range keys {
			t := s.mustTeam(strings.ToUpper(key))
			t.hidden = hidden
			out = append(out, t.id)
		}
		return out
	}
	return s.event("PermissionChange", "teamAccessChanged", object{
		"appUserId": s.app.id, "canAccessAllPublicTeams": false,
		"addedTeamIds": ids(added, false), "removedTeamIds": ids(removed, true),
	})
}

// Revoke has an administrator remove the app from the workspace: its tokens end
// and there are no others until it is installed again.
func (s *Server) Revoke() Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uninstalled = true
	clear(s.tokens)
	clear(s.refreshes)
	return s.event("OAuthApp", "revoked", object{})
}

// Install has an administrator install the app again after Revoke.
func (s *Server) Install() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uninstalled = false
}
