package githubtest

import (
	"net/http"
	"slices"
	"time"
	"unicode/utf8"
)

// maxComment is how many characters a comment may have.
const maxComment = 65536

// text reads the body's text and checks its length.
func (c *call) text() (string, error) {
	var in struct{ Body *string }
	if err := c.decode(&in); err != nil {
		return "", err
	}
	if in.Body == nil || *in.Body == "" {
		return "", invalid("body", "body can't be blank")
	}
	if utf8.RuneCountInString(*in.Body) > maxComment {
		return "", invalid("body", "body is too long (maximum is 65536 characters)")
	}
	return *in.Body, nil
}

// author is who a request with this token writes as.
func (s *Server) author() *user { return s.person(s.BotLogin()) }

func (s *Server) getIssue(c *call) (int, any, error) {
	i, err := c.issue()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, s.renderIssue(c.repo, i), nil
}

// listed returns the comments of an issue as the query wants them.
func (c *call) listed(i *issue, inline bool) ([]*comment, error) {
	all := slices.Clone(*i.list(inline))
	if since := c.URL.Query().Get("since"); since != "" {
		t, err := time.Parse(time.RFC3339, since)
		if err != nil {
			return nil, invalid("since", "since is not a time")
		}
		all = slices.DeleteFunc(all, func(c *comment) bool { return c.updated.Before(t) })
	}
	// Only those of the diff can be had in another order.
	if inline && c.URL.Query().Get("direction") == "desc" {
		slices.Reverse(all)
	}
	return page(c, all), nil
}

func (s *Server) listComments(c *call) (int, any, error) {
	i, err := c.issue()
	if err != nil {
		return 0, nil, err
	}
	found, err := c.listed(i, false)
	all := []object{}
	for _, one := range found {
		all = append(all, s.renderComment(c.repo, i, one))
	}
	return http.StatusOK, all, err
}

func (s *Server) createComment(c *call) (int, any, error) {
	i, err := c.issue()
	if err != nil {
		return 0, nil, err
	}
	body, err := c.text()
	if err != nil {
		return 0, nil, err
	}
	made := s.addComment(i, s.author(), body)
	return http.StatusCreated, s.renderComment(c.repo, i, made), nil
}

func (s *Server) updateComment(c *call) (int, any, error) { return s.update(c, false) }
func (s *Server) updateInline(c *call) (int, any, error)  { return s.update(c, true) }
func (s *Server) deleteComment(c *call) (int, any, error) { return s.remove(c, false) }
func (s *Server) deleteInline(c *call) (int, any, error)  { return s.remove(c, true) }

func (s *Server) update(c *call, inline bool) (int, any, error) {
	i, found := c.repo.findComment(c.number("id"), inline)
	if found == nil {
		return 0, nil, errNotFound
	}
	body, err := c.text()
	if err != nil {
		return 0, nil, err
	}
	found.body, found.updated = body, clock()
	if inline {
		return http.StatusOK, s.renderInline(c.repo, i, found), nil
	}
	return http.StatusOK, s.renderComment(c.repo, i, found), nil
}

func (s *Server) remove(c *call, inline bool) (int, any, error) {
	if _, found := c.repo.findComment(c.number("id"), inline); found == nil {
		return 0, nil, errNotFound
	}
	c.repo.removeComment(c.number("id"), inline)
	return http.StatusNoContent, nil, nil
}

func (s *Server) reactToComment(c *call) (int, any, error) {
	_, found := c.repo.findComment(c.number("id"), false)
	if found == nil {
		return 0, nil, errNotFound
	}
	return s.react(c, &found.reactions)
}

func (s *Server) reactToInline(c *call) (int, any, error) {
	_, found := c.repo.findComment(c.number("id"), true)
	if found == nil {
		return 0, nil, errNotFound
	}
	return s.react(c, &found.reactions)
}

func (s *Server) reactToIssue(c *call) (int, any, error) {
	i, err := c.issue()
	if err != nil {
		return 0, nil, err
	}
	return s.react(c, &i.reactions)
}

func (s *Server) react(c *call, list *[]reaction) (int, any, error) {
	var in struct{ Content string }
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	known := []string{"+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"}
	if !slices.Contains(known, in.Content) {
		return 0, nil, invalid("content", "content is not included in the list")
	}
	made, added := react(list, reaction{id: s.newID(), by: s.author(), content: in.Content})
	if added {
		return http.StatusCreated, s.renderReaction(made), nil
	}
	return http.StatusOK, s.renderReaction(made), nil
}

func (s *Server) listInline(c *call) (int, any, error) {
	i, err := c.pullRequest()
	if err != nil {
		return 0, nil, err
	}
	found, err := c.listed(i, true)
	all := []object{}
	for _, one := range found {
		all = append(all, s.renderInline(c.repo, i, one))
	}
	return http.StatusOK, all, err
}

// createReply answers in a thread of the diff, whose first comment is named.
func (s *Server) createReply(c *call) (int, any, error) {
	i, err := c.pullRequest()
	if err != nil {
		return 0, nil, err
	}
	on, root := c.repo.findComment(c.number("id"), true)
	if on != i || root.inReplyTo != 0 {
		return 0, nil, errNotFound
	}
	body, err := c.text()
	if err != nil {
		return 0, nil, err
	}
	made := s.addInline(i, s.author(), ReviewComment{Body: body, Path: root.path, Line: root.line, Hunk: root.hunk, InReplyTo: root.id})
	return http.StatusCreated, s.renderInline(c.repo, i, made), nil
}

func (s *Server) listReviews(c *call) (int, any, error) {
	i, err := c.pullRequest()
	if err != nil {
		return 0, nil, err
	}
	all := []object{}
	for _, v := range page(c, i.reviews) {
		all = append(all, s.renderReview(c.repo, i, v))
	}
	return http.StatusOK, all, nil
}

// ReviewComment describes a comment in the diff.
type ReviewComment struct {
	User, Body string
	Path       string
	Line       int
	// Hunk is the piece of the diff that GitHub shows above it.
	Hunk string
	// InReplyTo is the first comment of its thread; zero for a first one.
	InReplyTo int64
}

func (s *Server) addInline(i *issue, by *user, n ReviewComment) *comment {
	now := clock()
	c := &comment{
		id: s.newID(), reviewID: s.newID(), author: by, body: n.Body, created: now, updated: now,
		path: n.Path, line: n.Line, hunk: n.Hunk, inReplyTo: n.InReplyTo, commit: i.pull.headSHA,
		viaApp: by.login == s.BotLogin(),
	}
	i.inline = append(i.inline, c)
	return c
}
