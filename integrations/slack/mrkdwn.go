package slack

import (
	"strings"
	"unicode/utf16"

	"ship/bot"
)

// maxMarkdown is how much of a text is converted, in bytes. The time that the
// parser takes grows with the square of it for what nobody writes but to that
// end: for this much, to some tenths of a second.
const maxMarkdown = 16 << 10

// minRoom is the least that mrkdwn divides a text into: the longest address of a
// link with as much of its label as is kept together.
const minRoom = 3000

// mrkdwn is a text in Markdown as Slack has it written, in pieces of at most room
// characters, of which there is at least one, and none is empty. It is divided
// between paragraphs where that is possible, and nothing that is open at the end
// of a piece is left so: styles, links and code are taken up again in the next.
//
// Nothing in it does anything: only web and mail addresses are links, nobody is
// called, and what has a meaning in Slack's own notation but not in Markdown is
// shown as it is. room is minRoom or more.
func mrkdwn(markdown string, room int) []string {
	if len(markdown) > 2*maxMarkdown { // Cut looks at all that it gets
		markdown = markdown[:2*maxMarkdown]
	}
	markdown = bot.Cut(strings.ToValidUTF8(markdown, "\uFFFD"), maxMarkdown)
	all := passagesOf(markdown)
	if len(all) == 0 { // all of it is addresses of links that are not there
		all = []passage{{runs: trimmed([]run{{text: visible(markdown)}})}}
	}
	if pieces := pack(all, room); len(pieces) > 0 {
		return pieces
	}
	return []string{"…"}
}

// pack puts passages together as long as there is room.
func pack(all []passage, room int) []string {
	var out []string
	var now strings.Builder
	used := 0
	put := func(text, gap string) {
		n := length(text)
		if used > 0 && used+len(gap)+n > room {
			out = append(out, now.String())
			now.Reset()
			used = 0
		}
		if used > 0 {
			now.WriteString(gap)
			used += len(gap)
		}
		now.WriteString(text)
		used += n
	}
	for _, p := range all {
		gap := "\n\n"
		if p.close {
			gap = "\n"
		}
		for _, text := range p.pieces(room) {
			put(text, gap)
			gap = "\n"
		}
	}
	if used > 0 {
		out = append(out, now.String())
	}
	return out
}

// length counts characters as Slack's clients do: those outside of the basic
// plane count twice. Slack does not say how it counts itself, and this is never
// too little.
func length(text string) int {
	n := 0
	for _, r := range text {
		n += units(r)
	}
	return n
}

func units(r rune) int { return max(1, utf16.RuneLen(r)) }
