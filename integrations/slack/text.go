package slack

import (
	"regexp"
	"strings"
)

// references are what Slack writes between angle brackets: links, people,
// channels, and special words. Brackets that people type come escaped.
var references = regexp.MustCompile(`<([^<>\n]+)>`)

// unescape undoes what Slack escapes, in one pass: &amp;lt; is &lt;.
var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// plain is a text of Slack's as it was written, with links in Markdown. People
// without a label are left as their ids.
func plain(text string) string {
	return unescape.Replace(references.ReplaceAllStringFunc(text, func(s string) string {
		return reference(s[1 : len(s)-1])
	}))
}

func reference(s string) string {
	what, label, _ := strings.Cut(s, "|")
	switch {
	case strings.HasPrefix(what, "@"):
		return named("@", strings.TrimPrefix(label, "@"), what[1:])
	case strings.HasPrefix(what, "#"):
		return named("#", strings.TrimPrefix(label, "#"), what[1:])
	case strings.HasPrefix(what, "!"):
		return special(what[1:], label)
	}
	return link(what, label)
}

func named(sign, label, id string) string {
	if label == "" {
		label = id
	}
	return sign + label
}

// special is a word like !here, !subteam^S1, !date^1^{date}^https://a.b.
func special(what, label string) string {
	word, rest, _ := strings.Cut(what, "^")
	switch {
	case label != "" && word == "subteam":
		return "@" + strings.TrimPrefix(label, "@")
	case label != "" && word == "date":
		return label
	case word == "subteam":
		return "@" + rest
	}
	return "@" + word
}

// link is a link as it was written: Slack makes one of each address, and a
// label of what was typed.
func link(address, label string) string {
	switch {
	case label == "":
		return strings.TrimPrefix(address, "mailto:")
	case label == address, "http://"+label == address, "https://"+label == address,
		"mailto:"+label == address, "tel:"+label == address:
		return label
	}
	return "[" + label + "](" + address + ")"
}

// span is text[from:to].
type span struct{ from, to int }

// mention finds the first mention of a user, who is known by id, at or behind
// from. Without an id it is whoever the text begins with.
func mention(text, user string, from int) (span, bool) {
	if user == "" && (from > 0 || !strings.HasPrefix(text, "<@")) {
		return span{}, false
	}
	for {
		at := strings.Index(text[from:], "<@"+user)
		if at < 0 {
			return span{}, false
		}
		at += from
		from = at + len("<@"+user)
		end := strings.IndexAny(text[from:], "<>\n")
		if end < 0 || text[from+end] != '>' {
			continue
		}
		if user == "" || end == 0 || text[from] == '|' {
			return span{at, from + end + 1}, true
		}
	}
}

// quotations are what Slack shows as quoted: lines that begin so, and with three
// of the marks all that follows.
var quotations = regexp.MustCompile(`(?m:^&gt;)(?:(?s:&gt;&gt;.*)|.*)`)

// unquoted is a text without what is quoted in it, which somebody else said to
// somebody else.
func unquoted(text string) string { return quotations.ReplaceAllString(text, "") }

// aligned is a text in whose first line no code begins that goes on in the next:
// that has a line of its own, as in Markdown. No option is read out of it.
func aligned(text string) string {
	first, rest, more := strings.Cut(text, "\n")
	at := strings.LastIndex(first, fence)
	if !more || at <= 0 || strings.Count(first, fence)%2 == 0 {
		return text
	}
	return strings.TrimRight(first[:at], " ") + "\n" + first[at:] + "\n" + rest
}

// addressed is what a text says to a user: the text without the mentions, and
// without the comma behind one that it begins with.
func addressed(text, user string) string {
	text = strings.TrimSpace(text)
	var said strings.Builder
	from := 0
	for m, ok := mention(text, user, 0); ok; m, ok = mention(text, user, from) {
		said.WriteString(text[from:m.from])
		from = m.to
		so := said.String()
		if strings.TrimSpace(so) == "" {
			from = skip(text, from, ",:")
		}
		if so == "" || strings.HasSuffix(so, " ") || strings.HasSuffix(so, "\n") {
			from = skip(text, from, " ")
		}
	}
	said.WriteString(text[from:])
	return strings.TrimSpace(said.String())
}

// skip returns the first place at or behind from that holds none of chars.
func skip(text string, from int, chars string) int {
	return len(text) - len(strings.TrimLeft(text[from:], chars))
}
