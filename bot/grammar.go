package bot

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"ship/session"
)

const (
	// maxBody is how much of a text is looked at: GitHub's longest comment,
	// 65,536 characters, at four bytes each.
	maxBody = 256 << 10
	// maxCommands is how many commands one text may hold.
	maxCommands = 10
)

// Parse finds the /ship commands of a comment written in Markdown, at most ten.
//
// A command begins at the start of a line, after at most three spaces, outside
// of quotations, code and HTML comments. Its text runs up to the next command
// or the end; what is quoted or code in there belongs to it, HTML comments,
// which nobody can see, do not. Parse is a pure function, linear in len(body).
//
// A bare /ship has the zero Verb: what it means depends on the thread, so the
// platform makes it session.Finish or session.Instruct. `repo OWNER/NAME` alone
// is a bare /ship with the option set.
func Parse(body string) []Command {
	if !mentionsShip(body) {
		return nil
	}
	l := layOut(normal(body), true)
	starts := l.commandLines()
	commands := make([]Command, 0, len(starts))
	for i, s := range starts {
		end := len(l.body)
		if i+1 < len(starts) {
			end = starts[i+1].from
		}
		if i == maxCommands {
			break
		}
		commands = append(commands, command(l.visible(s.to, end)))
	}
	return commands
}

// ParseText reads a text that is one command as a whole: what follows a
// mention in Slack, or a prompt in Linear. A leading /ship is optional. Where it
// begins with a quotation or code, the first line is not the person's own, so
// nothing in it is an option.
func ParseText(text string) Command {
	l := layOut(normal(text), true)
	text = l.visible(0, len(l.body))
	if rest, ok := afterShip(text); ok {
		text = strings.TrimSpace(rest)
	}
	first, _, _ := strings.Cut(text, "\n")
	switch layOut(first, true).lines[0].kind {
	case quoted, fenced, hidden:
		return Command{Verb: session.Instruct, Text: text}
	}
	return command(text)
}

// mentionsShip is a cheap look for what most comments do not have.
func mentionsShip(body string) bool {
	for {
		i := strings.IndexByte(body, '/')
		if i < 0 {
			return false
		}
		if body = body[i:]; hasShip(body) {
			return true
		}
		body = body[1:]
	}
}

func hasShip(s string) bool {
	return len(s) >= len("/ship") && strings.EqualFold(s[:len("/ship")], "/ship")
}

// normal is text as it is worked on: valid, with \n as the only line break,
// and not too long.
func normal(text string) string {
	if len(text) > maxBody {
		text = text[:runeStart(text, maxBody)]
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.IndexByte(text, '\r') < 0 {
		return text
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
}

// runeStart is the last boundary between runes at or before max.
func runeStart(s string, max int) int {
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return max
}

// commandLines are the lines that begin a command, from the line's beginning
// to behind the word, one more than may be used.
func (l *layout) commandLines() []span {
	var starts []span
	for i, ln := range l.lines {
		if ln.kind != plain {
			continue
		}
		if rest, ok := afterShip(l.text(i)); ok {
			starts = append(starts, span{ln.start, ln.end - len(rest)})
		}
		if len(starts) > maxCommands {
			break
		}
	}
	return starts
}

// afterShip returns what follows /ship at the start of text. The word must end
// there: /shipping is another one.
func afterShip(text string) (rest string, ok bool) {
	for range 3 {
		r, n := utf8.DecodeRuneInString(text)
		if !unicode.IsSpace(r) {
			break
		}
		text = text[n:]
	}
	if !hasShip(text) {
		return "", false
	}
	rest = text[len("/ship"):]
	r, _ := utf8.DecodeRuneInString(rest)
	return rest, rest == "" || unicode.IsSpace(r)
}

// visible is body[from:to] without its HTML comments, trimmed.
func (l *layout) visible(from, to int) string {
	first := sort.Search(len(l.comments), func(i int) bool { return l.comments[i].to > from })
	var b strings.Builder
	for _, c := range l.comments[first:] {
		if c.from >= to {
			break
		}
		b.WriteString(l.body[from:c.from])
		b.WriteByte(' ') // so that what stood around it does not become one word
		from = c.to
	}
	b.WriteString(l.body[from:to])
	return strings.TrimSpace(b.String())
}

// command understands the words of one command, which are trimmed.
func command(text string) Command {
	line, rest, _ := strings.Cut(text, "\n")
	c, line, problem := takeOptions(line)
	if problem != "" {
		return unclear(problem)
	}
	text = strings.TrimSpace(line + "\n" + rest)
	c.Verb, c.Text = session.Instruct, text
	if text == "" {
		c.Verb = ""
		return c
	}
	return c.verb()
}

func unclear(say string) Command { return Command{Verb: session.Unclear, Text: say} }
