package slack

import (
	"encoding/json"
	"slices"

	"github.com/slack-go/slack"
)

// Limits of a message, in characters and blocks. Slack promises 4,000 of text
// and 3,000 for a section, and was seen to refuse messages whose blocks have
// some 13,200 together.
const (
	maxCaption = 4000
	maxSection = 3000
	maxBlocks  = 50
	// maxSize of blocks as they are sent, escapes and all.
	maxSize = 12_500
)

// post is one message of ours. text is for notifications, and for where blocks
// are not shown; a message has both, for Slack drops the blocks of one that is
// changed to have text only.
type post struct {
	text   string
	blocks []slack.Block
}

// told is a text in Markdown as messages, of which there is at least one. The
// same text makes the same messages.
func told(markdown string) []post { return posts(markdown, nil) }

// posts are the messages that tell a text, with blocks below the end of the last.
func posts(markdown string, below []slack.Block) []post {
	var out []post
	var now []slack.Block
	for _, text := range mrkdwn(markdown, maxSection) {
		if now = append(now, section(text)); size(now) > maxSize || len(now) > maxBlocks {
			out = append(out, post{blocks: now[:len(now)-1]})
			now = []slack.Block{section(text)}
		}
	}
	if all := slices.Concat(now, below); size(all) <= maxSize && len(all) <= maxBlocks {
		now, below = all, nil
	}
	out = append(out, post{blocks: now})
	if len(below) > 0 {
		out = append(out, post{blocks: below})
	}
	captioned(out, markdown)
	return out
}

// captioned gives messages the text that goes beside their blocks: as much as
// there is room for of what they begin with.
func captioned(all []post, markdown string) {
	texts := mrkdwn(markdown, maxCaption)
	for i := range all {
		all[i].text = texts[min(i, len(texts)-1)]
		if i == 0 {
			continue
		}
		if s, ok := all[i].blocks[0].(*slack.SectionBlock); ok {
			all[i].text = s.Text.Text
		}
	}
}

// section shows a text that is Slack's own notation already. What looks like an
// address or a name in it, but is not marked as such, stays text.
func section(text string) slack.Block {
	return slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, text, false, true), nil, nil)
}

// aside shows such a text in small print.
func aside(text string) slack.Block {
	return slack.NewContextBlock("", slack.NewTextBlockObject(slack.MarkdownType, text, false, true))
}

// words are a text without any notation.
func words(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, text, false, false)
}

// size of blocks as they are sent, in characters.
func size(blocks []slack.Block) int {
	raw, err := json.Marshal(slack.Blocks{BlockSet: blocks})
	if err != nil {
		return 0 // unreachable: they hold nothing that cannot be encoded
	}
	return length(string(raw))
}
