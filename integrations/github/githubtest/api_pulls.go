package githubtest

import (
	"net/http"
	"strings"
)

func (s *Server) listPulls(c *call) (int, any, error) {
	query := c.URL.Query()
	all := []*issue{}
	for _, i := range c.repo.sorted() {
		if i.pull != nil && matches(i, query.Get("state"), query.Get("head")) {
			all = append(all, i)
		}
	}
	list := []object{}
	for _, i := range page(c, all) {
		list = append(list, s.renderPull(c.repo, i))
	}
	return http.StatusOK, list, nil
}

func matches(i *issue, wanted, head string) bool {
	if wanted == "" {
		wanted = "open"
	}
	if wanted != "all" && wanted != state(i) {
		return false
	}
	// GitHub ignores a head without an owner.
	return !strings.Contains(head, ":") || head == i.pull.headRepo.owner.login+":"+i.pull.head
}

func (s *Server) getPull(c *call) (int, any, error) {
	i, err := c.pullRequest()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, s.renderPull(c.repo, i), nil
}

func (s *Server) createPull(c *call) (int, any, error) {
	var in struct {
		Title, Head, Base, Body string
		Draft                   bool
	}
	if err := c.decode(&in); err != nil {
		return 0, nil, err
	}
	p := &pull{id: s.newID(), headRepo: c.repo, head: in.Head, base: in.Base, draft: in.Draft}
	s.refresh(c.repo, p)
	switch {
	case in.Title == "":
		return 0, nil, invalid("title", "title can't be blank")
	case in.Draft && s.opts.NoDrafts:
		return 0, nil, refusal{status: http.StatusUnprocessableEntity, message: "Draft pull requests are not supported in this repository."}
	case p.headSHA == "":
		return 0, nil, invalid("head", "head is invalid")
	case p.baseSHA == "":
		return 0, nil, invalid("base", "base is invalid")
	case len(c.repo.openPulls(c.repo, in.Head)) > 0:
		return 0, nil, invalid("", "A pull request already exists for "+c.repo.owner.login+":"+in.Head+".")
	case !s.ahead(c.repo, p):
		return 0, nil, invalid("", "No commits between "+in.Base+" and "+in.Head)
	}
	i := s.newIssue(c.repo, s.author(), in.Title, in.Body)
	i.pull = p
	return http.StatusCreated, s.renderPull(c.repo, i), nil
}
