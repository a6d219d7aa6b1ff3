package lineartest

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"

	"ship/graphql/linear"
)

func (s *Server) createActivity(in struct {
	ID        string          `json:"id"`
	Session   string          `json:"session"`
	Content   json.RawMessage `json:"content"`
	Ephemeral bool            `json:"ephemeral"`
}) (*linear.CreateActivityResponse, error) {
	content, err := decodeContent(in.Content)
	if err != nil {
		return nil, err
	}
	if in.Ephemeral && content.Type != linear.TypeThought && content.Type != linear.TypeAction {
		return nil, invalid("only thoughts and actions may be ephemeral")
	}
	err = s.post(in.Session, activity{id: in.ID, content: content, metadata: null, ephemeral: in.Ephemeral})
	return &linear.CreateActivityResponse{AgentActivityCreate: linear.ActivityPayload{Success: err == nil}}, err
}

func (s *Server) ask(in struct {
	ID      string          `json:"id"`
	Session string          `json:"session"`
	Content json.RawMessage `json:"content"`
	Choices json.RawMessage `json:"choices"`
}) (*linear.AskResponse, error) {
	content, err := decodeContent(in.Content)
	if err != nil {
		return nil, err
	}
	if content.Type != linear.TypeElicitation {
		return nil, invalid("the signal select goes with elicitations only")
	}
	if err := decodeChoices(in.Choices); err != nil {
		return nil, err
	}
	err = s.post(in.Session, activity{id: in.ID, content: content, signal: linear.AgentActivitySignalSelect, metadata: in.Choices})
	return &linear.AskResponse{AgentActivityCreate: linear.ActivityPayload{Success: err == nil}}, err
}

// post has the app say something. Questions and endings are comments too.
func (s *Server) post(session string, a activity) error {
	in, err := s.session(session)
	if err != nil {
		return err
	}
	if err := s.checkID(a.id); err != nil {
		return err
	}
	a.author, a.created = s.app, s.now()
	if body := a.content.Body; body != "" && a.content.Type != linear.TypeThought {
		a.source = s.comment(comment{body: body, issue: in.issue, author: s.app, parent: root(in.comment)})
	}
	in.say(&a)
	return nil
}

// root is the comment at the top of a thread.
func root(c *comment) *comment {
	for c != nil && c.parent != nil {
		c = c.parent
	}
	return c
}

func (s *Server) setPlan(in struct {
	Session string          `json:"session"`
	Plan    json.RawMessage `json:"plan"`
}) (*linear.SetPlanResponse, error) {
	plan, err := decodePlan(in.Plan)
	if err != nil {
		return nil, err
	}
	done, err := s.update(in.Session, func(a *session) error {
		a.plan = plan
		return nil
	})
	return &linear.SetPlanResponse{AgentSessionUpdate: done}, err
}

// update changes a session without anything being said.
func (s *Server) update(id string, change func(*session) error) (linear.SessionPayload, error) {
	a, err := s.session(id)
	if err == nil {
		err = change(a)
	}
	if err != nil {
		return linear.SessionPayload{}, err
	}
	a.updated = s.now()
	return linear.SessionPayload{Success: true}, nil
}

// linked is update with other links, which show that the app is there.
func (s *Server) linked(id string, change func([]linear.Link) ([]linear.Link, error)) (linear.SessionPayload, error) {
	return s.update(id, func(a *session) error {
		links, err := change(a.links)
		if err != nil {
			return err
		}
		a.links = links
		a.notice(s.now())
		return nil
	})
}

type setURLs struct {
	Session string       `json:"session"`
	URLs    []linear.URL `json:"urls"`
}

func (s *Server) setURLs(in setURLs) (*linear.SetURLsResponse, error) {
	done, err := s.linked(in.Session, func([]linear.Link) ([]linear.Link, error) { return addLinks(nil, in.URLs) })
	return &linear.SetURLsResponse{AgentSessionUpdate: done}, err
}

