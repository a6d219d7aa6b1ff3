package slacktest

import (
	"fmt"
	"strings"
)

func (s *Server) postMessage(in args) (object, error) {
	c, err := s.destination(in.get("channel"))
	if err != nil {
		return nil, err
	}
	if err := s.customised(in); err != nil {
		return nil, err
	}
	said, err := s.readContent(in)
	if err != nil {
		return nil, err
	}
	root, err := s.root(c, in.get("thread_ts"))
	if err != nil {
		return nil, err
	}
	if err := s.pace.message(c, s.now()); err != nil {
		return nil, err
	}
	m := s.say(c, &message{author: s.bot, content: said, thread: root, broadcast: in.yes("reply_broadcast") && root != ""})
	return s.told(m), nil
}

// told is the answer to what changed a message.
func (s *Server) told(m *message) object {
	return object{"channel": m.channel.id, "ts": m.ts, "text": m.text, "message": s.renderMessage(m, true)}
}

// destination finds where to post. What is sent to a user's id goes to the
// conversation with them. Assumed: channels are known by their ids only.
func (s *Server) destination(id string) (*channel, error) {
	if u := s.userByID(id); u != nil && u != s.bot {
		if u.gone || u.bot || u.team != s.teamID {
			return nil, refuse("channel_not_found")
		}
		return s.direct(u), nil
	}
	c, err := s.writable(id)
	if p, ok := err.(problem); ok && p.code == "not_in_channel" && s.has("chat:write.public") && !c.archived {
		return c, nil
	}
	return c, err
}

// customised refuses another name or picture than the app's. Assumed: Slack
// may also ignore it.
func (s *Server) customised(in args) error {
	if in.given("username") || in.given("icon_emoji") || in.given("icon_url") {
		return s.needs("chat:write.customize")
	}
	return nil
}

// root finds what a message is to reply to; empty: nothing. If that is gone,
// the message is posted all the same, into the channel: slack-go says so.
// Assumed: replies to replies are refused.
func (s *Server) root(c *channel, ts string) (string, error) {
	if ts == "" {
		return "", nil
	}
	if !isTS(ts) {
		return "", refuse("invalid_thread_ts")
	}
	m := c.find(ts)
	switch {
	case m == nil:
		return "", nil
	case m.thread != "" && m.thread != m.ts:
		return "", refuse("cannot_reply_to_message")
	}
	return ts, nil
}

// isTS says whether a text is a timestamp.
func isTS(ts string) bool {
	whole, part, ok := strings.Cut(ts, ".")
	return ok && len(whole) == 10 && len(part) == 6 && strings.Trim(whole+part, "0123456789") == ""
}

// say puts a message into a channel. The caller holds mu.
func (s *Server) say(c *channel, m *message) *message {
	m.ts, m.created, m.channel, m.state = s.newTS(), s.now(), c, map[*user]values{}
	c.messages = append(c.messages, m)
	if m.author == s.bot {
		s.calm(c, m.thread)
	}
	return m
}

func (s *Server) postEphemeral(in args) (object, error) {
	c, err := s.writable(in.get("channel"))
	if err != nil {
		return nil, err
	}
	to := s.userByID(in.get("user"))
	if to == nil || !c.has(to) {
		return nil, refuse("user_not_in_channel")
	}
	if err := s.customised(in); err != nil {
		return nil, err
	}
	said, err := s.readContent(in)
	if err != nil {
		return nil, err
	}
	root, err := s.root(c, in.get("thread_ts"))
	if err != nil {
		return nil, err
	}
	e := s.whisper(c, to, said, root)
	e.hidden = root != "" && len(c.replies(root)) == 0
	return object{"message_ts": e.ts}, nil
}

// whisper shows something to one person only.
func (s *Server) whisper(c *channel, to *user, said content, thread string) *ephemeral {
	m := &message{
		ts: s.newTS(), channel: c, author: s.bot, content: said, thread: thread, created: s.now(), state: map[*user]values{},
	}
	e := &ephemeral{message: m, to: to}
	s.ephemerals = append(s.ephemerals, e)
	return e
}

// own finds a message of the app's own.
func (s *Server) own(in args, otherwise string) (*message, error) {
	c, err := s.writable(in.get("channel"))
	if err != nil {
		return nil, err
	}
	m := c.find(in.get("ts"))
	if m == nil || m.tomb {
		return nil, refuse("message_not_found")
	}
	if m.author != s.bot {
		return nil, refuse(otherwise)
	}
	return m, nil
}

// updateMessage changes a message. A text without blocks removes those that
// there were; metadata stays unless there is other.
func (s *Server) updateMessage(in args) (object, error) {
	m, err := s.own(in, "cant_update_message")
	if err != nil {
		return nil, err
	}
	said, err := s.readContent(in)
	if err != nil {
		return nil, err
	}
	if err := s.pace.update(m, s.now()); err != nil {
		return nil, err
	}
	if said.metadata == nil {
		said.metadata = m.metadata
	}
	if len(said.blocks) == 0 { // only then people see that it was edited
		m.edited = s.newTS()
	}
	m.content, m.updated = said, s.now()
	m.updates++
	return s.told(m), nil
}

func (s *Server) deleteMessage(in args) (object, error) {
	m, err := s.own(in, "cant_delete_message")
	if err != nil {
		return nil, err
	}
	m.remove()
	return object{"channel": m.channel.id, "ts": m.ts}, nil
}

// remove deletes a message; if it has replies, they keep their root.
func (m *message) remove() {
	if len(m.channel.replies(m.ts)) > 0 {
		m.tomb, m.content, m.files, m.reactions = true, content{text: "This message was deleted."}, nil, nil
		return
	}
	m.gone = true
}

func (s *Server) getPermalink(in args) (object, error) {
	c, err := s.visible(in.get("channel"))
	if err != nil {
		return nil, err
	}
	m := c.find(in.get("message_ts"))
	if m == nil {
		return nil, refuse("message_not_found")
	}
	return object{"channel": c.id, "permalink": permalink(m)}, nil
}

func permalink(m *message) string {
	link := fmt.Sprintf("https://%s.slack.com/archives/%s/p%s", domain, m.channel.id, strings.Replace(m.ts, ".", "", 1))
	if m.thread != "" {
		link += "?thread_ts=" + m.thread + "&cid=" + m.channel.id
	}
	return link
}
