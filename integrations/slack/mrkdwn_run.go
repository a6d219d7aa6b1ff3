package slack

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// joint is the zero-width space that is put where a text would do something
	// or look like something else, and beside styles that Slack would not find:
	// it shows one only from one boundary of words to another.
	joint = "\u200b"
	// tick looks like the ` that would begin code. Nothing else keeps that from
	// doing so.
	tick = "‵"
)

// visible is a text without what cannot be seen in it: control characters, and
// those that reorder what is read.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\u2028', r == '\u2029':
			return '\n'
		case unicode.IsControl(r), r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069', r == '\ufeff':
			return -1
		}
		return r
	}, strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "\uFFFD"))
}

// blank: it shows nothing.
func blank(r rune) bool { return unicode.IsSpace(r) || r == '\u200b' }

// escape is a text that Slack takes for nothing but text.
func escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		b.WriteString(escaped(r))
	}
	return b.String()
}

func escaped(r rune) string {
	switch r {
	case '&':
		return "&amp;"
	case '<':
		return "&lt;"
	case '>':
		return "&gt;"
	}
	return string(r)
}

// callsAll are the words that wake a whole channel, where somebody asks Slack to
// look for them.
var callsAll = regexp.MustCompile(`(?i)@(here|channel|everyone|group)\b`)

func silenced(text string) string { return callsAll.ReplaceAllString(text, "@"+joint+"$1") }

// inCode is code that neither ends before its end nor wakes anybody. It is
// otherwise kept: people copy it.
func inCode(text string) string {
	return silenced(strings.ReplaceAll(text, "``", "`"+joint+"`"+joint))
}

// inText is prose in which no character but ours means a style, and nobody is
// called.
func inText(text string) string {
	text = silenced(text)
	var b strings.Builder
	before := rune(0)
	for i, r := range text {
		after, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
		switch {
		case r == '`':
			b.WriteString(tick)
		case r == '*' || r == '_' || r == '~':
			b.WriteString(inert(r, before, i == 0, after))
		case r == '@' && inWord(after) && (i == 0 || !inWord(before)):
			b.WriteString("@" + joint)
		case r == '>' && (i == 0 || before == '\n'): // a line that begins so is a quotation, escaped or not
			b.WriteString(joint + "&gt;")
		default:
			b.WriteString(escaped(r))
		}
		before = r
	}
	return b.String()
}

// inert is a character that means a style, between two others, so that it means
// none. Within a word or between spaces it does not anyway; first in a run, it
// may stand beside a mark of ours.
func inert(r, before rune, first bool, after rune) string {
	switch {
	case !first && inWord(before) && inWord(after), !first && unicode.IsSpace(before) && unicode.IsSpace(after):
		return string(r)
	}
	return joint + string(r) + joint
}

func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// written is one run, which has no line break in it, as Slack has it.
func (r run) written() string {
	switch {
	case r.url != "" && r.url == r.text:
		return "<" + escape(r.url) + ">"
	case r.url != "":
		return "<" + escape(r.url) + "|" + linkLabel(r.text) + ">"
	case r.style&coded != 0:
		return "`" + escape(inCode(strings.ReplaceAll(r.text, "`", tick))) + "`"
	}
	return inText(r.text)
}

// linkLabel is the text of a link.
func linkLabel(text string) string {
	return strings.ReplaceAll(inText(text), "|", "¦")
}

// marks are put around a run, the others the other way round behind it.
func (r run) marks() (before, after string) {
	for _, m := range []struct {
		style style
		mark  string
	}{{bold, "*"}, {italic, "_"}, {struck, "~"}} {
		if r.style&m.style != 0 {
			before, after = before+m.mark, m.mark+after
		}
	}
	return before, after
}

// writeRuns writes runs as Slack has them. prefix is put behind each line break.
func writeRuns(runs []run, prefix string) string {
	var b strings.Builder
	var last run // what b ends in; of style 0 and without text, nothing that matters
	for _, r := range runs {
		for i, line := range strings.Split(r.text, "\n") {
			if i > 0 {
				b.WriteString("\n" + prefix)
				last = run{}
			}
			for _, part := range r.saying(line).naked() {
				if abuts(last, part) {
					b.WriteString(joint)
				}
				before, after := part.marks()
				b.WriteString(before + part.written() + after)
				last = part
			}
		}
	}
	return b.String()
}

// naked parts a run from the spaces at its ends: a style must not begin or end
// with one.
func (r run) naked() []run {
	parts := []run{r}
	if r.style != 0 {
		text := strings.TrimFunc(r.text, blank)
		at := strings.Index(r.text, text)
		parts = []run{{text: r.text[:at]}, r.saying(text), {text: r.text[at+len(text):]}}
	}
	var out []run
	for _, part := range parts {
		if part.text != "" {
			out = append(out, part)
		}
	}
	return out
}

// abuts: two runs next to each other, of which Slack would not see where one
// begins.
func abuts(a, b run) bool {
	if a.text == "" || a.style == 0 && b.style == 0 {
		return false
	}
	end, _ := utf8.DecodeLastRuneInString(a.text)
	begin, _ := utf8.DecodeRuneInString(b.text)
	switch {
	case a.style == 0:
		return !boundary(end) || a.url != ""
	case b.style == 0:
		return !boundary(begin) || b.url != ""
	}
	return true
}

// boundary: Slack takes a style for one that begins or ends beside this.
func boundary(r rune) bool {
	return unicode.IsSpace(r) || r < utf8.RuneSelf && unicode.IsPunct(r) && r != '_' && r != '*' && r != '`'
}
