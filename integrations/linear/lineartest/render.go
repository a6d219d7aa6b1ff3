package lineartest

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// The objects of webhooks, as their types in Linear's schema have them. What
// may be null is rendered as any, for nil in a map is null.

func renderUser(u *user) any {
	if u == nil {
		return nil
	}
	return object{"id": u.id, "name": u.name, "email": u.email, "avatarUrl": nil, "url": u.url()}
}

func userID(u *user) any {
	if u == nil {
		return nil
	}
	return u.id
}

func renderIssue(i *issue) any {
	if i == nil {
		return nil
	}
	return object{
		"id": i.id, "identifier": i.identifier(), "title": i.title, "description": i.description, "url": i.url(),
		"teamId": i.team.id, "team": object{"id": i.team.id, "key": i.team.key, "name": i.team.name},
	}
}

func issueID(i *issue) any {
	if i == nil {
		return nil
	}
	return i.id
}

func renderComment(c *comment) any {
	if c == nil {
		return nil
	}
	return object{"id": c.id, "body": c.body, "issueId": issueID(c.issue), "userId": userID(c.author)}
}

func commentID(c *comment) any {
	if c == nil {
		return nil
	}
	return c.id
}

func (s *Server) renderSession(a *session) object {
	var url any
	if a.issue != nil {
		url = a.url()
	}
	return object{
		"id": a.id, "createdAt": stamp(a.created), "updatedAt": stamp(a.updated), "archivedAt": nil,
		"appUserId": s.app.id, "organizationId": s.orgID, "creatorId": userID(a.creator), "creator": renderUser(a.creator),
		"issueId": issueID(a.issue), "issue": renderIssue(a.issue), "commentId": commentID(a.comment), "comment": renderComment(a.comment),
		"sourceCommentId": nil, "sourceMetadata": nil, "status": a.status(s.now()), "type": "commentThread",
		"startedAt": orNull(a.started), "endedAt": orNull(a.ended), "summary": nil, "url": url,
	}
}

func renderActivity(a *activity) object {
	var signal any
	if a.signal != "" {
		signal = a.signal
	}
	return object{
		"id": a.id, "createdAt": stamp(a.created), "updatedAt": stamp(a.created), "archivedAt": nil, "agentSessionId": a.session.id,
		"content": a.content, "signal": signal, "signalMetadata": nil, "sourceCommentId": commentID(a.source),
		"userId": a.author.id, "user": renderUser(a.author),
	}
}

// renderGuidance lists the words for agents, the nearest first.
func (s *Server) renderGuidance(i *issue) []object {
	rules := []object{}
	if i != nil && i.team.guidance != "" {
		rules = append(rules, object{"body": i.team.guidance, "origin": object{"type": "Team", "team": object{
			"id": i.team.id, "key": i.team.key, "name": i.team.name, "displayName": i.team.name, "parentId": nil,
		}}})
	}
	if s.guidance != "" {
		rules = append(rules, object{"body": s.guidance, "origin": object{"type": "Organization"}})
	}
	return rules
}

// promptContext is what Linear writes for a model to read. Its shape is no
// contract.
func (s *Server) promptContext(a *session, asked *comment) string {
	var b strings.Builder
	if i := a.issue; i != nil {
		fmt.Fprintf(&b, "<issue identifier=\"%s\">\n<title>%s</title>\n<description>\n%s\n</description>\n<team name=\"%s\"/>\n",
			escape(i.identifier()), escape(i.title), escape(i.description), escape(i.team.name))
		for _, l := range i.labels {
			fmt.Fprintf(&b, "<label>%s</label>\n", escape(l.name))
		}
		if i.project != nil {
			fmt.Fprintf(&b, "<project name=\"%s\"/>\n", escape(i.project.name))
		}
		b.WriteString("</issue>\n\n")
	}
	if asked != nil && asked.author != nil {
		fmt.Fprintf(&b, "<primary-directive-thread comment-id=\"%s\">\n<comment author=\"%s\" created-at=\"%s\">\n%s\n</comment>\n</primary-directive-thread>\n\n",
			asked.id, escape(asked.author.name), asked.created.Format("2006-01-02 15:04:05"), escape(asked.body))
	}
	s.writeGuidance(&b, a.issue)
	return strings.TrimSpace(b.String())
}

func (s *Server) writeGuidance(b *strings.Builder, i *issue) {
	var rules strings.Builder
	if i != nil && i.team.guidance != "" {
		fmt.Fprintf(&rules, "<guidance-rule origin=\"team\" team-name=\"%s\">\n%s\n</guidance-rule>\n", escape(i.team.name), escape(i.team.guidance))
	}
	if s.guidance != "" {
		fmt.Fprintf(&rules, "<guidance-rule origin=\"workspace\">\n%s\n</guidance-rule>\n", escape(s.guidance))
	}
	if rules.Len() > 0 {
		fmt.Fprintf(b, "<guidance>\n%s</guidance>", rules.String())
	}
}

func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer takes everything
	return b.String()
}
