package githubtest

import "fmt"

func (s *Server) renderPull(r *repository, i *issue) object {
	s.refresh(r, i.pull)
	p := i.pull
	base, html := s.api("/repos/%s/pulls/%d", r.full(), i.number), s.pageURL(r, i)
	issueURL := s.api("/repos/%s/issues/%d", r.full(), i.number)
	o := object{
		"id": p.id, "node_id": nodeID("PR", p.id), "number": i.number, "title": i.title, "body": i.body,
		"url": base, "html_url": html, "diff_url": html + ".diff", "patch_url": html + ".patch", "issue_url": issueURL,
		"commits_url": base + "/commits", "comments_url": issueURL + "/comments", "review_comments_url": base + "/comments",
		"review_comment_url": s.api("/repos/%s/pulls/comments{/number}", r.full()),
		"statuses_url":       s.api("/repos/%s/statuses/%s", r.full(), p.headSHA),
		"state":              state(i), "locked": false, "draft": p.draft, "user": s.renderUser(i.author),
		"author_association": s.association(r, i.author), "labels": []object{}, "milestone": nil,
		"assignee": nil, "assignees": []object{}, "requested_reviewers": []object{}, "requested_teams": []object{},
		"created_at": stamp(i.created), "updated_at": stamp(i.updated), "closed_at": stamp(i.closed), "merged_at": nil,
		"merge_commit_sha": nil, "auto_merge": nil, "merged": p.merged, "mergeable": nil, "rebaseable": nil,
		"mergeable_state": "unknown", "merged_by": nil, "maintainer_can_modify": false,
		"comments": len(i.comments), "review_comments": len(i.inline), "commits": 1, "additions": 1, "deletions": 0, "changed_files": 1,
		"head": s.renderEnd(p.headRepo, p.head, p.headSHA), "base": s.renderEnd(r, p.base, p.baseSHA),
		"_links": pullLinks(base, html, issueURL, s.api("/repos/%s", r.full()), p.headSHA),
	}
	if p.merged {
		o["merged_at"] = stamp(i.closed)
	}
	return o
}

func pullLinks(base, html, issue, repo, sha string) object {
	all := object{}
	for name, href := range map[string]string{
		"self": base, "html": html, "issue": issue, "comments": issue + "/comments", "review_comments": base + "/comments",
		"review_comment": repo + "/pulls/comments{/number}", "commits": base + "/commits", "statuses": repo + "/statuses/" + sha,
	} {
		all[name] = object{"href": href}
	}
	return all
}

func (s *Server) renderEnd(r *repository, branch, sha string) object {
	return object{
		"label": r.owner.login + ":" + branch, "ref": branch, "sha": sha,
		"user": s.renderUser(r.owner), "repo": s.renderRepo(r),
	}
}

func (s *Server) renderCheck(r *repository, c *check) object {
	url := s.api("/repos/%s/check-runs/%d", r.full(), c.id)
	o := object{
		"id": c.id, "node_id": nodeID("CR", c.id), "name": c.name, "head_sha": c.sha, "external_id": c.externalID,
		"url": url, "html_url": fmt.Sprintf("%s/%s/runs/%d", s.URL, r.full(), c.id), "details_url": c.detailsURL,
		"status": c.status, "conclusion": nil, "started_at": stamp(c.started), "completed_at": stamp(c.completed),
		"check_suite": object{"id": r.id}, "app": s.renderApp(), "pull_requests": s.pullsOf(r, c.sha),
		"output": object{
			"title": c.title, "summary": c.summary, "text": nil, "annotations_count": 0, "annotations_url": url + "/annotations",
		},
	}
	if c.conclusion != "" {
		o["conclusion"] = c.conclusion
	}
	return o
}

// pullsOf are the open pull requests from the repository itself whose head a
// commit is. GitHub leaves those of forks out.
func (s *Server) pullsOf(r *repository, sha string) []object {
	all := []object{}
	for _, i := range r.sorted() {
		if i.pull == nil || i.pull.headRepo != r || !i.closed.IsZero() {
			continue
		}
		s.refresh(r, i.pull)
		if i.pull.headSHA != sha {
			continue
		}
		end := func(branch, sha string) object {
			repo := object{"id": r.id, "url": s.api("/repos/%s", r.full()), "name": r.name}
			return object{"ref": branch, "sha": sha, "repo": repo}
		}
		all = append(all, object{
			"id": i.pull.id, "number": i.number, "url": s.api("/repos/%s/pulls/%d", r.full(), i.number),
			"head": end(i.pull.head, i.pull.headSHA), "base": end(i.pull.base, i.pull.baseSHA),
		})
	}
	return all
}
