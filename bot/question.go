package bot

import (
	"cmp"
	"fmt"
	"strings"

	"ship/session"
)

const (
	// maxQuestion bounds a question in bytes, maxChoice what is offered.
	maxQuestion = 1 << 10
	maxChoice   = 200
	maxChoices  = 20
)

// asking is the question that the last turn ended with.
func asking(v session.View) *session.Question {
	if v.Phase != session.PhaseEnded {
		return nil
	}
	return v.Outcome.Asks()
}

// paused: the question is whether to go on past a budget.
func paused(v session.View) bool { return asking(v) != nil && ending(v) == session.Spent }

// openQuestion shows what the agent needs to know, and how to say it.
func openQuestion(v session.View) string {
	q := asking(v)
	if q == nil {
		return ""
	}
	if paused(v) {
		return "**" + Neutralise(q.Text) + "**\n\n" + choices(q.Choices) + "\n\n" + answerWith(Commenting, true)
	}
	return "**I need to know:**\n\n" + posed(*q) + "\n\n" + answerWith(Commenting, len(q.Choices) > 0)
}

// posed is a question as a quotation, with its choices below.
func posed(q session.Question) string {
	text := quote(Cut(Neutralise(strings.TrimSpace(q.Text)), maxQuestion))
	if offered := choices(q.Choices); offered != "" {
		text += "\n\n" + offered
	}
	return text
}

// Choices lists what is offered, for where nothing can be clicked on.
func Choices(all []session.Choice) string { return choices(all) }

// choices lists what is offered, as it may be written.
func choices(all []session.Choice) string {
	var lines []string
	for _, c := range all[:min(len(all), maxChoices)] {
		line := "- " + code(clip(cmp.Or(c.Value, c.Label), maxChoice))
		if c.Label != "" && c.Label != c.Value && c.Value != "" {
			line += ": " + phrase(c.Label, maxChoice)
		}
		lines = append(lines, line)
	}
	if more := len(all) - maxChoices; more > 0 {
		lines = append(lines, fmt.Sprintf("- and %d more", more))
	}
	return strings.Join(lines, "\n")
}
