package lineartest

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"ship/graphql/linear"
)

// null is what a field of any type holds when it is not set.
var null = json.RawMessage("null")

type byID struct {
	ID string `json:"id"`
}

func (s *Server) readViewer(struct{}) (*linear.ReadViewerResponse, error) {
	return &linear.ReadViewerResponse{
		Viewer:       linear.Viewer{Id: s.app.id, Name: s.app.name, DisplayName: s.app.handle, App: true},
		Organization: linear.Organization{Id: s.orgID, Name: "Acme", UrlKey: urlKey},
	}, nil
}

func (s *Server) readUsers(in struct {
	IDs []string `json:"ids"`
}) (*linear.ReadUsersResponse, error) {
	users := []linear.User{}
	for _, u := range slices.Backward(s.users) {
		if slices.Contains(in.IDs, u.id) {
			users = append(users, userOf(u))
		}
	}
	return &linear.ReadUsersResponse{Users: linear.Users{Nodes: users[:min(len(users), 50)]}}, nil
}

func userOf(u *user) linear.User {
	return linear.User{
		Id: u.id, Name: u.name, DisplayName: u.handle, Email: u.email, Url: u.url(), Active: !u.gone, App: u.app, Guest: u.guest,
	}
}

func (s *Server) readReader(in struct {
	Email string `json:"email"`
	Team  string `json:"team"`
}) (*linear.ReadReaderResponse, error) {
	t := find(s.teams, func(t *team) bool { return t.id == in.Team })
	if t == nil || t.hidden {
		return nil, notFound("Team")
	}
	out := linear.ReadReaderResponse{
		Users: linear.Users{Nodes: []linear.User{}},
		Team:  linear.TeamReaders{Visibility: t.visibility, Members: linear.Members{Nodes: []linear.Member{}}},
	}
	for _, u := range s.users {
		if u.gone || !strings.EqualFold(u.email, in.Email) || len(out.Users.Nodes) == 2 {
			continue
		}
		out.Users.Nodes = append(out.Users.Nodes, userOf(u))
		if slices.Contains(t.members, u) {
			out.Team.Members.Nodes = append(out.Team.Members.Nodes, linear.Member{Id: u.id})
		}
	}
	return &out, nil
}

func (s *Server) readIssue(in byID) (*linear.ReadIssueResponse, error) {
	i, err := s.visible(in.ID)
	if err != nil {
		return nil, err
	}
	out := linear.Issue{
		Id: i.id, Identifier: i.identifier(), Title: i.title, Description: i.description, Url: i.url(),
		BranchName: strings.ToLower(i.identifier()) + "-" + i.slug(),
		Team:       linear.Team{Id: i.team.id, Key: i.team.key, Name: i.team.name}, State: stateOf(i.state),
		Creator: personOf(i.creator), Assignee: personOf(i.assignee), Delegate: personOf(i.delegate),
		Labels:      linear.Labels{Nodes: []linear.Label{}},
		Attachments: linear.Attachments{Nodes: []linear.Attachment{}},
	}
	if p := i.project; p != nil {
		out.Project = &linear.Project{Id: p.id, Name: p.name, Url: "https://linear.app/" + urlKey + "/project/" + slug(p.name)}
	}
	for _, l := range i.labels {
		out.Labels.Nodes = append(out.Labels.Nodes, labelOf(l))
	}
	for _, a := range i.attachments {
		out.Attachments.Nodes = append(out.Attachments.Nodes, linear.Attachment{
			Id: a.id, Title: a.title, Subtitle: a.subtitle, Url: a.url, SourceType: a.source,
		})
	}
	return &linear.ReadIssueResponse{Issue: out}, nil
}

func stateOf(st *state) linear.State {
	return linear.State{Id: st.id, Name: st.name, Type: st.kind, Position: st.position}
}

func labelOf(l *label) linear.Label {
	out := linear.Label{Id: l.id, Name: l.name}
	if l.group != "" {
		out.Parent = &linear.LabelGroup{Id: l.groupID, Name: l.group}
	}
	return out
}

func personOf(u *user) *linear.Person {
	if u == nil {
		return nil
	}
	return &linear.Person{Id: u.id, Name: u.name, Email: u.email, App: u.app}
}

func (s *Server) readStartedStates(in struct {
	Team string `json:"team"`
}) (*linear.ReadStartedStatesResponse, error) {
	t := find(s.teams, func(t *team) bool { return t.id == in.Team || t.key == in.Team })
	if t == nil || t.hidden {
		return nil, notFound("Team")
	}
	states := []linear.State{}
	for _, st := range slices.Backward(t.states) {
		if st.kind == "started" {
			states = append(states, stateOf(st))
		}
	}
	return &linear.ReadStartedStatesResponse{Team: linear.TeamStates{States: linear.States{Nodes: states}}}, nil
}

func (s *Server) readSession(in byID) (*linear.ReadSessionResponse, error) {
	a, err := s.session(in.ID)
	if err != nil {
		return nil, err
	}
	out := linear.Session{SessionHead: s.head(a), Plan: null, ExternalLinks: append([]linear.Link{}, a.links...)}
	if a.plan != nil {
		out.Plan = mustJSON(a.plan)
	}
	return &linear.ReadSessionResponse{AgentSession: out}, nil
}

func (s *Server) head(a *session) linear.SessionHead {
	out := linear.SessionHead{
		Id: a.id, Status: a.status(s.now()), Url: a.url(), CreatedAt: a.created, UpdatedAt: a.updated, StartedAt: a.started,
		EndedAt: a.ended, AppUser: linear.AppUser{Id: s.app.id}, Creator: personOf(a.creator), Issue: issueReference(a.issue),
	}
	if a.comment != nil {
		out.Comment = &linear.CommentReference{Id: a.comment.id}
	}
	return out
}

