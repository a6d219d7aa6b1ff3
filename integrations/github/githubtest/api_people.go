package githubtest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// SetEmail says that somebody verified an address, and whether it is shown on
// their profile. Commits with the address are linked to whom it belongs to.
func (s *Server) SetEmail(login, address string, public bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.person(login)
	s.emails[strings.ToLower(address)] = u
	if public {
		u.email = address
	}
}

// UserID returns the number of an account.
func (s *Server) UserID(login string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.person(login).id
}

// CommitAs puts files on a branch with an address as the author's, whoever it
// belongs to: git does not ask.
func (s *Server) CommitAs(repo, branch, address string, files map[string]string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.push(s.must(repo), change{branch: branch, author: address, message: "By " + address, files: files})
}

// SetPushed changes when a repository was pushed to last.
func (s *Server) SetPushed(repo string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.must(repo).pushed = at
}

// Archive makes a repository one that nothing can be pushed to.
func (s *Server) Archive(repo string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.must(repo).archived = true
}

// linked is the account that verified an address, or nil. Those that GitHub
// gives out begin with the account's number.
func (s *Server) linked(address string) *user {
	address = strings.ToLower(address)
	if u := s.emails[address]; u != nil {
		return u
	}
	for _, u := range s.users {
		if strings.HasPrefix(address, fmt.Sprintf("%d+", u.id)) && strings.Contains(address, "@users.noreply.") {
			return u
		}
	}
	return nil
}

func (s *Server) getUser(c *call) (int, any, error) {
	u := s.users[strings.ToLower(c.PathValue("username"))]
	if u == nil {
		return 0, nil, errNotFound
	}
	o := s.renderUser(u)
	for _, none := range []string{"bio", "blog", "company", "hireable", "location", "name", "email"} {
		o[none] = nil
	}
	for _, count := range []string{"followers", "following", "public_gists", "public_repos"} {
		o[count] = 0
	}
	if u.email != "" {
		o["email"] = u.email
	}
	o["created_at"], o["updated_at"], o["user_view_type"] = stamp(time.Unix(0, 0)), stamp(time.Unix(0, 0)), "public"
	return http.StatusOK, o, nil
}

// searchUsers finds whose public address has the term in it, as one that is
// like it does.
func (s *Server) searchUsers(c *call) (int, any, error) {
	term, in, _ := strings.Cut(c.URL.Query().Get("q"), " ")
	if term == "" || in != "in:email" {
		return 0, nil, invalid("q", "The stand-in searches for addresses only")
	}
	byLogin := func(a, b *user) int { return cmp.Compare(a.login, b.login) }
	var found []*user
	for _, u := range slices.SortedFunc(maps.Values(s.users), byLogin) {
		if strings.Contains(strings.ToLower(u.email), strings.ToLower(term)) {
			found = append(found, u)
		}
	}
	items := []object{}
	for _, u := range page(c, found) {
		o := s.renderUser(u)
		o["score"] = 1.0
		items = append(items, o)
	}
	return http.StatusOK, object{"total_count": len(found), "incomplete_results": false, "items": items}, nil
}

// listCommits lists those of the default branch, newest first. An address as
// the author stands for whom it belongs to, with all that they wrote.
func (s *Server) listCommits(c *call) (int, any, error) {
	log, err := s.git(c.repo, "", "log", "--format=%H %ae", "refs/heads/"+c.repo.base)
	if err != nil {
		return 0, nil, refusal{status: http.StatusConflict, message: "Git Repository is empty."}
	}
	author := c.URL.Query().Get("author")
	owner := s.linked(author)
	var found [][2]string
	for line := range strings.Lines(log) {
		sha, address, _ := strings.Cut(strings.TrimSpace(line), " ")
		theirs := owner != nil && s.linked(address) == owner
		if author == "" || theirs || strings.EqualFold(address, author) {
			found = append(found, [2]string{sha, address})
		}
	}
	list := []object{}
	for _, commit := range page(c, found) {
		list = append(list, s.renderAuthored(c.repo, commit[0], commit[1]))
	}
	return http.StatusOK, list, nil
}

func (s *Server) renderAuthored(r *repository, sha, address string) object {
	o := s.renderCommit(r, sha)
	git := o["commit"].(object) // as it is made
	git["author"] = object{"name": "A Person", "email": address, "date": stamp(r.created)}
	if u := s.linked(address); u != nil {
		o["author"] = s.renderUser(u)
	}
	return o
}
