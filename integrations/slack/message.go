package slack

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"ship/bot"
	"ship/session"
)

// written makes an act of what was written or edited, if that is for us, and
// otherwise says what it is. open: see ReceiverConfig.OpenThreads.
func written(e envelope, open bool) (a act, ignored string, err error) {
	if e.Event.Subtype == "message_changed" && !e.own() && e.Event.Bot == "" {
		return amended(e, open)
	}
	return said(e, open)
}

// said makes an act of a message. One that mentions us is sent twice, as what it
// is and as a mention, under different ids; the content key is the same.
func said(e envelope, open bool) (a act, ignored string, err error) {
	m := e.Event
	known := !forUs(e)
	switch {
	case e.own():
		return act{}, outcomeOwn, nil
	case m.Bot != "":
		return act{}, outcomeBot, nil
	case m.Hidden || !spoken(m.Subtype):
		return act{}, outcomeSubtype, nil
	case known && !replies(m):
		return act{}, outcomeUnaddressed, nil
	case known && !(open && toAll(m.Text)):
		return act{}, outcomeReply, nil
	case forgotten(m):
		return act{}, outcomeEdited, nil
	}
	t := thread{e.team(), m.Channel, cmp.Or(m.Thread, m.TS)}
	if !t.valid() || !validTS.MatchString(m.TS) || !validID.MatchString(m.User) {
		return act{}, "", fmt.Errorf("message: %w", errUnusable)
	}
	return act{
		thread: t, ref: ref{kind: refMessage, ts: m.TS}, by: e.person(), early: true, known: known, at: moment(m.TS),
		id: "sl-m-" + m.Channel + "-" + dashed(m.TS), content: t.team + "/" + m.Channel + "/" + m.TS,
		command: understood(m, e.bot()),
	}, "", nil
}

// understood is what a message asks for. One that begins a thread and says
// nothing asks what it could say.
func understood(m event, us string) bot.Command {
	c := parse(plain(addressed(m.Text, us)))
	if !replies(m) && c.Text == "" && (c.Verb == "" || c.Verb == session.Instruct) {
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
	_, ok := mention(unquoted(text), us, 0)
	return ok
}

// forUs: ship is mentioned, or spoken with alone. Slack tells of a mention that
// is quoted as of any other.
func forUs(e envelope) bool {
	text, us := e.Event.Text, e.bot()
	if e.Event.Type == eventMention && !mentions(text, us) {
		_, quoted := mention(text, us, 0)
		return us == "" || !quoted
	}
	return e.Event.ChannelType == "im" || mentions(text, us)
}

func replies(m event) bool { return m.Thread != "" && m.Thread != m.TS }

// toAll: a text is not for somebody whom it begins with.
func toAll(text string) bool {
	_, somebody := mention(strings.TrimSpace(text), "", 0)
	return !somebody
}

// forgotten: Slack tells of a mention again when it is edited, and this one is
// so old that whether it was heard before is not known any more.
func forgotten(m event) bool {
	return m.Edited.TS != "" && moment(m.Edited.TS).Sub(moment(m.TS)) > keepKeys-time.Hour
}

// amended makes an act of an edit of what was for us before. Many edits are
// none of words, such as the previews of links that Slack adds. One that
// mentions us for the first time asks nothing: if Slack tells of the mention,
// that does.
func amended(e envelope, open bool) (a act, ignored string, err error) {
	now, before := e.Event.Message, e.Event.Previous
	if !validTS.MatchString(now.Edited.TS) || now.User != before.User || now.Edited.User != now.User {
		return act{}, outcomeSubtype, nil
	}
	was, is := e.as(now, before.Text), e.as(now, now.Text)
	a, ignored, err = said(was, open)
	switch {
	case err != nil:
		return act{}, "", err
	case ignored != "" && !forUs(was) && forUs(is):
		return act{}, outcomeEdited, nil
	case ignored != "":
		return act{}, outcomeSubtype, nil
	}
	words := understood(is.Event, e.bot())
	if words == a.command {
		return act{}, outcomeSubtype, nil
	}
	a.amends, a.known, a.before, a.command = true, true, a.command.Text, words
	a.content = "edit/" + a.content + "/" + now.Edited.TS
	return a, "", nil
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
