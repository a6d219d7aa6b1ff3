package slacktest

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
	slackID  = regexp.MustCompile(`\b[A-Z]0[0-9A-F]{10}\b`)
	slackTS  = regexp.MustCompile(`\b1[0-9]{9}\.[0-9]{6}\b|\bp1[0-9]{15}\b`)
	longHex  = regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)
	loopback = regexp.MustCompile(`\b(127\.0\.0\.1|localhost):[0-9]+`)
)

// masked takes ids, timestamps, commits and ports out of a text.
func masked(text string) string {
	text = anyUUID.ReplaceAllString(text, "ID")
	text = slackID.ReplaceAllString(text, "ID")
	text = slackTS.ReplaceAllString(text, "TS")
	text = loopback.ReplaceAllString(text, "$1:PORT")
	return longHex.ReplaceAllStringFunc(text, func(s string) string {
		if strings.ContainsAny(s, "abcdef") && strings.ContainsAny(s, "0123456789") {
			return "COMMIT"
		}
		return s
	})
}

// World returns all that people can see in the end, without what differs from
// run to run: ids, timestamps, commits, ports, how often something was changed,
// and what only one person was shown. Two runs that led to the same are equal.
func (s *Server) World() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "workspace %s installed=%t\n", domain, s.tokenGone == "")
	channels := slices.SortedStableFunc(slices.Values(s.channels), func(a, b *channel) int { return cmp.Compare(s.title(a), s.title(b)) })
	for _, c := range channels {
		if c.kind == kindDirect && len(c.messages) == 0 {
			continue // nobody has written anything
		}
		fmt.Fprintf(&b, "%s\n", s.title(c))
		for _, m := range c.messages {
			if m.thread == "" && !m.gone {
				s.dumpThread(&b, c, m)
			}
		}
	}
	return b.String()
}

// title is what people call a channel.
func (s *Server) title(c *channel) string {
	if c.kind == kindDirect {
		return "direct messages of " + c.members[1].handle
	}
	return "channel #" + c.name
}

func (s *Server) dumpThread(b *strings.Builder, c *channel, root *message) {
	s.dumpMessage(b, "  ", root)
	if a := s.session(c, root.ts); a != nil {
		fmt.Fprintf(b, "    session %s %q\n", a.at(s.now()), masked(a.title))
	}
	for _, m := range c.replies(root.ts) {
		s.dumpMessage(b, "    ", m)
	}
}

func (s *Server) dumpMessage(b *strings.Builder, indent string, m *message) {
	who := m.author.handle
	if m.broadcast {
		who += " (to the channel too)"
	}
	fmt.Fprintf(b, "%s%s\n", indent, who)
	for line := range strings.Lines(masked(s.rendered(m.content))) {
		fmt.Fprintf(b, "%s| %s\n", indent, strings.TrimRight(line, "\r\n"))
	}
	for _, f := range m.files {
		fmt.Fprintf(b, "%sfile %s\n", indent, f.name)
	}
	all := reactions(m)
	slices.Sort(all)
	if len(all) > 0 {
		fmt.Fprintf(b, "%s%s\n", indent, strings.Join(all, ", "))
	}
}
