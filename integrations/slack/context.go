package slack

import (
	"context"
	"strings"
	"time"

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
