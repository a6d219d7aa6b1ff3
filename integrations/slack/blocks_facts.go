package slack

import (
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"ship/bot"
	"ship/session"
)

// running is how long the turn has been, or was, at it.
func (s showing) running(v session.View) time.Duration {
	if v.Phase == session.PhaseEnded || v.Started.IsZero() {
		return v.Took
	}
	return max(0, s.now.Sub(v.Started))
}

// late: a turn that is at work takes longer than expected.
func (s showing) late(v session.View) bool {
	switch v.Phase {
	case session.PhasePreparing, session.PhaseWorking, session.PhasePublishing:
		return s.slow > 0 && s.running(v) > s.slow
	}
	return false
}

// facts are where the work is, and what it took so far, in Markdown.
func (s showing) facts(v session.View) []string {
	var out []string
	if v.Repo != "" {
		out = append(out, quoted(v.Repo, maxName))
	}
	if v.PR != nil {
		out = append(out, fmt.Sprintf("[#%d](<%s>)", v.PR.Number, strings.NewReplacer("<", "", ">", "", "\n", "").Replace(v.PR.URL)))
	}
	if look := bot.Preview(v); look != "" {
		out = append(out, look)
	}
	if v.Phase == session.PhaseEnded && v.Changed && v.Files > 0 {
		out = append(out, bot.Count(v.Files, "file")+" changed")
	}
	v.Took = s.running(v).Truncate(time.Second)
	return append(out, bot.Facts(v)...)
}

// maxName of a repository or a person is shown, in characters.
const maxName = 60

// quoted is one line as code in Markdown, most characters of it.
func quoted(name string, most int) string {
	name = strings.Join(strings.Fields(strings.ReplaceAll(visible(name), "`", tick)), " ")
	return "`" + shortened(name, most) + "`"
}

// buttons are what can be done now.
func (s showing) buttons(v session.View) []slack.BlockElement {
	var out []slack.BlockElement
	over := v.Phase == session.PhaseEnded && !s.past
	switch {
	case s.past:
	case stoppable(v):
		stop := slack.NewButtonBlockElement(actionStop, "stop", words("Stop"))
		out = append(out, stop.WithStyle(slack.StyleDanger))
	case over && (v.Outcome == nil || v.Outcome.Ending != session.Completed) && agentAsks(v) == nil:
		out = append(out, slack.NewButtonBlockElement(actionRetry, "retry", words("Retry")))
	}
	if v.PR == nil {
		return out
	}
	if open := opening(v.PR); open != nil {
		out = append(out, open)
	}
	if over && v.PR.Draft && v.Outcome != nil && v.Outcome.Ending == session.Completed && v.Outcome.Question == nil {
		ready := slack.NewButtonBlockElement(actionReady, "ready", words("Mark ready"))
		out = append(out, ready.WithStyle(slack.StylePrimary))
	}
	return out
}

// stoppable: there is work that stop ends, or a request that waits for an answer.
// Before the first turn there is neither.
func stoppable(v session.View) bool {
	switch v.Phase {
	case session.PhaseAsking:
		return true
	case session.PhaseQueued, session.PhasePreparing, session.PhaseWorking:
		return v.Turn > 0
	}
	return false
}

// opening is the button that leads to a pull request; nil for an address that
// is none.
func opening(pr *session.PullRequest) slack.BlockElement {
	url := address(pr.URL)
	if url == "" {
		return nil
	}
	open := slack.NewButtonBlockElement(actionLink+".pull", "", words("Open PR"))
	open.URL = url
	return open
}

// answered is the end of a turn as messages, for whoever asked for it there. A
// question has what can be chosen from below it, and other ends the way to the
// work.
func answered(team string, s session.State) []post {
	v := session.ViewOf(s)
	if q := agentAsks(v); q != nil {
		return posed(blockID(team, ofTurn(nameChoose, v.Turn)), bot.AgentAsks(s), q.Choices)
	}
	var below []slack.Block
	if v.PR != nil {
		if open := opening(v.PR); open != nil {
			below = append(below, slack.NewActionBlock(blockID(team, nameOpen), open))
		}
	}
	return posts(bot.Answer(s), below)
}
