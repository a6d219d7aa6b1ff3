package githubtest

import (
	"fmt"
	"strings"
	"time"
)

// Everything is rendered in full, so that it stands up to GitHub's own
// description of its answers. The caller of each function holds mu.

func (s *Server) api(format string, args ...any) string {
	return s.APIURL() + fmt.Sprintf(format, args...)
}

// links adds addresses that end in a word each.
func links(o object, base string, words ...string) {
	for _, word := range words {
		o[word+"_url"] = base + "/" + word
	}
}

func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339)
}

func (s *Server) renderUser(u *user) object {
	base := s.api("/users/%s", u.login)
	o := object{
		"login": u.login, "id": u.id, "node_id": nodeID("U", u.id), "type": u.kind, "site_admin": false,
		"gravatar_id": "", "url": base, "html_url": s.URL + "/" + u.login,
		"avatar_url": s.URL + "/avatars/" + u.login, "repos_url": base + "/repos",
	}
	links(o, base, "followers", "following", "gists", "starred", "subscriptions", "organizations", "events", "received_events")
	return o
}

func (s *Server) renderRepo(r *repository) object {
	base := s.api("/repos/%s", r.full())
	web := s.URL + "/" + r.full()
	o := object{
		"id": r.id, "node_id": nodeID("R", r.id), "name": r.name, "full_name": r.full(), "owner": s.renderUser(r.owner),
		"private": r.private, "visibility": visibility(r), "html_url": web, "description": nil, "fork": r.parent != nil, "url": base,
		"clone_url": web + ".git", "git_url": web + ".git", "ssh_url": web + ".git", "svn_url": web, "mirror_url": nil,
		"homepage": nil, "language": nil, "license": nil, "topics": []string{},
		"default_branch": r.base, "archived": r.archived, "disabled": false,
		"created_at": stamp(r.created), "updated_at": stamp(r.created), "pushed_at": stamp(r.pushed),
	}
	for _, count := range []string{
		"forks", "forks_count", "stargazers_count", "watchers", "watchers_count", "size", "open_issues", "open_issues_count",
		"network_count", "subscribers_count",
	} {
		o[count] = 0
	}
	for _, has := range []string{"issues", "projects", "wiki", "pages", "discussions", "downloads"} {
		o["has_"+has] = has == "issues"
	}
	links(o, base, "archive", "assignees", "blobs", "branches", "collaborators", "comments", "commits", "compare",
		"contents", "contributors", "deployments", "downloads", "events", "forks", "git_commits", "git_refs", "git_tags",
		"hooks", "issue_comment", "issue_events", "issues", "keys", "labels", "languages", "merges", "milestones",
		"notifications", "pulls", "releases", "stargazers", "statuses", "subscribers", "subscription", "tags", "teams", "trees")
	return o
}

func visibility(r *repository) string {
	if r.private {
		return "private"
	}
	return "public"
}

func (s *Server) renderApp() object {
	u := s.person(s.BotLogin())
	return object{
		"id": s.opts.AppID, "slug": s.opts.Slug, "node_id": nodeID("A", s.opts.AppID), "name": s.opts.Slug,
		"owner": s.renderUser(u), "description": "", "external_url": s.URL, "html_url": s.URL + "/apps/" + s.opts.Slug,
		"created_at": stamp(time.Unix(0, 0)), "updated_at": stamp(time.Unix(0, 0)),
		"permissions": s.opts.Permissions, "events": s.opts.Events,
	}
}

func (s *Server) renderInstallation(in *installation) object {
	return object{
		"id": in.id, "app_id": s.opts.AppID, "app_slug": s.opts.Slug, "target_id": in.owner.id, "target_type": in.owner.kind,
		"account": s.renderUser(in.owner), "repository_selection": "selected", "single_file_name": nil,
		"access_tokens_url": s.api("/app/installations/%d/access_tokens", in.id), "html_url": s.URL + "/settings/installations",
		"repositories_url": s.api("/installation/repositories"), "permissions": cloneWith(in.permissions, "metadata", "read"),
		"events": s.opts.Events, "created_at": stamp(clock()), "updated_at": stamp(clock()),
		"suspended_by": nil, "suspended_at": stamp(in.suspendedAt()),
	}
}

func (s *Server) association(r *repository, u *user) string {
	switch r.rights[strings.ToLower(u.login)] {
	case "admin":
		return "OWNER"
	case "write", "read":
		return "COLLABORATOR"
	}
	return "NONE"
}