func issueReference(i *issue) *linear.IssueReference {
	if i == nil {
		return nil
	}
	return &linear.IssueReference{Id: i.id, Identifier: i.identifier()}
}

func (s *Server) readSessions(in struct {
	After string `json:"after"`
}) (*linear.ReadSessionsResponse, error) {
	visible := []*session{}
	for _, a := range s.sessions {
		if a.issue == nil || !a.issue.team.hidden {
			visible = append(visible, a)
		}
	}
	slices.SortStableFunc(visible, func(a, b *session) int { return a.updated.Compare(b.updated) })
	found, next, err := page(visible, in.After, func(a *session) string { return a.id })
	if err != nil {
		return nil, err
	}
	out := linear.Sessions{PageInfo: next, Nodes: []linear.SessionHead{}}
	for _, a := range found {
		out.Nodes = append(out.Nodes, s.head(a))
	}
	return &linear.ReadSessionsResponse{AgentSessions: out}, nil
}

func (s *Server) readActivities(in struct {
	Session string `json:"session"`
	After   string `json:"after"`
}) (*linear.ReadActivitiesResponse, error) {
	a, err := s.session(in.Session)
	if err != nil {
		return nil, err
	}
	visible := slices.DeleteFunc(slices.Clone(a.activities), func(a *activity) bool { return a.gone })
	found, next, err := page(visible, in.After, func(a *activity) string { return a.id })
	if err != nil {
		return nil, err
	}
	out := linear.Activities{PageInfo: next, Nodes: []linear.Activity{}}
	for _, one := range found {
		out.Nodes = append(out.Nodes, activityOf(one))
	}
	return &linear.ReadActivitiesResponse{AgentSession: linear.SessionActivities{Id: a.id, Status: a.status(s.now()), Activities: out}}, nil
}

func activityOf(a *activity) linear.Activity {
	out := linear.Activity{
		Id: a.id, CreatedAt: a.created, Ephemeral: a.ephemeral, Signal: a.signal, SignalMetadata: a.metadata,
		AgentSession: linear.SessionReference{Id: a.session.id}, User: authorOf(a.author), Content: a.content,
	}
	if a.source != nil {
		out.SourceComment = &linear.CommentReference{Id: a.source.id}
	}
	return out
}

func authorOf(u *user) linear.Author {
	return linear.Author{Id: u.id, Name: u.name, Email: u.email, App: u.app}
}

// readActivity finds what was created. Assumed: also an ephemeral activity
// that something has followed.
func (s *Server) readActivity(in byID) (*linear.ReadActivityResponse, error) {
	a := s.activity(in.ID)
	if a == nil {
		return nil, notFound("AgentActivity")
	}
	if _, err := s.session(a.session.id); err != nil {
		return nil, err
	}
	return &linear.ReadActivityResponse{AgentActivity: activityOf(a)}, nil
}

// span is between two times, the first included.
type span struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	After string    `json:"after"`
}

func (s *Server) readComments(in span) (*linear.ReadCommentsResponse, error) {
	out, err := s.commentsIn(in, func(*comment) bool { return true })
	return &linear.ReadCommentsResponse{Comments: out}, err
}

func (s *Server) readIssueComments(in struct {
	Issue string `json:"issue"`
	span
}) (*linear.ReadIssueCommentsResponse, error) {
	i, err := s.visible(in.Issue)
	if err != nil {
		return nil, err
	}
	out, err := s.commentsIn(in.span, func(c *comment) bool { return c.issue == i })
	return &linear.ReadIssueCommentsResponse{Issue: linear.IssueComments{Comments: out}}, err
}

func (s *Server) commentsIn(in span, match func(*comment) bool) (linear.Comments, error) {
	visible := slices.DeleteFunc(slices.Clone(s.comments), func(c *comment) bool {
		return c.created.Before(in.From) || !c.created.Before(in.To) || !match(c) || (c.issue != nil && c.issue.team.hidden)
	})
	found, next, err := page(visible, in.After, func(c *comment) string { return c.id })
	out := linear.Comments{PageInfo: next, Nodes: []linear.Comment{}}
	for _, c := range found {
		out.Nodes = append(out.Nodes, commentOf(c))
	}
	return out, err
}

func commentOf(c *comment) linear.Comment {
	out := linear.Comment{Id: c.id, Body: c.body, Url: c.url(), CreatedAt: c.created, EditedAt: c.edited, Issue: issueReference(c.issue)}
	if c.author != nil {
		author := authorOf(c.author)
		out.User = &author
	}
	if c.parent != nil {
		out.Parent = &linear.CommentReference{Id: c.parent.id}
	}
	return out
}

// suggestRepositories rates the candidates as SetConfidence said, the others
// with nothing.
func (s *Server) suggestRepositories(in struct {
	Issue      string             `json:"issue"`
	Session    string             `json:"session"`
	Candidates []linear.Candidate `json:"candidates"`
}) (*linear.SuggestRepositoriesResponse, error) {
	if _, err := s.visible(in.Issue); err != nil {
		return nil, err
	}
	if _, err := s.session(in.Session); err != nil {
		return nil, err
	}
	out := linear.Suggestions{Suggestions: []linear.Suggestion{}}
	for _, c := range in.Candidates {
		out.Suggestions = append(out.Suggestions, linear.Suggestion{
			RepositoryFullName: c.RepositoryFullName, Hostname: c.Hostname, Confidence: s.confidence[strings.ToLower(c.RepositoryFullName)],
		})
	}
	slices.SortStableFunc(out.Suggestions, func(a, b linear.Suggestion) int { return cmp.Compare(b.Confidence, a.Confidence) })
	return &linear.SuggestRepositoriesResponse{IssueRepositorySuggestions: out}, nil
}
