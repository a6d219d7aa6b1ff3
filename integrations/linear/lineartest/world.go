package lineartest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"ship/graphql/linear"
)

// user is a person or the app.
type user struct {
	id, handle, name, email string
	app, guest, gone        bool
}

func (u *user) url() string { return "https://linear.app/" + urlKey + "/profiles/" + u.handle }

type team struct {
	id, key, name string
	states        []*state
	issues        int
	guidance      string
	// hidden: the app may not see it.
	hidden     bool
	visibility linear.TeamVisibility
	members    []*user
}

type state struct {
	id, name, kind string
	position       float64
}

type project struct{ id, name string }

// label may be in a group.
type label struct{ id, name, group, groupID string }

type issue struct {
	id                          string
	number                      int
	team                        *team
	title, description          string
	state                       *state
	creator, assignee, delegate *user
	project                     *project
	labels                      []*label
	attachments                 []*attachment
}

func (i *issue) identifier() string { return fmt.Sprintf("%s-%d", i.team.key, i.number) }

func (i *issue) slug() string { return slug(i.title) }

func (i *issue) url() string {
	return "https://linear.app/" + urlKey + "/issue/" + i.identifier() + "/" + i.slug()
}

// notWord is what does not go into an address.
var notWord = regexp.MustCompile(`[^a-z0-9]+`)

func slug(text string) string {
	return strings.Trim(notWord.ReplaceAllString(strings.ToLower(text), "-"), "-")
}

type attachment struct{ id, title, subtitle, url, source string }

// comment is on an issue, or on a document when that is nil.
type comment struct {
	id, body        string
	issue           *issue
	author          *user // nil for the root that Linear makes for a session
	parent          *comment
	created, edited time.Time
}

func (c *comment) url() string {
	base := "https://linear.app/" + urlKey + "/document"
	if c.issue != nil {
		base = c.issue.url()
	}
	return base + "#comment-" + c.id[:8]
}

// session is one of the app's.
type session struct {
	id         string
	creator    *user
	issue      *issue
	comment    *comment
	activities []*activity
	plan       linear.Plan
	links      []linear.Link
	// derived from what was said last; see status.
	derived linear.AgentSessionStatus
	// spoke is when anybody said anything; seen is when the app first did, or
	// set a link.
	spoke, seen                      time.Time
	created, updated, started, ended time.Time
}

func (s *session) url() string {
	if s.issue == nil {
		return ""
	}
	return s.issue.url() + "#agent-session-" + s.id[:8]
}

type activity struct {
	id        string
	session   *session
	author    *user
	content   linear.Content
	signal    linear.AgentActivitySignal
	metadata  json.RawMessage
	ephemeral bool
	// gone: it was ephemeral, and something followed.
	gone    bool
	source  *comment
	created time.Time
}

// find returns the first that matches, or nil.
func find[T any](all []*T, match func(*T) bool) *T {
	if at := slices.IndexFunc(all, match); at >= 0 {
		return all[at]
	}
	return nil
}

// person returns who has a handle, made on first sight. The caller holds mu.
func (s *Server) person(handle string) *user {
	if u := find(s.users, func(u *user) bool { return u.handle == handle }); u != nil {
		return u
	}
	name := strings.ToUpper(handle[:1]) + handle[1:]
	u := &user{id: newID(), handle: handle, name: name, email: handle + "@acme.example"}
	s.users = append(s.users, u)
	return u
}

// someone is person, or nil for nobody.
func (s *Server) someone(handle string) *user {
	if handle == "" {
		return nil
	}
	return s.person(handle)
}

// issue finds one by id or identifier, also of a team that the app may not
// see. The caller holds mu.
func (s *Server) issue(id string) *issue {
	return find(s.issues, func(i *issue) bool { return i.id == id || strings.EqualFold(i.identifier(), id) })
}

// visible finds an issue for the app.
func (s *Server) visible(id string) (*issue, error) {
	if i := s.issue(id); i != nil && !i.team.hidden {
		return i, nil
	}
	return nil, notFound("Issue")
}

// must returns an issue that the test made.
func (s *Server) must(id string) *issue {
	i := s.issue(id)
	if i == nil {
		panic("lineartest: there is no issue " + id)
	}
	return i
}

// session finds one for the app.
func (s *Server) session(id string) (*session, error) {
	a := find(s.sessions, func(a *session) bool { return a.id == id })
	if a == nil || (a.issue != nil && a.issue.team.hidden) {
		return nil, notFound("AgentSession")
	}
	return a, nil
}

// mustSession returns a session that there is.
func (s *Server) mustSession(id string) *session {
	a := find(s.sessions, func(a *session) bool { return a.id == id })
	if a == nil {
		panic("lineartest: there is no session " + id)
	}
	return a
}

func (s *Server) mustTeam(key string) *team {
	t := find(s.teams, func(t *team) bool { return t.key == key })
	if t == nil {
		panic("lineartest: there is no team " + key)
	}
	return t
}

// mustState returns a state of a team by its name.
func mustState(t *team, name string) *state {
	found := find(t.states, func(st *state) bool { return st.name == name })
	if found == nil {
		panic("lineartest: there is no state " + name + " in " + t.key)
	}
	return found
}