func (s *Server) renderIssue(r *repository, i *issue) object {
	base := s.api("/repos/%s/issues/%d", r.full(), i.number)
	labels := []object{}
	for _, name := range i.labels {
		labels = append(labels, s.renderLabel(r, name))
	}
	o := object{
		"id": i.id, "node_id": nodeID("I", i.id), "number": i.number, "title": i.title, "body": i.body, "url": base,
		"repository_url": s.api("/repos/%s", r.full()), "html_url": s.pageURL(r, i), "user": s.renderUser(i.author),
		"author_association": s.association(r, i.author), "labels": labels, "state": state(i), "locked": false,
		"assignee": nil, "assignees": []object{}, "milestone": nil, "comments": len(i.comments),
		"created_at": stamp(i.created), "updated_at": stamp(i.updated), "closed_at": stamp(i.closed),
		"performed_via_github_app": nil,
	}
	links(o, base, "comments", "events", "timeline")
	o["labels_url"] = base + "/labels{/name}"
	if i.pull != nil {
		url := s.api("/repos/%s/pulls/%d", r.full(), i.number)
		o["pull_request"] = object{"url": url, "html_url": s.pageURL(r, i), "diff_url": s.pageURL(r, i) + ".diff", "patch_url": s.pageURL(r, i) + ".patch"}
		o["draft"] = i.pull.draft
	}
	return o
}

func (s *Server) renderLabel(r *repository, name string) object {
	return object{
		"id": 1, "node_id": nodeID("L", 1), "url": s.api("/repos/%s/labels/%s", r.full(), name), "name": name,
		"color": "ededed", "default": false, "description": nil,
	}
}

func state(i *issue) string {
	if i.closed.IsZero() {
		return "open"
	}
	return "closed"
}

func (s *Server) pageURL(r *repository, i *issue) string {
	kind := "issues"
	if i.pull != nil {
		kind = "pull"
	}
	return fmt.Sprintf("%s/%s/%s/%d", s.URL, r.full(), kind, i.number)
}

func (s *Server) renderComment(r *repository, i *issue, c *comment) object {
	o := object{
		"id": c.id, "node_id": nodeID("IC", c.id), "body": c.body, "user": s.renderUser(c.author),
		"author_association": s.association(r, c.author), "created_at": stamp(c.created), "updated_at": stamp(c.updated),
		"url": s.api("/repos/%s/issues/comments/%d", r.full(), c.id), "issue_url": s.api("/repos/%s/issues/%d", r.full(), i.number),
		"html_url": fmt.Sprintf("%s#issuecomment-%d", s.pageURL(r, i), c.id), "performed_via_github_app": nil,
	}
	if c.viaApp {
		o["performed_via_github_app"] = s.renderApp()
	}
	return o
}

func (s *Server) renderInline(r *repository, i *issue, c *comment) object {
	pull := s.api("/repos/%s/pulls/%d", r.full(), i.number)
	self := s.api("/repos/%s/pulls/comments/%d", r.full(), c.id)
	html := fmt.Sprintf("%s#discussion_r%d", s.pageURL(r, i), c.id)
	o := object{
		"id": c.id, "node_id": nodeID("RC", c.id), "pull_request_review_id": c.reviewID, "body": c.body,
		"user": s.renderUser(c.author), "author_association": s.association(r, c.author),
		"diff_hunk": c.hunk, "path": c.path, "line": c.line, "side": "RIGHT", "commit_id": c.commit, "original_commit_id": c.commit,
		"created_at": stamp(c.created), "updated_at": stamp(c.updated), "url": self, "html_url": html, "pull_request_url": pull,
		"_links": object{"self": object{"href": self}, "html": object{"href": html}, "pull_request": object{"href": pull}},
	}
	if c.inReplyTo != 0 {
		o["in_reply_to_id"] = c.inReplyTo
	}
	return o
}

func (s *Server) renderReview(r *repository, i *issue, v *review) object {
	pull := s.api("/repos/%s/pulls/%d", r.full(), i.number)
	html := fmt.Sprintf("%s#pullrequestreview-%d", s.pageURL(r, i), v.id)
	return object{
		"id": v.id, "node_id": nodeID("RV", v.id), "user": s.renderUser(v.author), "body": v.body, "state": v.state,
		"commit_id": v.commit, "html_url": html, "pull_request_url": pull, "submitted_at": stamp(v.created),
		"author_association": s.association(r, v.author),
		"_links":             object{"html": object{"href": html}, "pull_request": object{"href": pull}},
	}
}

func (s *Server) renderReaction(r reaction) object {
	return object{"id": r.id, "node_id": nodeID("RE", r.id), "user": s.renderUser(r.by), "content": r.content, "created_at": stamp(clock())}
}
