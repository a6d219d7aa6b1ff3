package slack

import (
	"context"
	"fmt"
	"slices"
	"strings"

	api "github.com/slack-go/slack"

	"ship/session"
)

// simple is a message without blocks, for when Slack does not take them. What
// could be chosen is written out, as far as there is room for it.
func simple(m post) post {
	text := m.text
	for _, b := range m.blocks {
		for _, value := range choosable(b) {
			line := "\n• " + mrkdwn(quoted(value, maxLabel), maxSection)[0]
			if length(text)+length(line) > maxCaption {
				break
			}
			text += line
		}
	}
	return post{text: text}
}

// choosable are the answers that a block offers.
func choosable(b api.Block) []string {
	row, ok := b.(*api.ActionBlock)
	if !ok || row.Elements == nil {
		return nil
	}
	var out []string
	for _, e := range row.Elements.ElementSet {
		switch e := e.(type) {
		case *api.ButtonBlockElement:
			if named, _, _ := strings.Cut(e.ActionID, "."); named == actionChoose {
				out = append(out, e.Value)
			}
		case *api.SelectBlockElement:
			for _, o := range e.Options {
				out = append(out, o.Value)
			}
		}
	}
	return out
}

// retire takes off a message of ours what can be pressed there, but for links,
// and says below in Slack's notation what was chosen, unless that is empty, with
// what may follow upon that.
// Performed twice, or on a message that is not there any more or that has
// become something else, it changes nothing.
func (w *work) retire(ctx context.Context, ts, chosen string, next ...api.Block) error {
	m, all, err := w.message(ctx, ts)
	if err != nil || m == nil {
		return err
	}
	blocks, pressable := unpressable(all)
	if !pressable {
		return nil
	}
	if chosen != "" {
		blocks = append(append(blocks, aside(chosen)), next...)
	}
	return w.reblock(ctx, m, blocks)
}

// withdraw takes the block of a name off a message of ours. Performed twice, or
// on a message that is not there any more, it changes nothing.
func (w *work) withdraw(ctx context.Context, ts, name string) error {
	m, all, err := w.message(ctx, ts)
	if err != nil || m == nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(all), func(b api.Block) bool {
		row, ok := b.(*api.ActionBlock)
		return ok && nameOf(row.BlockID) == name
	})
	if len(left) == len(all) {
		return nil
	}
	return w.reblock(ctx, m, left)
}

// reblock gives a message of ours other blocks, if that can be changed.
func (w *work) reblock(ctx context.Context, m *message, blocks []api.Block) error {
	// What Slack made of the text may be longer than what it takes.
	err := w.update(ctx, Thinking, m.TS, post{text: shortened(m.Text, maxCaption), blocks: blocks})
	if fixed(err) {
		return nil
	}
	return err
}

// fixed: a message is as it is, for it was deleted or Slack keeps it so.
func fixed(err error) bool {
	return code(err) == "message_not_found" || slices.Contains(unchangeable, code(err))
}

// message reads a message of ours in the thread with its blocks; nil: it is not
// there, or another's, or Slack made of it what we did not send.
func (w *work) message(ctx context.Context, ts string) (*message, []api.Block, error) {
	self, err := w.app.self(ctx)
	if err != nil {
		return nil, nil, err
	}
	found, err := w.replies(ctx, Thinking, ts, 2) // the root and this one
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(found, func(m message) bool { return m.TS == ts && self.wrote(m) })
	if i < 0 {
		return nil, nil, nil
	}
	blocks, err := found[i].blocks()
	if err != nil {
		w.app.log.WarnContext(ctx, "a message of ours in slack was not understood, so its buttons stay", "session", string(w.job.State.ID), "message", ts, "err", err)
		return nil, nil, nil
	}
	return &found[i], blocks, nil
}

