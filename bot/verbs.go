package bot

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"ship/session"
)

// MaxBudget is the most that a person can allow one turn, in USD.
const MaxBudget = 10_000

// NeedsRight: what is asked is about the work, and not for everybody who can
// write where it is asked.
func NeedsRight(v session.Verb) bool {
	switch v {
	case session.Stop, session.Withdraw, session.Help, session.Status, session.Unclear:
		return false
	}
	return true
}

// NeedsContext: the agent gets to work on it, and so has to know what it is
// about.
func NeedsContext(v session.Verb) bool {
	return v == session.Instruct || v == session.Finish || v == session.Retry
}

// verb looks whether the instruction c is one of the words with a meaning of
// its own. They have it only when they stand alone: "/ship ready the docs" is
// an instruction. One exception, towards the safe side: "stop" alone on its
// line stops, whatever stands below.
func (c Command) verb() Command {
	line, _, more := strings.Cut(c.Text, "\n")
	switch word := bareWord(line); {
	case word == "stop":
		c.Verb, c.Text = session.Stop, ""
		return c
	case more:
		return c.wordAndMore(line)
	case word == "retry", word == "status", word == "help", word == "ready":
		c.Verb, c.Text = session.Verb(word), ""
		return c
	}
	return c.wordAndArgument(line)
}

// bareWord is a line in lower case, without the punctuation at its end and
// without "please" and "now" around it.
func bareWord(line string) string {
	words := strings.FieldsFunc(strings.ToLower(line), func(r rune) bool {
		return unicode.IsSpace(r) || r == ','
	})
	for len(words) > 1 && courtesy(words[0]) {
		words = words[1:]
	}
	for len(words) > 1 && courtesy(words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	return strings.TrimRight(strings.Join(words, " "), endPunctuation)
}

const endPunctuation = ".!?,;:…"

func courtesy(word string) bool {
	switch strings.TrimRight(word, endPunctuation) {
	case "please", "pls", "now", "":
		return true
	}
	return false
}

// wordAndMore: a word with an argument on the first line and more below would
// be half a setting and half an instruction. Neither is guessed.
func (c Command) wordAndMore(line string) Command {
	one := Command{Text: line}.wordAndArgument(line)
	switch {
	case one.Verb == session.Model, one.Verb == session.Budget, one.Verb == "" && one.Repo != "":
		return unclear("`/ship " + strings.Join(strings.Fields(line), " ") + "` has to stand alone. " +
			"Put what is to be done behind a second `/ship`, on a line of its own.")
	}
	return c
}

func (c Command) wordAndArgument(line string) Command {
	words := strings.Fields(line)
	word := strings.ToLower(words[0])
	words = words[1:]
	for len(words) > 1 && courtesy(words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	switch word {
	case "model":
		return c.model(words)
	case "budget":
		return c.budget(words)
	case "repo":
		return c.repo(words)
	}
	return c
}

func (c Command) model(words []string) Command {
	switch {
	case len(words) > 1:
		return c
	case len(words) == 1 && validModel(trimEnd(words[0])):
		c.Verb, c.Text = session.Model, trimEnd(words[0])
		return c
	}
	return unclear("Name the model, such as `/ship model NAME`, in letters, digits and `. _ : / @ -`.")
}

func (c Command) budget(words []string) Command {
	if usd, ok := money(strings.Join(words, " ")); ok {
		c.Verb, c.Text = session.Budget, usd
		return c
	}
	switch {
	case len(words) <= 1:
		return unclear("A budget is a number of US dollars above 0 and up to 10000, such as `/ship budget 10`.")
	case looksLikeMoney(words[0]):
		return unclear("`/ship budget` takes one number and nothing else, such as `/ship budget 10`. " +
			"Put what is to be done behind a second `/ship`, on a line of its own.")
	}
	return c
}

func (c Command) repo(words []string) Command {
	switch {
	case len(words) == 1 && validRepo(words[0]) && c.Repo == "":
		c.Verb, c.Text, c.Repo = "", "", words[0]
		return c
	case len(words) == 1 && c.Repo != "":
		return unclear("The repository is named twice. Name it once, such as `/ship repo OWNER/NAME`.")
	case len(words) <= 1:
		return unclear("Name the repository as `/ship repo OWNER/NAME`.")
	case validRepo(words[0]):
		return unclear("`/ship repo` takes one name and nothing else. " +
			"To name the repository of one instruction, write `/ship [repo=OWNER/NAME]` and then the instruction.")
	}
	return c
}

func trimEnd(word string) string { return strings.TrimRight(word, endPunctuation) }

// dollars: digits with a point, and the currency before or behind.
var dollars = regexp.MustCompile(`(?i)^(?:\$|usd)? ?([0-9]{0,9}(?:\.[0-9]{1,9})?) ?(?:\$|usd|dollars?)?[.!]?$`)

// money reads an amount above zero and up to MaxBudget, and writes it plainly.
func money(s string) (usd string, ok bool) {
	m := dollars.FindStringSubmatch(s)
	if m == nil {
		return "", false
	}
	amount, err := strconv.ParseFloat(m[1], 64)
	if err != nil || !(amount > 0) || amount > MaxBudget || math.IsInf(amount, 0) {
		return "", false
	}
	return strconv.FormatFloat(amount, 'f', -1, 64), true
}

func looksLikeMoney(word string) bool {
	word = strings.TrimLeft(word, "$-+")
	return word != "" && word[0] >= '0' && word[0] <= '9'
}
