package bot

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// joint is the zero-width space that is put where foreign text would do
// something: nobody sees it, and GitHub finds no mention, tag or reference
// across it.
const joint = "\u200b"

// Neutralise takes the effects out of foreign Markdown and leaves its looks:
// nobody is mentioned, no issue is closed, no image is loaded, no tag and no
// comment is HTML, no entity stands for one of these, and every fence is
// closed. Fenced code keeps its characters; its fences are moved to the first
// column, so that where it ends is beyond doubt. The result belongs at the
// beginning of a line. Neutralising twice changes nothing more.
func Neutralise(s string) string {
	l := layOut(legible(s), false)
	exempt := l.fencedLines()
	edits := slices.DeleteFunc(dangers(l.body), func(e edit) bool { return exempt.holds(e.at) })
	for _, b := range l.blocks {
		edits = append(edits, l.align(b)...)
	}
	return apply(l.body, edits)
}

// phrase makes one line of foreign text harmless, at most max bytes of it. It
// must not stand at the beginning of a line.
func phrase(s string, max int) string {
	s = clip(strings.Join(strings.Fields(legible(s)), " "), max)
	return defuse(s)
}

// defuse neutralises text that is not Markdown, code or not.
func defuse(s string) string { return apply(s, dangers(s)) }

// legible is text with \n as the only line break, without control characters
// and without those that reorder what is read.
func legible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case unicode.IsControl(r), r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069', r == '\ufeff':
			return -1
		}
		return r
	}, normal(s))
}

// edit replaces n bytes at an offset.
type edit struct {
	at, n int
	text  string
}

// apply performs edits, the first of those that overlap.
func apply(s string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	done := 0
	for _, e := range edits {
		if e.at < done {
			continue
		}
		b.WriteString(s[done:e.at])
		b.WriteString(e.text)
		done = e.at + e.n
	}
	b.WriteString(s[done:])
	return b.String()
}

var (
	// closing is a word by which GitHub closes issues (close, fix and resolve in
	// all their forms) before something that can be closed.
	closing = regexp.MustCompile(`^(?i:(?:close|fix|resolve)(?:s|d|es|ed)?[^A-Za-z0-9]{0,20}(?:#[0-9]|GH-[0-9]|https?://|[\w.-]+/[\w.-]+#[0-9]))`)
	entity  = regexp.MustCompile(`^&(?:#|[A-Za-z][A-Za-z0-9]{0,31};)`)
	web     = regexp.MustCompile(`https?://[^\s<]+`)
)

// window is how far a danger can reach: the longest name of a repository, and
// what stands around it.
const window = 200

// dangers are the edits that defuse s, in no order.
func dangers(s string) []edit {
	var edits []edit
	insert := func(at int) { edits = append(edits, edit{at: at, text: joint}) }
	for i := 0; i+1 < len(s); i++ {
		ahead := s[i:min(len(s), i+window)]
		switch c, next := s[i], s[i+1]; {
		case c == '<' && (isLetter(next) || next == '/' || next == '!' || next == '?'),
			c == '!' && next == '[',
			c == '&' && entity.MatchString(ahead),
			c == '#' && next >= '0' && next <= '9' && namesRepo(s[:i]):
			insert(i + 1)
		case beginsClosing(ahead) && closing.MatchString(ahead):
			insert(i + 2)
		}
	}
	return append(edits, mentions(s)...)
}

// namesRepo reports whether s ends in OWNER/NAME, and not in a longer path. A
// number behind it is a reference that would leave a note over there.
func namesRepo(s string) bool {
	name := nameAtEnd(s)
	s = s[:len(s)-name]
	if name == 0 || s == "" || s[len(s)-1] != '/' {
		return false
	}
	s = s[:len(s)-1]
	owner := nameAtEnd(s)
	s = s[:len(s)-owner]
	return owner > 0 && (s == "" || strings.IndexByte("/:%#", s[len(s)-1]) < 0)
}

// nameAtEnd is the length of what may be a name at the end of s.
func nameAtEnd(s string) int {
	n := 0
	for n < len(s) && n < window && (isWord(s[len(s)-1-n]) || s[len(s)-1-n] == '.' || s[len(s)-1-n] == '-') {
		n++
	}
	return n
}

func beginsClosing(s string) bool {
	for _, word := range []string{"close", "fix", "resolve"} {
		if s[0]|0x20 == word[0] && len(s) > len(word) && strings.EqualFold(s[:len(word)], word) {
			return true
		}
	}
	return false
}

// mentions defuses each @name. In a web address a joint would break the link,
// so there the @ is escaped as addresses do.
func mentions(s string) []edit {
	var edits []edit
	links := web.FindAllStringIndex(s, -1)
	for i := 0; i+1 < len(s); i++ {
		if s[i] != '@' || !isWord(s[i+1]) || i > 0 && isWord(s[i-1]) {
			continue
		}
		for len(links) > 0 && links[0][1] <= i {
			links = links[1:]
		}
		if len(links) > 0 && links[0][0] < i {
			edits = append(edits, edit{at: i, n: 1, text: "%40"})
		} else {
			edits = append(edits, edit{at: i + 1, text: joint})
		}
	}
	return edits
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isWord(c byte) bool   { return isLetter(c) || c >= '0' && c <= '9' || c == '_' }

// ranges are in order and do not overlap.
type ranges []span

func (r ranges) holds(at int) bool {
	i, found := slices.BinarySearchFunc(r, at, func(s span, at int) int { return cmp.Compare(s.from, at) })
	return found || i > 0 && at < r[i-1].to
}

// fencedLines are the ranges of fenced code outside of lists.
func (l *layout) fencedLines() ranges {
	var r ranges
	for _, b := range l.blocks {
		if b.need == 0 {
			r = append(r, span{l.lines[b.first].start, l.lines[b.last].end})
		}
	}
	return r
}

// align moves a fence to the first column, and closes one that is not. A fence
// on the line of a list's marker ends with the list in any case.
func (l *layout) align(b *block) []edit {
	if b.need > 0 {
		return nil
	}
	first, last := l.lines[b.first], l.lines[b.last]
	edits := []edit{{at: first.start, n: strings.Index(l.body[first.start:], b.fence)}}
	if !b.closed {
		return append(edits, edit{at: last.end, text: "\n" + b.fence})
	}
	_, row := indentation(l.body[last.start:last.end])
	return append(edits, edit{at: last.start, n: last.end - last.start - len(row)})
}
