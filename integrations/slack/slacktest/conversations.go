package slacktest

import (
	"slices"
	"strings"
)

// replies lists a thread. Assumed: its root comes first on every page.
func (s *Server) replies(in args) (object, error) {
	c, err := s.readable(in.get("channel"))
	if err != nil {
		return nil, err
	}
	root := c.find(in.get("ts"))
	if root == nil {
		return nil, refuse("thread_not_found")
	}
	size, err := in.count("limit", 1000, 1000)
	if err != nil {
		return nil, err
	}
	var replies []*message
	if root.thread == "" { // of a reply there is just itself
		replies = between(in, c.replies(root.ts))
	}
	got, next, err := s.pageOfLines(in, replies, size, false)
	if err != nil {
		return nil, err
	}
	return s.lines(in, append([]*message{root}, got...), next), nil
}

// history lists what is in a channel, the newest first, and no replies unless
// they were shown to all.
func (s *Server) history(in args) (object, error) {
	c, err := s.readable(in.get("channel"))
	if err != nil {
		return nil, err
	}
	size, err := in.count("limit", 100, 999)
	if err != nil {
		return nil, err
	}
	var roots []*message
	for _, m := range slices.Backward(c.messages) {
		if !m.gone && (m.thread == "" || m.broadcast) {
			roots = append(roots, m)
		}
	}
	got, next, err := s.pageOfLines(in, between(in, roots), size, true)
	if err != nil {
		return nil, err
	}
	return s.lines(in, got, next), nil
}

// readable finds a channel whose messages the app may read.
func (s *Server) readable(id string) (*channel, error) {
	c, err := s.visible(id)
	if err != nil {
		return nil, err
	}
	if err := s.needs(family(c.kind) + ":history"); err != nil {
		return nil, err
	}
	if !c.has(s.bot) {
		return nil, refuse("not_in_channel")
	}
	return c, nil
}

// between keeps what is of the time that was asked for.
func between(in args, all []*message) []*message {
	oldest, latest, both := in.get("oldest"), in.get("latest"), in.yes("inclusive")
	return slices.DeleteFunc(all, func(m *message) bool {
		early := oldest != "" && (m.ts < oldest || m.ts == oldest && !both)
		late := latest != "" && (m.ts > latest || m.ts == latest && !both)
		return early || late
	})
}

// pageOfLines is the page of messages after the one that a cursor names, so
// that what is written meanwhile moves nothing.
func (s *Server) pageOfLines(in args, all []*message, size int, newestFirst bool) (got []*message, next string, err error) {
	const prefix = "next_ts:"
	if cursor := in.get("cursor"); cursor != "" {
		last, ok := strings.CutPrefix(cursor, prefix)
		if !ok || !isTS(last) {
			return nil, "", refuse("invalid_cursor")
		}
		all = slices.DeleteFunc(all, func(m *message) bool { return m.ts == last || (m.ts < last) != newestFirst })
	}
	size = s.atMost(size)
	if len(all) <= size {
		return all, "", nil
	}
	return all[:size], prefix + all[size-1].ts, nil
}

func (s *Server) lines(in args, messages []*message, next string) object {
	lines := []object{}
	for _, m := range messages {
		lines = append(lines, s.renderMessage(m, in.yes("include_all_metadata")))
	}
	return object{"messages": lines, "has_more": next != "", "response_metadata": object{"next_cursor": next}}
}

func (s *Server) conversationInfo(in args) (object, error) {
	c, err := s.visible(in.get("channel"))
	if err != nil {
		return nil, err
	}
	if err := s.needs(family(c.kind) + ":read"); err != nil {
		return nil, err
	}
	o := s.renderChannel(c)
	if in.yes("include_num_members") {
		o["num_members"] = len(c.members)
	}
	return object{"channel": o}, nil
}

// listConversations lists what the app can see.
func (s *Server) listConversations(in args) (object, error) {
	return s.list(in, func(c *channel) bool {
		_, err := s.visible(c.id)
		return err == nil
	})
}

// listJoined lists what the app is in. Of others it is not asked here.
func (s *Server) listJoined(in args) (object, error) {
	return s.list(in, func(c *channel) bool { return c.has(s.bot) })
}

func (s *Server) list(in args, shown func(*channel) bool) (object, error) {
	kinds := map[string]string{"public_channel": kindPublic, "private_channel": kindPrivate, "im": kindDirect, "mpim": kindParty}
	types := in.get("types")
	if types == "" {
		types = "public_channel"
	}
	var wanted []string
	for name := range strings.SplitSeq(types, ",") {
		kind, ok := kinds[strings.TrimSpace(name)]
		if !ok {
			return nil, refuse("invalid_types")
		}
		if err := s.needs(family(kind) + ":read"); err != nil {
			return nil, err
		}
		wanted = append(wanted, kind)
	}
	size, err := in.count("limit", 100, 999)
	if err != nil {
		return nil, err
	}
	var seen []*channel
	for _, c := range s.channels {
		if shown(c) && slices.Contains(wanted, c.kind) && !(c.archived && in.yes("exclude_archived")) {
			seen = append(seen, c)
		}
	}
	got, next, err := paged(s, in, seen, size)
	if err != nil {
		return nil, err
	}
	channels := []object{}
	for _, c := range got {
		channels = append(channels, s.renderChannel(c))
	}
	return object{"channels": channels, "response_metadata": object{"next_cursor": next}}, nil
}

func (s *Server) joinConversation(in args) (object, error) {
	c, err := s.visible(in.get("channel"))
	switch {
	case err != nil:
		return nil, err
	case c.kind != kindPublic:
		return nil, refuse("method_not_supported_for_channel_type")
	case c.archived:
		return nil, refuse("is_archived")
	}
	if !c.has(s.bot) {
		c.members = append(c.members, s.bot)
	}
	return object{"channel": s.renderChannel(c)}, nil
}

func (s *Server) listMembers(in args) (object, error) {
	c, err := s.visible(in.get("channel"))
	if err != nil {
		return nil, err
	}
	if err := s.needs(family(c.kind) + ":read"); err != nil {
		return nil, err
	}
	size, err := in.count("limit", 100, 999)
	if err != nil {
		return nil, err
	}
	got, next, err := paged(s, in, c.members, size)
	if err != nil {
		return nil, err
	}
	return object{"members": userIDs(got), "response_metadata": object{"next_cursor": next}}, nil
}
