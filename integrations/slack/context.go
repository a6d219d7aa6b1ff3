package slack

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"ship/bot"
	"ship/session"
)

const (
	// maxContext is how much of what was said before a request, or of what that
	// names elsewhere, the agent gets to read, and maxBeside of what was said beside
	// the conversation since the last one, in bytes. Files come on top: see maxFiles.
	maxContext = 32 << 10
	maxBeside  = 16 << 10
	// maxRemark of each message: no single one crowds out the rest.
	maxRemark = 4 << 10
	// maxUntold is for the lines that say how many files there are no names of.
	maxUntold = 3 * 64
	// maxTitle of a session, in bytes.
	maxTitle = 120
	// maxNames is how many people of a thread are looked up for one request.
	maxNames = 12
	// somebody is the name of a person of whom Slack tells none.
	somebody = "somebody"
)

// utterance is a message that somebody else than us wrote.
type utterance struct {
	message
	at time.Time
	// words are what it says, to us if it is for us.
	words string
	// own: it is the request itself, or a part of it, whose words are an
	// instruction. pointed: the request's shortcut was used on it.
	own, pointed bool
	// heard: it was a request of its own.
	heard bool
}

// explain adds what a request is about: what was said in the thread before it,
// what was said beside the conversation since the last request, and what comes
// along with it. All of it is data.
func (w *work) explain(ctx context.Context, r session.Request, a *session.Admission) error {
	self, err := w.app.self(ctx)
	if err != nil {
		return err
	}
	lines, err := w.lines(ctx, r, self)
	if err != nil {
		return err
	}
	w.origin(r, lines, self.permalink(w.thread), a)
	t := w.newTeller(ctx)
	before, beside := parted(lines, w.voice().Heard)
	a.Quote = t.beside(beside)
	a.Context += t.before(before, maxContext-len(a.Context))
	return nil
}

// origin says where the session began, and calls it something.
func (w *work) origin(r session.Request, lines []utterance, address string, a *session.Admission) {
	if s := w.job.State; s.Origin != nil || s.Turns > 0 {
		return
	}
	first := ""
	if len(lines) > 0 {
		first = lines[0].words
	}
	a.Title = titleOf(cmp.Or(strings.TrimSpace(r.Text), strings.TrimSpace(r.Quote), first))
	a.Origin = &session.Origin{Name: "Slack thread", URL: address}
}

var (
	// webAddress is what names something elsewhere, which is no part of a title.
	webAddress = regexp.MustCompile(`https?://\S+`)
	// sentence is one that more follows on, and that is not an abbreviation.
	sentence = regexp.MustCompile(`^(.{10,}?[\pL\pN)"'` + "`" + `]{2})[.!?]\s`)
)

// titleOf is what the first line of a text begins with: its first sentence,
// without addresses.
func titleOf(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(strings.ToValidUTF8(text, "")), "\n")
	line := strings.Join(strings.Fields(text), " ")
	if named := strings.Join(strings.Fields(webAddress.ReplaceAllString(line, "")), " "); strings.ContainsFunc(named, unicode.IsLetter) {
		line = strings.TrimRight(named, " :,;-–(")
	}
	if m := sentence.FindStringSubmatch(line); m != nil {
		line = m[1]
	}
	return bot.Prefix(line, maxTitle)
}

// permalink is the address of a thread; empty if we do not know ours.
func (i identity) permalink(t thread) string {
	if !strings.HasPrefix(i.url, "https://") {
		return ""
	}
	return strings.TrimRight(i.url, "/") + "/archives/" + t.channel + "/p" + strings.ReplaceAll(t.root, ".", "")
}

// lines are the messages of the thread until a request was made, the oldest
// first, without ours.
func (w *work) lines(ctx context.Context, r session.Request, self identity) ([]utterance, error) {
	messages, err := w.replies(ctx, Thinking, "", maxLook)
	if err != nil {
		return nil, err
	}
	at, err := parseRef(r.Ref)
	if err != nil { // an operator's
		at = ref{}
	}
	user, _, _ := parseLogin(r.By.Login)
	shortcut, waited := at.kind == refShortcut, w.job.State.Turns == 0
	var all []utterance
	for _, m := range messages {
		l := utterance{message: m, at: moment(m.TS), words: plain(addressed(m.Text, self.user))}
		if l.at.After(r.At) || self.wrote(m) || !uttered(m) {
			continue
		}
		mine, at := m.User != "" && m.User == user, m.TS == at.ts
		l.heard = w.addresses(m, self)
		l.own = at && (!shortcut || mine) || waited && mine && l.heard && repeats(r.Text, l.words)
		l.pointed = at && shortcut && !mine
		all = append(all, l)
	}
	return all, nil
}

// uttered: somebody or some program said it; it is not Slack's own notice of who
// joined, and the like.
func uttered(m message) bool {
	return m.Subtype == "bot_message" || m.Subtype == "me_message" || spoken(m.Subtype)
}

// addresses: a message was for us, and so a request.
func (w *work) addresses(m message, self identity) bool {
	if m.Bot != "" {
		return false
	}
	direct := strings.HasPrefix(w.thread.channel, "D")
	return direct || mentions(m.Text, self.user) || w.settings.OpenThreads() && m.isReply() && toAll(m.Text)
}

// repeats: an instruction has words that were said in a message. One that waited
// for the answer to a question has them, but came with the answer.
func repeats(instruction, words string) bool {
	words = strings.TrimSpace(words)
	return words != "" && strings.Contains(instruction, words)
}

// parted parts what was said beside the conversation since a moment, and what
// comes along with the request itself, from all else.
func parted(all []utterance, heard time.Time) (before, beside []utterance) {
	for _, l := range all {
		if l.own || l.pointed || !l.heard && !heard.IsZero() && l.at.After(heard) {
			beside = append(beside, l)
		} else {
			before = append(before, l)
		}
	}
	return before, beside
}

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