func (s *Server) addURLs(in setURLs) (*linear.AddURLsResponse, error) {
	done, err := s.linked(in.Session, func(have []linear.Link) ([]linear.Link, error) { return addLinks(have, in.URLs) })
	return &linear.AddURLsResponse{AgentSessionUpdate: done}, err
}

func (s *Server) removeURLs(in struct {
	Session string   `json:"session"`
	URLs    []string `json:"urls"`
}) (*linear.RemoveURLsResponse, error) {
	done, err := s.linked(in.Session, func(have []linear.Link) ([]linear.Link, error) {
		return slices.DeleteFunc(slices.Clone(have), func(l linear.Link) bool { return slices.Contains(in.URLs, l.Url) }), nil
	})
	return &linear.RemoveURLsResponse{AgentSessionUpdate: done}, err
}

func (s *Server) moveIssue(in struct {
	ID    string `json:"id"`
	State string `json:"state"`
}) (*linear.MoveIssueResponse, error) {
	i, err := s.visible(in.ID)
	if err != nil {
		return nil, err
	}
	to := find(i.team.states, func(st *state) bool { return st.id == in.State })
	if to == nil {
		return nil, notFound("WorkflowState")
	}
	i.state = to
	return &linear.MoveIssueResponse{IssueUpdate: linear.IssuePayload{Success: true}}, nil
}

func (s *Server) delegateIssue(in struct {
	ID       string `json:"id"`
	Delegate string `json:"delegate"`
}) (*linear.DelegateIssueResponse, error) {
	i, err := s.visible(in.ID)
	if err != nil {
		return nil, err
	}
	if in.Delegate != s.app.id {
		return nil, invalid("delegateId must be an app's user")
	}
	i.delegate = s.app
	return &linear.DelegateIssueResponse{IssueUpdate: linear.IssuePayload{Success: true}}, nil
}

func (s *Server) attach(in struct {
	Issue    string `json:"issue"`
	Title    string `json:"title"`
	Subtitle string `json:"subtitle"`
	URL      string `json:"url"`
}) (*linear.AttachResponse, error) {
	done, err := s.upsert(in.Issue, attachment{title: in.Title, subtitle: in.Subtitle, url: in.URL})
	return &linear.AttachResponse{AttachmentCreate: done}, err
}

// pullPath is what the address of a pull request ends with.
var pullPath = regexp.MustCompile(`^(/[^/]+)+/pull/[1-9][0-9]*$`)

func (s *Server) linkPullRequest(in struct {
	Issue string `json:"issue"`
	Title string `json:"title"`
	URL   string `json:"url"`
}) (*linear.LinkPullRequestResponse, error) {
	parsed, err := url.Parse(in.URL)
	if err != nil || !pullPath.MatchString(parsed.Path) {
		return nil, invalid("url must be that of a pull request")
	}
	done, err := s.upsert(in.Issue, attachment{title: in.Title, url: in.URL, source: "github"})
	return &linear.LinkPullRequestResponse{AttachmentLinkGitHubPR: done}, err
}

// upsert puts an attachment on an issue, in place of the one with its address.
func (s *Server) upsert(id string, a attachment) (linear.AttachmentPayload, error) {
	i, err := s.visible(id)
	if err != nil {
		return linear.AttachmentPayload{}, err
	}
	parsed, err := url.Parse(a.url)
	if err != nil || !parsed.IsAbs() || blank(a.title) {
		return linear.AttachmentPayload{}, invalid("an attachment must have a title and an absolute url")
	}
	at := find(i.attachments, func(b *attachment) bool { return b.url == a.url })
	if at == nil {
		at = &attachment{id: newID()}
		i.attachments = append(i.attachments, at)
	}
	a.id = at.id
	*at = a
	return linear.AttachmentPayload{Success: true, Attachment: linear.AttachmentReference{Id: at.id}}, nil
}
