package slacktest

import (
	"encoding/json"
	"time"
)

// Message is a message as people see it, and what programs see besides.
type Message struct {
	Channel, TS string
	// Thread is the timestamp of the root of a reply; empty: it is no reply.
	Thread string
	// By handle.
	By string
	// Text as it was sent; Plain is what people read: the blocks if there are
	// some, else the text.
	Text, Plain string
	Blocks      json.RawMessage
	Metadata    json.RawMessage
	// Reactions as ":eyes: ship".
	Reactions []string
	// Controls are the labels of what people can press or choose.
	Controls []string
	Edited   bool
	// Deleted: only its replies are there.
	Deleted, Broadcast bool
	// Updates is how often the app changed it.
	Updates int
	Created time.Time
}

// Messages returns what is in a channel, by its name or id or "@ada", the
// oldest first, replies included.
func (s *Server) Messages(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshots(s.place(channel).messages)
}

// Thread returns a message and its replies, the oldest first.
func (s *Server) Thread(channel, ts string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.place(channel)
	var all []*message
	if root := c.find(ts); root != nil {
		all = append(all, root)
	}
	return s.snapshots(append(all, c.replies(ts)...))
}

// Message returns one message. It panics if there is none.
func (s *Server) Message(channel, ts string) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot(s.mustMessage(s.place(channel).id, ts))
}

func (s *Server) snapshots(messages []*message) []Message {
	var out []Message
	for _, m := range messages {
		if !m.gone {
			out = append(out, s.snapshot(m))
		}
	}
	return out
}

func (s *Server) snapshot(m *message) Message {
	out := Message{
		Channel: m.channel.name, TS: m.ts, Thread: m.thread, By: m.author.handle, Text: m.text, Plain: s.rendered(m.content),
		Metadata: m.metadata, Edited: m.edited != "", Deleted: m.tomb, Broadcast: m.broadcast, Updates: m.updates, Created: m.created,
	}
	if len(m.blocks) > 0 {
		out.Blocks = mustJSON(m.blocks)
	}
	for _, b := range m.blocks {
		out.Controls = append(out.Controls, s.controls(interactive(b))...)
	}
	out.Reactions = reactions(m)
	return out
}

func reactions(m *message) []string {
	var out []string
	for _, r := range m.reactions {
		text := ":" + r.name + ":"
		for _, u := range r.by {
			text += " " + u.handle
		}
		out = append(out, text)
	}
	return out
}

// Whisper is what only one person sees.
type Whisper struct {
	Message
	// To by handle.
	To string
	// Hidden: nobody sees it, for its thread was not active.
	Hidden bool
}

// Whispers returns what somebody was shown alone, or everybody if to is empty,
// the oldest first.
func (s *Server) Whispers(to string) []Whisper {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Whisper
	for _, e := range s.ephemerals {
		if !e.gone && (to == "" || e.to.handle == to) {
			out = append(out, Whisper{Message: s.snapshot(e.message), To: e.to.handle, Hidden: e.hidden})
		}
	}
	return out
}

// Session is the app's session in a thread. It is zero if there is none.
type Session struct {
	// Status is active, processing, suspended or closed.
	Status, Title string
	// By is who began it, by handle; empty: not told.
	By string
}

// Session returns that of a thread, by the timestamp of its root.
func (s *Server) Session(channel, thread string) Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.session(s.place(channel), thread)
	if a == nil {
		return Session{}
	}
	out := Session{Status: a.at(s.now()), Title: a.title}
	if a.initiator != nil {
		out.By = a.initiator.handle
	}
	return out
}

// View is a window that somebody sees.
type View struct {
	ID, To                      string
	Title, Plain                string
	CallbackID, PrivateMetadata string
	// Errors that are shown, by block_id.
	Errors map[string]string
}

// Views returns what somebody has open, the topmost last.
func (s *Server) Views(to string) []View {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []View
	for _, v := range s.views {
		if v.closed || v.to.handle != to {
			continue
		}
		out = append(out, View{
			ID: v.id, To: to, Title: s.textOf(v.Title), Plain: s.renderedBlocks(v.blocks), CallbackID: v.CallbackID,
			PrivateMetadata: v.PrivateMetadata, Errors: v.errors,
		})
	}
	return out
}
