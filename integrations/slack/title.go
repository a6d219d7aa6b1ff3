package slack

import (
	"cmp"
	"regexp"
	"strings"
	"unicode"

	"ship/bot"
	"ship/session"
)

// maxTitle of a session, in bytes.
const maxTitle = 120

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
