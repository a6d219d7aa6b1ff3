package slack

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"ship/bot"
	"ship/session"
)

// What our buttons ask for, by their action id. No two in a block may have the
// same, so all but the first part, which ends at a dot, is free.
const (
	actionStop  = "ship_stop"
	actionRetry = "ship_retry"
	actionReady = "ship_ready"
	// actionChoose answers a question with the button's value, or with that of
	// the selected option.
	actionChoose = "ship_choose"
	// actionLink opens an address. Slack tells of that too.
	actionLink = "ship_link"
)

// callbackMessage is the shortcut on messages: do what this is about.
const callbackMessage = "ship_message"

// Types of interactions.
const (
	interactionButton   = "block_actions"
	interactionShortcut = "message_action"
)

// blockID names a block of ours with buttons. It tells which workspace the
// thread is kept under: in a channel that is shared with others, the press may
// name another. name tells the blocks of one message apart.
func blockID(team, name string) string { return "ship/" + team + "/" + name }

// Names of blocks. Those of a turn end in its number: what is pressed there may
// be out of date.
const (
	// nameDo has what can be done with a turn, below the message that shows it.
	nameDo = "do"
	// nameChoose has what can be chosen from in answer to the agent's question,
	// which ended a turn.
	nameChoose = "choose"
	// nameRepo has the repositories that a request may be about.
	nameRepo = "repo"
	// nameOpen has nothing but addresses.
	nameOpen = "open"
)

// ofTurn is the name of a turn's block.
func ofTurn(name string, turn int) string { return name + "-" + strconv.Itoa(turn) }

// nameOf is the name in a block's id; empty for a block that is not ours.
func nameOf(block string) string {
	name := strings.TrimPrefix(block, blockID(teamOf(block), ""))
	if teamOf(block) == "" || !validName.MatchString(name) {
		return ""
	}
	return name
}

// teamOf is the workspace in a block's id; empty for a block that is not ours.
func teamOf(block string) string {
	parts := strings.SplitN(block, "/", 3)
	if len(parts) != 3 || parts[0] != "ship" || !validID.MatchString(parts[1]) {
		return ""
	}
	return parts[1]
}

// interacted makes an act of what was pressed.
func interacted(i interaction) (a act, ignored string, err error) {
	switch {
	case i.Type == interactionButton && len(i.Actions) > 0:
		return pressed(i, i.Actions[0])
	case i.Type == interactionShortcut && i.Callback == callbackMessage:
		a, err = pointed(i)
		return a, "", err
	}
	return act{}, outcomeIgnoredAction, nil
}

func pressed(i interaction, b action) (a act, ignored string, err error) {
	c, ignored := asks(b)
	if ignored != "" {
		return act{}, ignored, nil
	}
	on := cmp.Or(i.Container.Message, i.Message.TS)
	t := thread{
		team:    cmp.Or(teamOf(b.Block), i.Team.ID, i.User.Team),
		channel: cmp.Or(i.Container.Channel, i.Channel.ID),
		root:    cmp.Or(i.Container.Thread, i.Message.Thread, on),
	}
	if !t.valid() || !validTS.MatchString(on) || !validTS.MatchString(b.TS) || !validID.MatchString(i.User.ID) {
		return act{}, "", fmt.Errorf("button: %w", errUnusable)
	}
	return act{
		thread: t, ref: ref{kind: refButton, ts: on, name: nameOf(b.Block)}, by: i.person(t.team), at: moment(b.TS), command: c,
		id:      "sl-b-" + dashed(on) + "-" + i.User.ID + "-" + dashed(b.TS),
		content: strings.Join([]string{"press", t.team, t.channel, on, i.User.ID, digest(b.ID), b.TS}, "/"),
	}, "", nil
}

// asks is what a button stands for. What it is answered with was on offer, so
// it is never taken for a command.
func asks(b action) (c bot.Command, ignored string) {
	id, _, _ := strings.Cut(b.ID, ".")
	switch id {
	case actionStop:
		return bot.Command{Verb: session.Stop}, ""
	case actionRetry:
		return bot.Command{Verb: session.Retry}, ""
	case actionReady:
		return bot.Command{Verb: session.Ready}, ""
	case actionLink:
		return bot.Command{}, outcomeLink
	case actionRemember:
		if repo := strings.TrimSpace(b.Value); repo != "" {
			return bot.Command{Verb: session.Remember, Text: repo}, ""
		}
	case actionChoose:
		if answer := strings.TrimSpace(cmp.Or(b.Value, b.Selected.Value)); answer != "" {
			return bot.Command{Verb: session.Instruct, Text: answer}, ""
		}
	}
	return bot.Command{}, outcomeIgnoredAction
}

// pointed is the shortcut on a message. It begins, or goes on with, the
// message's thread. Only what the person wrote is an instruction; what somebody
// else did is what it is about.
func pointed(i interaction) (act, error) {
	m := i.Message
	t := thread{cmp.Or(i.Team.ID, i.User.Team), i.Channel.ID, cmp.Or(m.Thread, m.TS)}
	if !t.valid() || !validTS.MatchString(m.TS) || !validTS.MatchString(i.ActionTS) || !validID.MatchString(i.User.ID) {
		return act{}, fmt.Errorf("shortcut: %w", errUnusable)
	}
	a := act{
		thread: t, ref: ref{kind: refShortcut, ts: m.TS}, by: i.person(t.team), early: true, at: moment(i.ActionTS),
		id:      "sl-p-" + dashed(m.TS) + "-" + i.User.ID + "-" + dashed(i.ActionTS),
		content: strings.Join([]string{"point", t.team, t.channel, m.TS, i.User.ID, i.ActionTS}, "/"),
	}
	if m.User == i.User.ID && m.Bot == "" {
		a.command = bot.ParseText(aligned(plain(m.Text)))
	} else {
		a.quote = plain(m.Text)
	}
	return a, nil
}
