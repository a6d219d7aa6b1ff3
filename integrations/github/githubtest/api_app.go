package githubtest

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
)

func (s *Server) getApp(*call) (int, any, error) { return http.StatusOK, s.renderApp(), nil }

// installationOf returns what {installation_id} names.
func (s *Server) installationOf(c *call) (*installation, error) {
	for _, in := range s.owners {
		if in.id == c.number("installation_id") {
			return in, nil
		}
	}
	return nil, errNotFound
}

func (s *Server) getInstallation(c *call) (int, any, error) {
	in, err := s.installationOf(c)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, s.renderInstallation(in), nil
}

func (s *Server) listInstallations(c *call) (int, any, error) {
	all := slices.SortedFunc(maps.Values(s.owners), func(a, b *installation) int { return cmp.Compare(a.id, b.id) })
	list := []object{}
	for _, in := range page(c, all) {
		list = append(list, s.renderInstallation(in))
	}
	return http.StatusOK, list, nil
}

// listRepositories are those that a token reaches.
func (s *Server) listRepositories(c *call) (int, any, error) {
	var reached []*repository
	for _, r := range s.repos {
		if c.token.reaches(r) {
			reached = append(reached, r)
		}
	}
	slices.SortFunc(reached, func(a, b *repository) int { return cmp.Compare(a.id, b.id) })
	list := []object{}
	for _, r := range page(c, reached) {
		list = append(list, s.renderRepo(r))
	}
	return http.StatusOK, object{"total_count": len(reached), "repositories": list}, nil
}

func (s *Server) findInstallation(c *call) (int, any, error) {
	r := s.repo(c.PathValue("owner") + "/" + c.PathValue("repo"))
	if r == nil || !r.installed {
		return 0, nil, errNotFound
	}
	return http.StatusOK, s.renderInstallation(s.installed(r.owner.login)), nil
}

func (s *Server) createToken(c *call) (int, any, error) {
	in, err := s.installationOf(c)
	if err != nil {
		return 0, nil, err
	}
	if in.suspended {
		return 0, nil, refusal{status: http.StatusForbidden, message: "This installation has been suspended"}
	}
	var want tokenRequest
	if err := c.decode(&want); err != nil {
		return 0, nil, err
	}
	t, err := s.mint(in, want)
	if err != nil {
		return 0, nil, err
	}
	answer := object{"token": t.text, "expires_at": stamp(t.expires), "permissions": t.permissions, "repository_selection": "all"}
	if t.repos != nil {
		repos := []object{}
		for _, r := range s.repos {
			if t.repos[r.id] {
				repos = append(repos, s.renderRepo(r))
			}
		}
		answer["repositories"], answer["repository_selection"] = repos, "selected"
	}
	return http.StatusCreated, answer, nil
}

func (s *Server) getRepo(c *call) (int, any, error) {
	return http.StatusOK, s.renderRepo(c.repo), nil
}

func (s *Server) getBranch(c *call) (int, any, error) {
	name := c.PathValue("branch")
	sha := s.head(c.repo, name)
	if sha == zeroSHA {
		return 0, nil, refusal{status: http.StatusNotFound, message: "Branch not found"}
	}
	self := s.api("/repos/%s/branches/%s", c.repo.full(), name)
	return http.StatusOK, object{
		"name": name, "protected": false, "protection_url": self + "/protection",
		"protection": object{"enabled": false},
		"_links":     object{"self": self, "html": s.URL + "/" + c.repo.full() + "/tree/" + name},
		"commit":     s.renderCommit(c.repo, sha),
	}, nil
}

func (s *Server) renderCommit(r *repository, sha string) object {
	url := s.api("/repos/%s/commits/%s", r.full(), sha)
	who := object{"name": "A Person", "email": "person@example.com", "date": stamp(r.created)}
	return object{
		"sha": sha, "node_id": nodeID("C", r.id), "url": url, "html_url": s.URL + "/" + r.full() + "/commit/" + sha,
		"comments_url": url + "/comments", "author": nil, "committer": nil, "parents": []object{},
		"commit": object{
			"message": "a commit", "author": who, "committer": who, "comment_count": 0, "url": url,
			"tree": object{"sha": sha, "url": url},
		},
	}
}

// getPermission: who was never mentioned may read a public repository.
func (s *Server) getPermission(c *call) (int, any, error) {
	login := c.PathValue("username")
	u := s.users[strings.ToLower(login)]
	if u == nil {
		return 0, nil, errNotFound
	}
	level := c.repo.rights[strings.ToLower(login)]
	if level == "" {
		level = "read"
	}
	who := s.renderUser(u)
	who["permissions"] = object{"pull": level != "none", "triage": false, "push": level == "write" || level == "admin", "maintain": false, "admin": level == "admin"}
	who["role_name"] = level
	return http.StatusOK, object{"permission": level, "role_name": level, "user": who}, nil
}
