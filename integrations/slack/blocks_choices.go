package slack

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"ship/bot"
	"ship/session"
)

// Limits of what can be chosen from.
const (
	maxLabel = 75
	// maxValue of a button, and maxOption of an option, in characters.
	maxValue  = 2000
	maxOption = 150
	// maxButtons are shown next to each other; of more choices one is selected.
	maxButtons  = 5
	maxRow      = 25
	maxSelected = 20
	// maxOffers is the size of all that can be chosen from, as it is sent.
	maxOffers = 3500
)

// offer is one of the answers to a question.
type offer struct{ label, value string }

// offers are what can be chosen from. all: that is each of the choices, and each
// can be read whole.
func offers(choices []session.Choice) (out []offer, all bool) {
	all = true
	seen := map[string]bool{}
	for _, c := range choices {
		value := strings.TrimSpace(cmp.Or(c.Value, c.Label))
		full := strings.TrimSpace(bot.Phrase(cmp.Or(c.Label, c.Value), 4*maxLabel))
		o := offer{label: shortened(full, maxLabel), value: value}
		switch {
		case value == "" || o.label == "" || seen[value]:
			continue
		case length(value) > maxValue:
			all = false
			continue
		}
		seen[value] = true
		all = all && o.label == full
		out = append(out, o)
	}
	return out, all
}

// shortened is a line of at most most characters.
func shortened(text string, most int) string {
	if length(text) <= most {
		return text
	}
	used := length("…")
	for i, r := range text {
		if used += units(r); used > most {
			return strings.TrimRight(text[:i], " ") + "…"
		}
	}
	return text
}

// choosing is the block of that id in which a question is answered: nil if there
// is nothing to choose from. all: see offers.
func choosing(id string, choices []session.Choice) (block slack.Block, all bool) {
	list, all := offers(choices)
	selected := len(list) > maxButtons
	for _, o := range list {
		selected = selected && length(o.value) <= maxOption
	}
	most := maxRow
	if selected {
		most = maxSelected
	}
	if len(list) > most {
		list, all = list[:most], false
	}
	for ; len(list) > 0; list, all = list[:len(list)-1], false {
		block := row(id, list)
		if selected {
			block = selection(id, list)
		}
		if size([]slack.Block{block}) <= maxOffers {
			return block, all
		}
	}
	return nil, all
}

func row(id string, list []offer) slack.Block {
	var buttons []slack.BlockElement
	for i, o := range list {
		buttons = append(buttons, slack.NewButtonBlockElement(fmt.Sprintf("%s.%d", actionChoose, i+1), o.value, words(o.label)))
	}
	return slack.NewActionBlock(id, buttons...)
}

func selection(id string, list []offer) slack.Block {
	var options []*slack.OptionBlockObject
	for _, o := range list {
		options = append(options, slack.NewOptionBlockObject(o.value, words(o.label), nil))
	}
	return slack.NewActionBlock(id,
		slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, words("Choose one"), actionChoose, options...))
}

// posed is a question in Markdown as messages, with what can be chosen from
// below the last, in the block of that id. What cannot be read or pressed there
// is written out.
func posed(id, markdown string, choices []session.Choice) []post {
	block, all := choosing(id, choices)
	if list := bot.Choices(choices); !all && !strings.Contains(markdown, list) {
		markdown += "\n\n" + list
	}
	if block == nil {
		return posts(markdown, nil)
	}
	return posts(markdown, []slack.Block{block})
}
