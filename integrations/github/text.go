package github

import (
	"regexp"
	"strings"

	"ship/bot"
)

// maxComment is the most that a comment or a description may hold. GitHub
// counts characters; bytes are never fewer.
const maxComment = 65536

// htmlComment finds what a person does not see.
var htmlComment = regexp.MustCompile(`(?s)<!--.*?(?:-->|$)`)

// visible returns what a person sees of a text: an instruction that is hidden
// from them is not for the agent either.
func visible(s string) string {
	return strings.TrimSpace(htmlComment.ReplaceAllString(strings.ToValidUTF8(s, "\uFFFD"), ""))
}

// compose puts a text under its marker, within the limit. The marker counts
// only in the first line, so nothing in the text can pass for one.
func compose(marker, text string) string {
	return marker + "\n" + bot.Cut(text, maxComment-len(marker)-1)
}

// oneLine folds a text into a single line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
