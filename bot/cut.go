package bot

import (
	"strings"
	"unicode"
)

const cutHere = "\n\n*(cut here: the rest is too long)*"

// Cut returns at most max bytes of a Markdown text. A text that is shortened
// ends between two characters, with its open fence closed, and says so; if max
// is too small even for that, it just ends.
func Cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	room := max - len(cutHere)
	if room <= 0 {
		return s[:runeStart(s, max)]
	}
	part := s[:runeStart(s, room)]
	for {
		start, end := layOut(part, false).ending()
		if len(part)+len(end) <= room {
			return part + end + cutHere
		}
		keep := room - len(end)
		if keep < start+len(end) {
			keep = start // no room for any of the code
		}
		part = part[:runeStart(part, keep)]
	}
}

// ending is what closes the fence that is open at the end of the text, and
// where its line starts. In a list, whatever comes behind the list closes it.
func (l *layout) ending() (start int, end string) {
	if l.open == nil || l.open.need > 0 {
		return len(l.body), ""
	}
	opening := l.text(l.open.first)
	indent := opening[:strings.Index(opening, l.open.fence)]
	return l.lines[l.open.first].start, "\n" + indent + l.open.fence
}

// clip shortens one line to max bytes, at a space if there is one near the end.
func clip(s string, max int) string {
	const dots = "…"
	if len(s) <= max {
		return s
	}
	if max <= len(dots) {
		return s[:runeStart(s, max)]
	}
	s = s[:runeStart(s, max-len(dots))]
	if i := strings.LastIndexFunc(s, unicode.IsSpace); i > len(s)*2/3 {
		s = s[:i]
	}
	return strings.TrimRight(s, " ,;:.-") + dots
}

// code shows one line of foreign text as code. It is defused all the same: an
// odd backtick before it in the paragraph would turn the code inside out.
func code(s string) string {
	s = defuse(strings.Join(strings.Fields(legible(s)), " "))
	if s == "" {
		return ""
	}
	row := strings.Repeat("`", longestRow(s)+1)
	if s[0] == '`' || s[len(s)-1] == '`' {
		s = " " + s + " "
	}
	return row + s + row
}

// codeBlock shows lines of foreign text as code.
func codeBlock(lines []string) string {
	text := strings.Join(lines, "\n")
	fence := strings.Repeat("`", max(3, longestRow(text)+1))
	return fence + "text\n" + text + "\n" + fence
}

// longestRow is the length of the longest row of backticks.
func longestRow(s string) int {
	longest := 0
	for i := 0; i < len(s); i++ {
		if s[i] == '`' {
			n := run(s[i:])
			longest = max(longest, n)
			i += n - 1
		}
	}
	return longest
}

// quote puts a text into a quotation. Tabs at the start of a line become
// spaces: behind the mark they would reach less far, and mean something else.
func quote(s string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.Trim(s, "\n"), "\n") {
		columns, rest := indentation(line)
		line = strings.Repeat(" ", columns) + rest
		b.WriteString(strings.TrimRight("> "+line, " ") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// folded hides a text behind a line that is clicked on.
func folded(summary, text string) string {
	return "<details><summary>" + summary + "</summary>\n\n" + text + "\n\n</details>"
}

// Prefix is a text's beginning: at most max bytes, up to a rune's boundary. It
// says nowhere that it is cut; Cut does.
func Prefix(s string, max int) string {
	if len(s) <= max {
		return s
	}
	return s[:runeStart(s, max)]
}
