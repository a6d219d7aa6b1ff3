package lineartest

import (
	"strings"

	"ship/graphql/linear"
)

// Person is somebody to be made by hand. Others are made on first sight:
// "ada" is Ada, ada@acme.example.
type Person struct {
	// Handle names them here.
	Handle, Name, Email string
	Guest               bool
	// Gone: suspended or removed.
	Gone bool
}

// AddPerson makes or changes somebody and returns the id.
func (s *Server) AddPerson(p Person) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.person(p.Handle)
	u.guest, u.gone = p.Guest, p.Gone
	if p.Name != "" {
		u.name = p.Name
	}
	if p.Email != "" {
		u.email = p.Email
	}
	return u.id
}

// PersonID returns somebody's id.
func (s *Server) PersonID(handle string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.person(handle).id
}

// CreateTeam makes a team with the usual states, two of them started, and
// returns its id. Its issues begin with the key.
func (s *Server) CreateTeam(key, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &team{id: newID(), key: key, name: name, visibility: linear.TeamVisibilityPublic}
	for _, st := range []state{
		{name: "Triage", kind: "triage", position: 0},
		{name: "Backlog", kind: "backlog", position: 1},
		{name: "Todo", kind: "unstarted", position: 2},
		{name: "In Progress", kind: "started", position: 3},
		{name: "In Review", kind: "started", position: 1003},
		{name: "Done", kind: "completed", position: 4},
		{name: "Canceled", kind: "canceled", position: 5},
	} {
		st.id = newID()
		t.states = append(t.states, &st)
	}
	s.teams = append(s.teams, t)
	return t.id
}

// Enclose says who may look into a team, and who its members are, by handle. The
// app sees it as before; see ChangeAccess.
func (s *Server) Enclose(key string, v linear.TeamVisibility, members ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.mustTeam(key)
	t.visibility, t.members = v, nil
	for _, m := range members {
		t.members = append(t.members, s.person(m))
	}
}

// SetGuidance sets the words for agents of a team, or of the workspace when
// the key is empty.
func (s *Server) SetGuidance(key, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key == "" {
		s.guidance = body
		return
	}
	s.mustTeam(key).guidance = body
}

// SetConfidence says how sure Linear is that any issue is about a repository,
// OWNER/NAME, from 0 to 1.
func (s *Server) SetConfidence(repository string, confidence float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confidence[strings.ToLower(repository)] = confidence
}

// Issue is one to be made by hand.
type Issue struct {
	// Team by its key. State by its name; empty: "Todo".
	Team, State        string
	Title, Description string
	// Creator and Assignee by handle; empty: nobody.
	Creator, Assignee string
	// Project by name; empty: none.
	Project string
	Labels  []Label
}

// Label of an issue, in a group unless that is empty.
type Label struct{ Group, Name string }

// CreateIssue makes an issue and returns its identifier, such as ENG-1.
func (s *Server) CreateIssue(i Issue) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.mustTeam(i.Team)
	if i.State == "" {
		i.State = "Todo"
	}
	t.issues++
	made := &issue{
		id: newID(), number: t.issues, team: t, title: i.Title, description: i.Description,
		state: mustState(t, i.State), creator: s.someone(i.Creator), assignee: s.someone(i.Assignee),
	}
	if i.Project != "" {
		made.project = s.projectNamed(i.Project)
	}
	for _, l := range i.Labels {
		made.labels = append(made.labels, s.labelNamed(l))
	}
	s.issues = append(s.issues, made)
	return made.identifier()
}

func (s *Server) projectNamed(name string) *project {
	if p := find(s.projects, func(p *project) bool { return p.name == name }); p != nil {
		return p
	}
	p := &project{id: newID(), name: name}
	s.projects = append(s.projects, p)
	return p
}

func (s *Server) labelNamed(want Label) *label {
	if l := find(s.labels, func(l *label) bool { return l.group == want.Group && l.name == want.Name }); l != nil {
		return l
	}
	l := &label{id: newID(), name: want.Name, group: want.Group}
	if sibling := find(s.labels, func(l *label) bool { return l.group == want.Group }); sibling != nil {
		l.groupID = sibling.groupID
	} else {
		l.groupID = newID()
	}
	s.labels = append(s.labels, l)
	return l
}

// comment writes one. The caller holds mu.
func (s *Server) comment(c comment) *comment {
	c.id, c.created = newID(), s.now()
	s.comments = append(s.comments, &c)
	return &c
}

// EditComment changes a comment as a person would.
func (s *Server) EditComment(id, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := find(s.comments, func(c *comment) bool { return c.id == id }); c != nil {
		c.body, c.edited = body, s.now()
	}
}
