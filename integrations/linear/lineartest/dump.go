package lineartest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// What differs from run to run, found in texts.
var (
	anyUUID  = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	longHex  = regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)
	loopback = regexp.MustCompile(`\b(127\.0\.0\.1|localhost):[0-9]+`)
)

// masked takes ids, commits and ports out of a text.
func masked(text string) string {
	text = anyUUID.ReplaceAllString(text, "ID")
	text = loopback.ReplaceAllString(text, "$1:PORT")
	return longHex.ReplaceAllStringFunc(text, func(s string) string {
		if strings.ContainsAny(s, "abcdef") && strings.ContainsAny(s, "0123456789") {
			return "COMMIT"
		}
		return s
	})
}

// World returns all that the outside world can see in the end, without what
// differs from run to run: ids, times, commits, ports and ephemeral activities
// are left out. Two runs that led to the same are equal.
func (s *Server) World() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "workspace %s installed=%t\n", urlKey, !s.uninstalled)
	issues := slices.SortedFunc(slices.Values(s.issues), func(a, b *issue) int {
		return cmp.Or(cmp.Compare(a.team.key, b.team.key), cmp.Compare(a.number, b.number))
	})
	for _, i := range issues {
		s.dumpIssue(&b, i)
		s.dumpSessions(&b, i)
	}
	s.dumpSessions(&b, nil)
	return b.String()
}

func (s *Server) dumpIssue(b *strings.Builder, i *issue) {
	fmt.Fprintf(b, "issue %s %q state=%q assignee=%s delegate=%s\n", i.identifier(), i.title, i.state.name, handle(i.assignee), handle(i.delegate))
	var attachments []string
	for _, a := range i.attachments {
		attachments = append(attachments, fmt.Sprintf("  attachment %q %q %s %s\n", masked(a.title), masked(a.subtitle), masked(a.url), a.source))
	}
	slices.Sort(attachments)
	b.WriteString(strings.Join(attachments, ""))
	for _, c := range s.comments {
		if c.issue == i {
			fmt.Fprintf(b, "  comment by %s answer=%t\n", handle(c.author), c.parent != nil)
			dumpText(b, "    ", c.body)
		}
	}
}

func (s *Server) dumpSessions(b *strings.Builder, on *issue) {
	for _, a := range s.sessions {
		if a.issue == on {
			s.dumpSession(b, a)
		}
	}
}

func (s *Server) dumpSession(b *strings.Builder, a *session) {
	fmt.Fprintf(b, "  session %s by %s\n", a.status(s.now()), handle(a.creator))
	for _, step := range a.plan {
		fmt.Fprintf(b, "    plan %s %q\n", step.Status, masked(step.Content))
	}
	for _, l := range a.links {
		fmt.Fprintf(b, "    link %q %s\n", masked(l.Label), masked(l.Url))
	}
	for _, said := range a.activities {
		if said.ephemeral {
			continue
		}
		c := said.content
		fmt.Fprintf(b, "    %s by %s signal=%s\n", c.Type, handle(said.author), said.signal)
		if c.Action != "" {
			fmt.Fprintf(b, "      %q %q\n", masked(c.Action), masked(c.Parameter))
		}
		dumpText(b, "      ", c.Body+c.Result)
		if said.signal != "" {
			dumpText(b, "      ", string(said.metadata))
		}
	}
}

func dumpText(b *strings.Builder, indent, text string) {
	for line := range strings.Lines(masked(text)) {
		fmt.Fprintf(b, "%s| %s\n", indent, strings.TrimRight(line, "\r\n"))
	}
}
