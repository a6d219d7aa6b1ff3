package slacktest

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// user is a person, the app's bot, or another one.
type user struct {
	id, handle, name, email string
	// team that they belong to, which is another in Slack Connect.
	team string
	// botID of bots.
	botID                    string
	bot, guest, single, gone bool
	admin                    bool
}

type group struct {
	id, handle string
	members    []*user
}

// Kinds of channels, as events have them in channel_type.
const (
	kindPublic  = "channel"
	kindPrivate = "group"
	kindDirect  = "im"
	kindParty   = "mpim"
)

// family of scopes that a kind of channel belongs to, such as channels:read.
func family(kind string) string {
	switch kind {
	case kindPublic:
		return "channels"
	case kindPrivate:
		return "groups"
	}
	return kind
}

type channel struct {
	id, name, kind   string
	members          []*user
	archived, shared bool
	// messages by their timestamps, replies among them.
	messages []*message
}

func (c *channel) has(u *user) bool { return slices.Contains(c.members, u) }

// find returns a message that is there.
func (c *channel) find(ts string) *message {
	return find(c.messages, func(m *message) bool { return m.ts == ts && !m.gone })
}

// replies to a message, the oldest first.
func (c *channel) replies(root string) []*message {
	var out []*message
	for _, m := range c.messages {
		if m.thread == root && m.ts != root && !m.gone {
			out = append(out, m)
		}
	}
	return out
}

type message struct {
	ts, clientID string
	channel      *channel
	// thread is the timestamp of the root of a reply; empty: it is no reply.
	thread string
	author *user
	content
	files     []*file
	reactions []*reaction
	edited    string
	broadcast bool
	created   time.Time
	// updated is when it was last changed, updates how often.
	updated time.Time
	updates int
	// tomb: it was deleted, and its replies are still there. gone: no trace.
	tomb, gone bool
	// raw fields that another app gave it: see Said.Raw.
	raw object
	// state of what each person chose in it.
	state map[*user]values
}

// content of a message.
type content struct {
	text string
	// markdown: the text is that, rather than Slack's own.
	markdown bool
	blocks   []object
	metadata json.RawMessage
}

// values of the elements of a message or view, by block and action.
type values map[string]map[string]object

func (v values) set(block, action string, value object) {
	if v[block] == nil {
		v[block] = map[string]object{}
	}
	v[block][action] = value
}

type reaction struct {
	name string
	by   []*user
}

// ephemeral is what only one person sees.
type ephemeral struct {
	*message
	to *user
	// hidden: it is in a thread that was not active, where Slack shows none.
	hidden bool
}

type file struct {
	id, name, mime string
	by             *user
	content        []byte
	shared         []*channel
	created        time.Time
}

// find returns the first that matches, or nil.
func find[T any](all []*T, match func(*T) bool) *T {
	if at := slices.IndexFunc(all, match); at >= 0 {
		return all[at]
	}
	return nil
}

// newID makes an id as Slack's look: a letter that tells the kind, then others.
func newID(kind string) string { return kind + "0" + strings.ToUpper(random(5)) }

// random is text of so many random bytes.
func random(size int) string {
	b := make([]byte, size)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// newTS makes a timestamp that no other message has. The caller holds mu.
func (s *Server) newTS() string {
	s.lastTS = max(s.now().UnixMicro(), s.lastTS+1)
	return fmt.Sprintf("%d.%06d", s.lastTS/1_000_000, s.lastTS%1_000_000)
}

// person returns who has a handle, made on first sight. The caller holds mu.
func (s *Server) person(handle string) *user {
	if u := find(s.users, func(u *user) bool { return u.handle == handle }); u != nil {
		return u
	}
	if handle == "" {
		panic("slacktest: somebody must have done it")
	}
	u := &user{
		id: newID("U"), handle: handle, name: strings.ToUpper(handle[:1]) + handle[1:],
		email: handle + "@acme.example", team: s.teamID,
	}
	s.users = append(s.users, u)
	return u
}

func (s *Server) userByID(id string) *user {
	return find(s.users, func(u *user) bool { return u.id == id })
}

func (s *Server) channelByID(id string) *channel {
	return find(s.channels, func(c *channel) bool { return c.id == id })
}

// mustChannel returns a channel that the test made, by its name or id.
func (s *Server) mustChannel(name string) *channel {
	name = strings.TrimPrefix(name, "#")
	c := find(s.channels, func(c *channel) bool { return c.id == name || c.name == name && name != "" })
	if c == nil {
		panic("slacktest: there is no channel " + name)
	}
	return c
}

// mustMessage returns a message that there is.
func (s *Server) mustMessage(channel, ts string) *message {
	m := s.mustChannel(channel).find(ts)
	if m == nil || m.tomb {
		panic("slacktest: there is no message " + ts + " in " + channel)
	}
	return m
}

// direct returns the conversation of somebody with the app.
func (s *Server) direct(u *user) *channel {
	c := find(s.channels, func(c *channel) bool { return c.kind == kindDirect && c.has(u) })
	if c == nil {
		c = &channel{id: newID("D"), kind: kindDirect, members: []*user{s.bot, u}}
		s.channels = append(s.channels, c)
	}
	return c
}

// visible finds a channel for the app: a public one, or one that it is in.
func (s *Server) visible(id string) (*channel, error) {
	c := s.channelByID(id)
	if c == nil || c.kind != kindPublic && !c.has(s.bot) {
		return nil, refuse("channel_not_found")
	}
	return c, nil
}

// joined finds a channel that the app is in.
func (s *Server) joined(id string) (*channel, error) {
	c, err := s.visible(id)
	if err == nil && !c.has(s.bot) {
		err = refuse("not_in_channel")
	}
	return c, err
}

// writable finds a channel that the app may change something in.
func (s *Server) writable(id string) (*channel, error) {
	c, err := s.joined(id)
	if err == nil && c.archived {
		err = refuse("is_archived")
	}
	return c, err
}
