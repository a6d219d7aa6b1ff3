package slacktest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Said is something that somebody writes.
type Said struct {
	// Channel by name or id; empty: the conversation with the app.
	Channel string
	// By handle.
	By string
	// Text as it is typed: "@ship" and "#eng" become mentions.
	Text string
	// Thread is the timestamp of the message that it replies to; empty: none.
	Thread string
	// Broadcast a reply to the channel too.
	Broadcast bool
	// Files by their ids, from Upload.
	Files []string
	// Raw are fields of the message as Slack passes them on, in JSON: such as
	// blocks that another app sent, and that no library may know. People see the
	// text. Empty: none.
	Raw string
}

// Post has somebody write a message. It returns its timestamp and what Slack
// tells the app: app_mention first if the app was mentioned, then the message,
// each if the app subscribed to it and is in the channel.
func (s *Server) Post(x Said) (ts string, ds []Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by := s.person(x.By)
	c := s.direct(by)
	if x.Channel != "" {
		c = s.mustChannel(x.Channel)
	}
	if x.Thread != "" && c.find(x.Thread) == nil {
		panic("slacktest: there is no message " + x.Thread + " to reply to")
	}
	if !c.has(by) {
		c.members = append(c.members, by)
	}
	text, blocks := s.typed(x.Text)
	m := s.say(c, &message{
		author: by, content: content{text: text, blocks: blocks}, thread: x.Thread, broadcast: x.Broadcast, clientID: uuid(),
		raw: fields(x.Raw),
	})
	s.share(m, x.Files)
	return m.ts, s.announce(m, s.renderMessage(m, true))
}

// fields are those of an object in JSON, if there is one.
func fields(raw string) object {
	var o object
	if raw == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(raw), &o); err != nil {
		panic("slacktest: no fields of a message: " + err.Error())
	}
	return o
}

// share attaches files to a message.
func (s *Server) share(m *message, ids []string) {
	for _, id := range ids {
		f := find(s.files, func(f *file) bool { return f.id == id })
		f.shared = append(f.shared, m.channel)
		m.files = append(m.files, f)
	}
}

// Mention is Post with the app's name in front, if it is not in the text. The
// app gets both deliveries: app_mention and its twin.
func (s *Server) Mention(x Said) (ts string, ds []Delivery) {
	if name := "@" + s.opts.Name; !strings.Contains(x.Text, name) {
		x.Text = name + " " + x.Text
	}
	return s.Post(x)
}

// DM is Post in the conversation of somebody with the app.
func (s *Server) DM(by, text string) (ts string, ds []Delivery) {
	return s.Post(Said{By: by, Text: text})
}

// announce tells the app of a message that somebody wrote, or edited.
func (s *Server) announce(m *message, o object) []Delivery {
	c := m.channel
	if !c.has(s.bot) {
		return nil
	}
	o["channel"], o["event_ts"] = c.id, m.ts
	var ds []Delivery
	if s.mentioned(m) && s.has("app_mentions:read") {
		mention := clone(o)
		mention["type"] = "app_mention"
		delete(mention, "subtype")
		ds = s.event("app_mention", mention, c)
	}
	if m.edited != "" {
		return ds
	}
	return append(ds, s.messageEvent(c, o)...)
}

// mentioned says whether app_mention is sent: not in direct messages, and not
// for what the app says itself.
func (s *Server) mentioned(m *message) bool {
	return m.author != s.bot && m.channel.kind != kindDirect && strings.Contains(m.text, "<@"+s.bot.id+">")
}

// messageEvent is the event of a kind of channel.
func (s *Server) messageEvent(c *channel, o object) []Delivery {
	names := map[string]string{kindPublic: "message.channels", kindPrivate: "message.groups", kindDirect: "message.im", kindParty: "message.mpim"}
	if !c.has(s.bot) || !s.has(family(c.kind)+":history") {
		return nil
	}
	o["channel_type"] = c.kind
	return s.event(names[c.kind], o, c)
}

func clone(o object) object {
	out := object{}
	for key, value := range o {
		out[key] = value
	}
	return out
}

// Change is what somebody does to a message.
type Change struct {
	// Channel by name or id, "@ada" for her conversation with the app.
	Channel, TS string
	By          string
}

// Edit has somebody change what they wrote. Assumed: if it mentions the app,
// that is told again.
func (s *Server) Edit(x Change, text string) []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.written(x)
	before := s.renderMessage(m, true)
	m.text, m.blocks = s.typed(text)
	m.edited = s.newTS()
	ds := s.announce(m, s.renderMessage(m, true))
	return append(ds, s.changedEvent(m, before)...)
}

