package slack

import (
	"strings"
	"unicode/utf8"
)

// maxWord is what is kept together of text without a space, in characters.
const maxWord = 100

const (
	fence = "```"
	// fences are all that is put around code.
	fences = len(fence+"\n") + len("\n"+fence)
)

// pieces is a passage as Slack has it, in as few pieces of at most room
// characters as its words allow.
func (p passage) pieces(room int) []string {
	if p.code != "" {
		return p.listings(room)
	}
	if len(p.runs) == 0 {
		return nil
	}
	if whole := p.first + writeRuns(p.runs, p.rest); length(whole) <= room {
		return []string{whole}
	}
	var out []string
	first, used := p.first, length(p.first)
	var now []run
	flush := func() {
		if now = trimmed(merged(now)); len(now) > 0 {
			out = append(out, first+writeRuns(now, p.rest))
			first = p.rest
		}
		now, used = nil, length(p.rest)
	}
	for _, w := range wordsOf(p.runs) {
		n := length(writeRuns([]run{w}, p.rest)) + 2*len(joint)
		if used+n > room {
			flush()
		}
		now = append(now, w)
		used += n
	}
	flush()
	return out
}

// wordsOf takes runs apart behind each space, and where there is none for long.
func wordsOf(runs []run) []run {
	var out []run
	for _, r := range runs {
		text := r.text
		for text != "" {
			n := wordEnd(text)
			if r.url != "" && utf8.RuneCountInString(text) <= maxWord {
				n = len(text)
			}
			out = append(out, r.saying(text[:n]))
			text = text[n:]
		}
	}
	return out
}

// wordEnd is how much of a text its first word is, with the space behind it.
func wordEnd(text string) int {
	count := 0
	for i, r := range text {
		if count++; r == ' ' || r == '\n' || count >= maxWord {
			return i + utf8.RuneLen(r)
		}
	}
	return len(text)
}

// trimmed is runs without the space around them all.
func trimmed(runs []run) []run {
	for len(runs) > 0 {
		if runs[0].text = strings.TrimLeftFunc(runs[0].text, blank); runs[0].text != "" {
			break
		}
		runs = runs[1:]
	}
	for n := len(runs); n > 0; n-- {
		if runs[n-1].text = strings.TrimRightFunc(runs[n-1].text, blank); runs[n-1].text != "" {
			break
		}
		runs = runs[:n-1]
	}
	return runs
}

// listings is code in as many fences as it takes, divided between lines where
// that is possible.
func (p passage) listings(room int) []string {
	room -= fences
	var out []string
	for code := inCode(p.code); code != ""; {
		n := fitting(code, room)
		if part := strings.TrimRight(code[:n], "\n"); strings.TrimSpace(part) != "" {
			out = append(out, fence+"\n"+escape(part)+"\n"+fence)
		}
		code = code[n:]
	}
	return out
}

// fitting is how much of code there is room for, in bytes: whole lines if it is
// one at least.
func fitting(code string, room int) int {
	used, lines := 0, 0
	for i, r := range code {
		used += length(escaped(r))
		if used > room {
			if lines > 0 {
				return lines
			}
			return i
		}
		if r == '\n' {
			lines = i + 1
		}
	}
	return len(code)
}
