package slack

import (
	"errors"
	"fmt"
	"time"

	"ship/session"
)

// A slash command is in no thread, and nothing slow may happen before it is
// answered, so the thread begins later, in two steps. The command's request
// goes to a session of its own, which is named after the command. To admit it
// there is to post the root message, to hand the request over to the session of
// the thread that begins with it (root), and to let nothing follow
// (session.Admission.Void). That is once as often as it is done: the root is
// found again by what it carries, and the request by its keys.

// What a slash command is answered with. Only who wrote it sees that.
const (
	sayThread = "Got it, I open a thread for that here. If none appears, invite me to this channel first: `/invite` and my name."
	sayUsage  = "Write `/ship` and what to do, such as `/ship fix the flaky login test [repo=OWNER/NAME]`, and I open a thread for it here.\n" +
		"In that thread, mention me to go on. `stop`, `retry`, `status`, `ready`, `model NAME`, `budget 10` and `help` work there as well."
	sayInThread = "A slash command does not tell me which thread it is about. Write `%s` in the thread itself, and mention me in it."
)

// begun makes an act of a slash command that begins something, and says what to
// answer in any case.
func begun(c command, now time.Time) (a act, say string, err error) {
	t := thread{c.Team, c.Channel, commandOf(c.Trigger)}
	if !t.valid() || c.Trigger == "" || !validID.MatchString(c.User) {
		return act{}, sayUsage, fmt.Errorf("slash command: %w", errUnusable)
	}
	asked := parse(plain(c.Text))
	switch {
	case asked.Verb == session.Unclear:
		return act{}, asked.Text, nil
	case asked.Verb == session.Help, asked.Text == "" && (asked.Verb == "" || asked.Verb == session.Instruct):
		return act{}, sayUsage, nil
	case asked.Verb != session.Instruct:
		return act{}, fmt.Sprintf(sayInThread, asked.Verb), nil
	}
	return act{
		thread: t, ref: ref{kind: refCommand}, by: session.Person{Login: c.User, Name: c.Name}, at: now.UTC(),
		id: "sl-" + t.root, content: t.root, command: asked,
	}, sayThread, nil
}

var errNoCommand = errors.New("not a slash command that waits for its thread")

// root hands the request of a slash command over to the thread that begins with
// the message ts, which was posted for it. The delivery may be appended twice.
func root(q session.Request, ts string) (session.Delivery, error) {
	t, err := parseThread(q.Thread.Key)
	if err != nil {
		return session.Delivery{}, err
	}
	if !t.pending() || !validTS.MatchString(ts) {
		return session.Delivery{}, fmt.Errorf("%s and message %q: %w", q.Thread.Key, ts, errNoCommand)
	}
	command := t.root
	t.root = ts
	q.Thread, q.Ref = t.session(), ref{kind: refCommand, ts: ts}.of(q.By.Login).String()
	return session.Delivery{
		// Not the command's own key: another session of this shard has that.
		Session: t.id(), Keys: []string{"sl:root/" + command}, Keep: keepKeys,
		Event: session.Event{V: session.EventVersion, Kind: session.Asked, Delivery: command, Request: &q},
	}, nil
}