func (s *Server) changedEvent(m *message, before object) []Delivery {
	ts := s.newTS()
	return s.messageEvent(m.channel, object{
		"type": "message", "subtype": "message_changed", "hidden": true, "message": s.renderMessage(m, true),
		"previous_message": before, "channel": m.channel.id, "ts": ts, "event_ts": ts,
	})
}

// Delete has somebody delete what they wrote.
func (s *Server) Delete(x Change) []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.written(x)
	before, ts := s.renderMessage(m, true), s.newTS()
	m.remove()
	return s.messageEvent(m.channel, object{
		"type": "message", "subtype": "message_deleted", "hidden": true, "deleted_ts": m.ts, "previous_message": before,
		"channel": m.channel.id, "ts": ts, "event_ts": ts,
	})
}

// written finds a message of somebody's own.
func (s *Server) written(x Change) *message {
	m := s.mustMessage(s.place(x.Channel).id, x.TS)
	if m.author != s.person(x.By) {
		panic("slacktest: that is not by " + x.By)
	}
	return m
}

// place is mustChannel, or a conversation with the app for "@ada".
func (s *Server) place(name string) *channel {
	if handle, ok := strings.CutPrefix(name, "@"); ok {
		return s.direct(s.person(handle))
	}
	return s.mustChannel(name)
}

// React has somebody react to a message.
func (s *Server) React(x Change, name string) []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, by := s.mustMessage(s.place(x.Channel).id, x.TS), s.person(x.By)
	m.react(name, by)
	return s.event("reaction_added", object{
		"type": "reaction_added", "user": by.id, "reaction": name, "item_user": m.author.id, "event_ts": s.newTS(),
		"item": object{"type": "message", "channel": m.channel.id, "ts": m.ts},
	}, m.channel)
}

// Echo is what Slack tells the app of its own message: that there it is, and
// that it was changed, if it was.
func (s *Server) Echo(channel, ts string) []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.mustMessage(s.place(channel).id, ts)
	o := s.renderMessage(m, true)
	o["channel"], o["event_ts"] = m.channel.id, m.ts
	ds := s.messageEvent(m.channel, o)
	if m.updates > 0 {
		ds = append(ds, s.changedEvent(m, s.renderMessage(m, true))...)
	}
	return ds
}

// word is what Slack makes a mention or a link of.
var word = regexp.MustCompile(`@[a-z0-9._-]+|#[a-z0-9_-]+|https?://[^\s<>]+`)

// typed is a text as Slack makes it of what somebody typed: escaped, with
// mentions and links, and as rich text.
func (s *Server) typed(text string) (string, []object) {
	var out strings.Builder
	var elements []any
	plain := func(part string) {
		if part != "" {
			out.WriteString(escape(part))
			elements = append(elements, object{"type": "text", "text": part})
		}
	}
	from := 0
	for _, at := range word.FindAllStringIndex(text, -1) {
		mark, element := s.mark(text[at[0]:at[1]])
		if element == nil {
			continue
		}
		plain(text[from:at[0]])
		out.WriteString(mark)
		elements = append(elements, element)
		from = at[1]
	}
	plain(text[from:])
	section := object{"type": "rich_text_section", "elements": elements}
	return out.String(), []object{{"type": "rich_text", "block_id": random(3), "elements": []any{section}}}
}

// mark is a mention or a link, or nothing if nobody is called that.
func (s *Server) mark(text string) (string, object) {
	name := text[1:]
	switch text[0] {
	case '@':
		if slices.Contains([]string{"here", "channel", "everyone"}, name) {
			return "<!" + name + ">", object{"type": "broadcast", "range": name}
		}
		if u := find(s.users, func(u *user) bool { return u.handle == name }); u != nil {
			return "<@" + u.id + ">", object{"type": "user", "user_id": u.id}
		}
		return "", nil
	case '#':
		if c := find(s.channels, func(c *channel) bool { return c.name == name }); c != nil {
			return "<#" + c.id + "|" + c.name + ">", object{"type": "channel", "channel_id": c.id}
		}
		return "", nil
	}
	return "<" + escape(text) + ">", object{"type": "link", "url": text}
}

func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

func uuid() string {
	r := random(16)
	return strings.Join([]string{r[:8], r[8:12], "4" + r[13:16], "8" + r[17:20], r[20:]}, "-")
}
