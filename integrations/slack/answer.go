package slack

import (
	"context"
	"slices"
	"strings"

	api "github.com/slack-go/slack"

	"ship/bot"
)

// maxMentions of people are told of an end by name.
const maxMentions = 3

// answer tells the end of a turn, in as many messages as it takes. Performed
// twice: see postAll.
func (w *work) answer(ctx context.Context) error {
	s := w.job.State
	if s.Turn == nil {
		return nil // there is nothing to tell of
	}
	all := told(bot.AnswerElsewhere(s))
	if slices.ContainsFunc(s.Turn.Requests, w.here) {
		all = w.mentioning(answered(w.thread.team, s), w.refs()...)
	}
	_, err := w.postAll(ctx, Settling, w.effect.ID, all)
	return err
}

// refs are where in this thread the turn was asked for.
func (w *work) refs() []string {
	var out []string
	for _, r := range w.job.State.Turn.Requests {
		if w.here(r) {
			out = append(out, r.Ref)
		}
	}
	return out
}

// mentioning lets messages begin with a mention of whoever made these requests,
// so that Slack notifies them. Who is alone with us hears of everything anyway.
func (w *work) mentioning(all []post, refs ...string) []post {
	if strings.HasPrefix(w.thread.channel, "D") {
		return all
	}
	var people []string
	for _, one := range refs {
		asked, err := parseRef(one)
		mention := "<@" + asked.user + ">"
		if err == nil && asked.user != "" && len(people) < maxMentions && !slices.Contains(people, mention) {
			people = append(people, mention)
		}
	}
	if len(people) == 0 {
		return all
	}
	all = slices.Clone(all)
	all[0] = all[0].after(strings.Join(people, " "))
	return all
}

// after is a message that begins with a line in Slack's notation, which is short.
func (p post) after(line string) post {
	if text := line + " " + p.text; length(text) <= maxCaption {
		p.text = text // else it is in the blocks only
	}
	first, ok := p.blocks[0].(*api.SectionBlock)
	if text := line + "\n"; ok && length(text+first.Text.Text) <= maxSection {
		p.blocks = slices.Concat([]api.Block{section(text + first.Text.Text)}, p.blocks[1:])
		return p
	}
	if len(p.blocks) < maxBlocks {
		p.blocks = slices.Concat([]api.Block{section(line)}, p.blocks)
	}
	return p
}
