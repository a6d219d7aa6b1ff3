package slacktest

import (
	"maps"
	"regexp"
	"strconv"
	"strings"
)

// The objects of answers and events. The caller of each function holds mu.

// renderMessage is a message as programs get it.
func (s *Server) renderMessage(m *message, metadata bool) object {
	o := object{"type": "message", "user": m.author.id, "ts": m.ts, "text": kept(m.text), "team": m.author.team}
	if m.author.team != s.teamID {
		o["user_team"], o["source_team"] = m.author.team, m.author.team
	}
	s.authorship(o, m)
	if len(m.blocks) > 0 {
		o["blocks"] = m.blocks
	}
	if m.edited != "" {
		o["edited"] = object{"user": m.author.id, "ts": m.edited}
	}
	if metadata && m.metadata != nil {
		o["metadata"] = m.metadata
	}
	s.threadOf(o, m)
	if len(m.files) > 0 {
		o["files"] = s.filesOf(m)
	}
	if len(m.reactions) > 0 {
		var all []object
		for _, r := range m.reactions {
			all = append(all, object{"name": r.name, "users": userIDs(r.by), "count": len(r.by)})
		}
		o["reactions"] = all
	}
	maps.Copy(o, m.raw)
	return o
}

// bare is what Slack rewrites in a text that is not escaped or marked already,
// and what it leaves alone.
var bare = regexp.MustCompile(`<[^<>]*>|&(?:amp|lt|gt);|&|https?://[^\s<>|]+`)

// kept is a text as it can be read back, which is not just as it was sent:
// Slack escapes and makes links. (It also gives emoji their names.)
func kept(text string) string {
	return bare.ReplaceAllStringFunc(text, func(part string) string {
		switch {
		case part == "&":
			return "&amp;"
		case strings.HasPrefix(part, "http"):
			return "<" + part + ">"
		}
		return part
	})
}

// authorship tells who wrote a message: a person, this app, or another.
func (s *Server) authorship(o object, m *message) {
	switch {
	case m.tomb:
		o["subtype"], o["user"] = "tombstone", "USLACKBOT"
	case m.author.bot:
		o["bot_id"] = m.author.botID
		if m.author == s.bot {
			o["app_id"] = s.appID
		}
		o["bot_profile"] = object{"id": m.author.botID, "name": m.author.name, "deleted": false, "team_id": m.author.team}
	case m.clientID != "":
		o["client_msg_id"] = m.clientID
	}
	if m.broadcast {
		o["subtype"] = "thread_broadcast"
	} else if len(m.files) > 0 {
		o["subtype"] = "file_share"
	}
}

// threadOf tells of the thread that a message is in, or is the root of.
func (s *Server) threadOf(o object, m *message) {
	if m.thread != "" {
		o["thread_ts"] = m.thread
		if root := m.channel.find(m.thread); root != nil {
			o["parent_user_id"] = root.author.id
		}
		return
	}
	replies := m.channel.replies(m.ts)
	if len(replies) == 0 {
		return
	}
	var who []*user
	for _, r := range replies {
		if find(who, func(u *user) bool { return u == r.author }) == nil {
			who = append(who, r.author)
		}
	}
	o["thread_ts"], o["reply_count"], o["latest_reply"] = m.ts, len(replies), replies[len(replies)-1].ts
	o["reply_users"], o["reply_users_count"] = userIDs(who), len(who)
}

// filesOf lists what is attached. In Slack Connect the app must ask for more.
func (s *Server) filesOf(m *message) []object {
	all := []object{}
	for _, f := range m.files {
		if f.by.team != s.teamID {
			all = append(all, object{"id": f.id, "file_access": "check_file_info"})
			continue
		}
		all = append(all, s.renderFile(f))
	}
	return all
}

func (s *Server) renderChannel(c *channel) object {
	o := object{
		"id": c.id, "created": 1_700_000_000, "is_archived": c.archived, "is_member": c.has(s.bot),
		"is_channel": c.kind == kindPublic || c.kind == kindPrivate, "is_group": c.kind == kindPrivate, "is_im": c.kind == kindDirect,
		"is_mpim": c.kind == kindParty, "is_private": c.kind != kindPublic, "is_ext_shared": c.shared, "is_shared": c.shared,
		"context_team_id": s.teamID,
	}
	if c.kind == kindDirect {
		o["user"] = c.members[1].id
		return o
	}
	o["name"], o["name_normalized"] = c.name, c.name
	return o
}

// channelName is how commands and interactions call a channel.
func channelName(c *channel) string {
	switch c.kind {
	case kindPublic:
		return c.name
	case kindDirect:
		return "directmessage"
	}
	return "privategroup"
}

// actor is somebody as interactions name them.
func actor(u *user) object {
	return object{"id": u.id, "username": u.handle, "name": u.handle, "team_id": u.team}
}

// actionTS is a moment, as interactions have it.
func (s *Server) actionTS() string {
	at := s.now().UnixMicro()
	return strconv.FormatInt(at/1_000_000, 10) + "." + strconv.FormatInt(1_000_000+at%1_000_000, 10)[1:]
}
