package slack

import (
	"cmp"
	"fmt"
	"strings"

	"ship/bot"
	"ship/session"
)

// said makes an act of a message that is for us, and otherwise says what it is.
// One that mentions us is sent twice, as what it is and as a mention, under
// different ids; the content key is the same.
func said(e envelope) (a act, ignored string, err error) {
	m := e.Event
	direct := m.ChannelType == "im"
	switch {
	case e.own():
		return act{}, outcomeOwn, nil
	case m.Bot != "":
		return act{}, outcomeBot, nil
	case m.Subtype == "message_changed":
		return act{}, edited(e), nil
	case m.Hidden || !spoken(m.Subtype):
		return act{}, outcomeSubtype, nil
	case !direct && m.Type != eventMention && !mentions(m.Text, e.bot()):
		return act{}, unaddressed(m), nil
	}
	t := thread{e.team(), m.Channel, cmp.Or(m.Thread, m.TS)}
	if !t.valid() || !validTS.MatchString(m.TS) || !validID.MatchString(m.User) {
		return act{}, "", fmt.Errorf("message: %w", errUnusable)
	}
	return act{
		thread: t, ref: ref{refMessage, m.TS}, by: e.person(), early: true, at: moment(m.TS),
		id: "sl-m-" + m.Channel + "-" + dashed(m.TS), content: t.team + "/" + m.Channel + "/" + m.TS,
		command: understood(m, e.bot()),
	}, "", nil
}

// understood is what a message asks for. One that begins a thread and says
// nothing asks what it could say.
func understood(m event, us string) bot.Command {
	c := bot.ParseText(plain(addressed(m.Text, us)))
	begins := m.Thread == "" || m.Thread == m.TS
	if begins && c.Text == "" && (c.Verb == "" || c.Verb == session.Instruct) {
		return bot.Command{Verb: session.Help}
	}
	return c
}

// spoken are the subtypes of messages that a person wrote just now.
func spoken(subtype string) bool {
	return subtype == "" || subtype == "file_share" || subtype == "thread_broadcast"
}

func mentions(text, us string) bool {
	if us == "" {
		return false // but the mention is sent as one, too
	}
	_, ok := mention(text, us, 0)
	return ok
}

func unaddressed(m event) string {
	if m.Thread != "" && m.Thread != m.TS {
		return outcomeReply
	}
	return outcomeUnaddressed
}

// edited tells edits of what may be a request from the many others, such as the
// previews of links that Slack adds. Neither is a request anew.
func edited(e envelope) string {
	now, before := e.Event.Message, e.Event.Previous
	ours := e.Event.ChannelType == "im" || mentions(now.Text, e.bot()) || mentions(before.Text, e.bot())
	if now.Bot == "" && now.User != e.bot() && ours && strings.TrimSpace(now.Text) != strings.TrimSpace(before.Text) {
		return outcomeEdited
	}
	return outcomeSubtype
}

// stopped is the stop button that Slack shows while a session works.
func stopped(e envelope) (act, error) {
	s := e.Event
	t := thread{e.team(), s.Channel, s.Thread}
	if !t.valid() || !validTS.MatchString(s.EventTS) || !validID.MatchString(s.User) {
		return act{}, fmt.Errorf("stop: %w", errUnusable)
	}
	return act{
		thread: t, ref: ref{kind: refStop}, by: e.person(), at: moment(s.EventTS),
		id:      "sl-s-" + dashed(s.EventTS) + "-" + s.User,
		content: "stop/" + t.key() + "/" + s.EventTS + "/" + s.User,
		command: bot.Command{Verb: session.Stop},
	}, nil
}
