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

// posts are the messages that tell a text, with blocks below the end of it.
// Beside the blocks of each is as much of what they say as there is room for.
func posts(markdown string, below []slack.Block) []post {
	var out []post
	var now []slack.Block
	for _, text := range mrkdwn(markdown, maxSection) {
		if next := append(now, section(text)); size(next) <= maxSize && len(next) <= maxBlocks {
			now = next
			continue
		}
		out, now = append(out, captioned(now)), []slack.Block{section(text)}
	}
	last := len(now) - 1
	if all := slices.Concat(now, below); last > 0 && (size(all) > maxSize || len(all) > maxBlocks) {
		out, now = append(out, captioned(now[:last])), now[last:] // beside one section there is room
	}
	out = append(out, captioned(slices.Concat(now, below)))
	out[0].text = mrkdwn(markdown, maxCaption)[0]
	return out
}

// captioned is a message that begins with a section, and has its text.
func captioned(blocks []slack.Block) post {
	p := post{blocks: blocks}
	if s, ok := blocks[0].(*slack.SectionBlock); ok {
		p.text = s.Text.Text
	}
	return p
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
func size(blocks []slack.Block) int { return length(encoded(blocks)) }

// encoded are blocks as they are sent.
func encoded(blocks []slack.Block) string {
	raw, _ := json.Marshal(blocks) // they hold nothing that cannot be encoded
	return string(raw)
}
