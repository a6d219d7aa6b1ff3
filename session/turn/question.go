package turn

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ship/session"
)

// What a question may be for the platforms to show it: a few sentences, and
// options that fit on buttons.
const (
	maxQuestion = 1 << 10
	minOptions  = 2
	maxOptions  = 6
	maxOption   = 100
)

// askInfo is the info string of the fenced block that holds a question.
const askInfo = "ask"

// fenceLine begins or ends a fenced block of Markdown.
var fenceLine = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$")

// parseQuestion takes the question that an agent's message ends with out of
// it. Whatever is not exactly as we asked for it stays a part of the message:
// people can answer that too, only without buttons.
func parseQuestion(message string) (q session.Question, rest string, ok bool) {
	message = strings.ReplaceAll(message, "\r\n", "\n")
	lines := strings.Split(strings.TrimRight(message, " \t\n"), "\n")
	begin := lastBlock(lines)
	if begin < 0 {
		return session.Question{}, message, false
	}
	q, ok = readQuestion(lines[begin+1 : len(lines)-1])
	if !ok {
		return session.Question{}, message, false
	}
	return q, strings.TrimSpace(strings.Join(lines[:begin], "\n")), true
}

// lastBlock is the line at which the block with a question begins that the
// message ends with; negative: there is none. One that is quoted inside of
// another block is none.
func lastBlock(lines []string) int {
	begin, open, info := -1, "", ""
	for i, line := range lines {
		m := fenceLine.FindStringSubmatch(line)
		switch {
		case m == nil:
		case open == "":
			begin, open, info = i, m[1], strings.TrimSpace(m[2])
		case strings.HasPrefix(m[1], open) && strings.TrimSpace(m[2]) == "":
			if i == len(lines)-1 && info == askInfo {
				return begin
			}
			open = ""
		}
	}
	return -1
}

// readQuestion reads what is inside of the block: the question, then options,
// if any.
func readQuestion(lines []string) (q session.Question, ok bool) {
	var text []string
	for _, line := range lines {
		line = strings.TrimSpace(strings.ReplaceAll(line, "\t", " "))
		option, is := strings.CutPrefix(line, "- ")
		switch {
		case is:
			q.Choices = append(q.Choices, session.Choice{Value: strings.TrimSpace(option)})
		case len(q.Choices) == 0:
			text = append(text, line)
		case line != "":
			return session.Question{}, false
		}
	}
	q.Text = strings.TrimSpace(strings.Join(text, "\n"))
	if !slices.ContainsFunc(text, legible) || len(q.Text) > maxQuestion || slices.ContainsFunc(text, illegible) {
		return session.Question{}, false
	}
	return q, offerable(q.Choices)
}

// offerable: a person can choose one of them. None at all asks for words.
func offerable(choices []session.Choice) bool {
	if len(choices) == 0 {
		return true
	}
	if len(choices) < minOptions || len(choices) > maxOptions {
		return false
	}
	seen := map[string]bool{}
	for _, c := range choices {
		if seen[c.Value] || !legible(c.Value) || len(c.Value) > maxOption {
			return false
		}
		seen[c.Value] = true
	}
	return true
}

// legible: a line that shows what it says, without controls or marks that turn
// the reading around.
func legible(line string) bool { return line != "" && !illegible(line) }

func illegible(line string) bool {
	return !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) })
}
