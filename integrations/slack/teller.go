package slack

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"ship/bot"
)

// teller makes remarks of messages.
type teller struct {
	*work
	ctx     context.Context
	courier *courier
	names   map[string]string
	// room for files is left, in bytes.
	room int
}

func (w *work) newTeller(ctx context.Context) *teller {
	return &teller{work: w, ctx: ctx, courier: w.newCourier(), names: map[string]string{}, room: maxFiles - maxUntold}
}

// before tells in so much room what was said before the request, and then what
// was attached to that.
func (t *teller) before(lines []utterance, room int) string {
	return bot.Newest(t.remarks(lines), room) + t.files(lines)
}

// beside tells what comes along with the request, and what was said beside the
// conversation.
func (t *teller) beside(lines []utterance) string {
	own := slices.DeleteFunc(slices.Clone(lines), func(l utterance) bool { return !l.own && !l.pointed })
	others := slices.DeleteFunc(slices.Clone(lines), func(l utterance) bool { return l.own || l.pointed })
	text := bot.Newest(t.remarks(own), maxBeside)
	if said := bot.Newest(t.remarks(others), maxBeside-len(text)); said != "" {
		text += "Said in the thread since the last request:\n\n" + said
	}
	return text + t.files(own) + t.files(others)
}

// remarks are the words of messages. Names are looked up for the newest, which
// are those that there is room for.
func (t *teller) remarks(lines []utterance) []bot.Remark {
	var all []bot.Remark
	for _, l := range slices.Backward(lines) {
		of := t.remarksOf(l)
		slices.Reverse(of)
		all = append(all, of...)
	}
	slices.Reverse(all)
	return all
}

// remarksOf is a message and what is forwarded in it. The words of a request are
// an instruction, and are not repeated here.
func (t *teller) remarksOf(l utterance) []bot.Remark {
	var all []bot.Remark
	who := t.author(l.message)
	if !l.own && strings.TrimSpace(l.words) != "" {
		head := "Message by " + who + ":"
		if l.pointed {
			head = "The message that this is about, by " + who + ":"
		}
		all = append(all, bot.Remark{Head: head, Text: bot.Prefix(l.words, maxRemark)})
	}
	for _, f := range forwarded(l.message) {
		all = append(all, bot.Remark{Head: f.head(who), Text: bot.Prefix(f.text, maxRemark)})
	}
	return all
}

// author is who wrote a message, by a name that can be shown.
func (t *teller) author(m message) string {
	if m.Bot != "" {
		return "the bot " + cmp.Or(bot.PlainName(m.Username), bot.PlainName(m.Profile.Name), "of another app")
	}
	if name, ok := t.names[m.User]; ok || len(t.names) >= maxNames || !validID.MatchString(m.User) {
		return cmp.Or(name, somebody)
	}
	who, err := t.person(t.ctx, m.User)
	if err != nil {
		t.app.log.WarnContext(t.ctx, "who wrote in slack was not found out", "session", string(t.job.State.ID), "err", err)
	}
	t.names[m.User] = cmp.Or(bot.PlainName(who.Name), somebody)
	return t.names[m.User]
}

// files tells of what is attached to messages, the newest first.
func (t *teller) files(lines []utterance) string {
	var b strings.Builder
	untold := 0
	for _, l := range slices.Backward(lines) {
		for _, f := range l.attached() {
			room := min(maxFile, t.room-maxNamed)
			told := t.courier.bring(t.ctx, f, room).told(t.author(l.message), room)
			if len(told) > t.room {
				untold++
				continue
			}
			t.room -= len(told)
			b.WriteString(told)
		}
	}
	if untold > 0 {
		fmt.Fprintf(&b, "File names left out: %d\n\n", untold)
	}
	return b.String()
}

// forward is a message that somebody forwarded, or what a program attached.
type forward struct {
	by, text string
	// shared: a person forwarded it.
	shared bool
}

func (f forward) head(by string) string {
	switch {
	case !f.shared:
		return fmt.Sprintf("Attached by %s:", by)
	case f.by == "":
		return fmt.Sprintf("Forwarded by %s:", by)
	}
	return fmt.Sprintf("Forwarded by %s, written by %s:", by, f.by)
}

// forwarded lists what is attached to a message that is no file. What people
// link to is shown as well, but that is in the words.
func forwarded(m message) []forward {
	var all []forward
	for _, a := range m.Attachments {
		shared := a.Share || a.Unfurl
		if !shared && m.Bot == "" {
			continue
		}
		text := a.Text
		if !shared {
			text = strings.TrimSpace(a.Pretext + "\n" + a.Title + "\n" + a.Text)
		}
		if text = plain(cmp.Or(text, a.Fallback)); strings.TrimSpace(text) != "" {
			all = append(all, forward{bot.PlainName(cmp.Or(a.AuthorName, a.AuthorSubname)), text, shared})
		}
	}
	return all
}