// unpressable are blocks without what can be pressed, but for links and for what
// only came with an answer. pressable: there was more.
func unpressable(blocks []api.Block) (left []api.Block, pressable bool) {
	for _, b := range blocks {
		row, ok := b.(*api.ActionBlock)
		if !ok || row.Elements == nil || nameOf(row.BlockID) == nameRemember {
			left = append(left, b)
			continue
		}
		links := slices.DeleteFunc(slices.Clone(row.Elements.ElementSet), func(e api.BlockElement) bool { return !leads(e) })
		pressable = pressable || len(links) < len(row.Elements.ElementSet)
		if len(links) > 0 {
			left = append(left, api.NewActionBlock(row.BlockID, links...))
		}
	}
	return left, pressable
}

// leads: an element is a link.
func leads(e api.BlockElement) bool {
	button, ok := e.(*api.ButtonBlockElement)
	return ok && button.URL != ""
}

// chosen says what a press of a button chose, and who did, in Slack's notation.
// Empty: that is not known.
func (w *work) chosen(pressed string) string {
	asked, err := parseRef(pressed)
	r := w.request(pressed)
	if err != nil || r == nil {
		return ""
	}
	what := r.Text
	if asked.name == nameRepo {
		what = r.Repo
	}
	if what = strings.TrimSpace(what); what == "" {
		return ""
	}
	line := "✓ " + mrkdwn(quoted(what, maxLabel), maxSection)[0]
	if asked.user != "" {
		line += fmt.Sprintf(", chosen by <@%s>", asked.user)
	}
	return line
}

// request finds what was asked at a place among what is at work or waits; nil:
// it is there no more.
func (w *work) request(ref string) *session.Request {
	s := w.job.State
	var all []session.Request
	if s.Turn != nil {
		all = append(all, s.Turn.Requests...)
	}
	for _, waits := range s.Waiting {
		all = append(all, waits.Request)
	}
	i := slices.IndexFunc(all, func(r session.Request) bool { return w.here(r) && r.Ref == ref })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// retireQuestions takes the choices off the questions of ours since then which
// the newest turn answers, if that was done in words: a press of a button tells
// where it was. Performed twice, it finds none.
func (w *work) retireQuestions(ctx context.Context, since string) error {
	asked := w.spoken()
	if asked == nil {
		return nil
	}
	self, err := w.app.self(ctx)
	if err != nil {
		return err
	}
	found, err := w.replies(ctx, Thinking, since, maxLook)
	if err != nil {
		return err
	}
	for _, m := range found {
		name := ""
		if self.wrote(m) {
			name = questionIn(m)
		}
		if name == "" {
			continue
		}
		if err := w.retire(ctx, m.TS, w.inWords(name, *asked), w.rememberOffer(name, asked)...); err != nil {
			return err
		}
	}
	return nil
}

// spoken is what the newest turn was first asked here, if that may have answered
// a question in words.
func (w *work) spoken() *session.Request {
	turn := w.job.State.Turn
	if turn == nil {
		return nil
	}
	i := slices.IndexFunc(turn.Requests, w.here)
	if i < 0 || turn.Asked == nil && turn.Requests[i].Repo == "" {
		return nil
	}
	if r, err := parseRef(turn.Requests[i].Ref); err != nil || r.kind == refButton {
		return nil
	}
	return &turn.Requests[i]
}

// questionIn is the name of the block of a message of ours in which something
// can be chosen; empty: there is none.
func questionIn(m message) string {
	blocks, _ := m.blocks() // or there are none that could be taken off
	for _, b := range blocks {
		if row, ok := b.(*api.ActionBlock); ok && len(choosable(b)) > 0 {
			return nameOf(row.BlockID)
		}
	}
	return ""
}

// inWords says that a question was answered, and with which repository, in
// Slack's notation.
func (w *work) inWords(name string, r session.Request) string {
	line := "✓ Answered"
	if name == nameRepo && r.Repo != "" {
		line = "✓ " + mrkdwn(quoted(r.Repo, maxLabel), maxSection)[0] + ", chosen"
	}
	if asked, err := parseRef(r.Ref); err == nil && asked.user != "" {
		line += fmt.Sprintf(" by <@%s>", asked.user)
	}
	return line
}
