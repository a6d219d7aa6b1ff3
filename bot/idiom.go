package bot

import (
	"fmt"
	"strings"

	"ship/session"
)

// Idiom is how people speak with ship on a platform.
type Idiom int

const (
	// Commenting: a command is a line of a comment that begins with /ship.
	Commenting Idiom = iota
	// Talking: what is said in the thread is for ship, and /ship may be left out.
	Talking
)

// either picks the words for an idiom.
func (i Idiom) either(commenting, talking string) string {
	if i == Talking {
		return talking
	}
	return commenting
}

// nextStep says what a person can do now.
func nextStep(i Idiom, v session.View) string {
	switch ending(v) {
	case session.Completed:
		if q := asking(v); q != nil {
			return answerWith(i, len(q.Choices) > 0)
		}
		return afterSuccess(i, v)
	case session.Stopped:
		return i.either("Comment `/ship retry` to go on, or `/ship` and what to do instead.",
			"Reply `retry` to go on, or with what to do instead.")
	case session.Stuck:
		return i.either("Comment `/ship` and what to try differently, or `/ship retry` to let it try again.",
			"Reply with what to try differently, or `retry` to let it try again.")
	case session.TimedOut:
		return i.either("Comment `/ship retry` to go on from here, or `/ship` and a smaller task.",
			"Reply `retry` to go on from here, or with a smaller task.")
	case session.Stalled:
		return i.either("Comment `/ship retry` to go on from here.", "Reply `retry` to go on from here.")
	case session.Spent:
		switch {
		case paused(v):
			return answerWith(i, true)
		case v.Outcome.Limit == session.PersonLimit, v.Outcome.Limit == session.DayLimit:
			return i.either("Comment `/ship retry` after 00:00 UTC to go on.", "Reply `retry` after 00:00 UTC to go on.")
		}
		return fmt.Sprintf(i.either("Comment `/ship retry` to go on with a fresh budget, or `/ship budget %d` before that to allow more.",
			"Reply `retry` to go on with a fresh budget, or `budget %d` before that to allow more."), moreThan(v.Usage.USD))
	case session.Refused:
		return i.either("Comment `/ship model NAME` to take another model, then `/ship retry`; or put the request differently.",
			"Reply `model NAME` to take another model, then `retry`; or put the request differently.")
	case session.Unreachable:
		return i.either("Comment `/ship retry` in a few minutes, or `/ship model NAME` to take another model.",
			"Reply `retry` in a few minutes, or `model NAME` to take another model.")
	}
	return i.either("Comment `/ship retry`. If it happens again, whoever runs ship finds the cause in the log under session "+code(string(v.Session))+".",
		"Reply `retry` to go on. If it happens again, whoever runs ship finds the cause in the log.")
}

func afterSuccess(i Idiom, v session.View) string {
	switch {
	case v.Changed && v.PR != nil && v.PR.Draft:
		return i.either("Have a look. Comment `/ship` and what to change, or `/ship ready` to ask for review.",
			"Have a look. Reply with what to change, or `ready` to ask for review.")
	case v.Changed:
		return i.either("Have a look, and comment `/ship` and what to change if something is missing.",
			"Have a look, and reply with what to change if something is missing.")
	}
	return i.either("Comment `/ship` and what you expected if something is missing.",
		"Reply if you want to know more, or with what to change.")
}

// answerWith says how to answer a question.
func answerWith(i Idiom, choices bool) string {
	if choices {
		return i.either("Answer with `/ship …`: one of the choices, or your own words.", "Reply with one of the choices, or in your own words.")
	}
	return i.either("Answer with `/ship …` and your own words.", "Reply in your own words.")
}

// order is what people can write, and what follows.
type order struct{ write, follows string }

// orders are all there are. A bare /ship only a comment can hold.
func orders(i Idiom) []order {
	all := []order{{"fix the flaky login test", "do that, in a sandbox, and open a draft pull request"}}
	if i == Commenting {
		all = append(all, order{"", "do what this issue is about; on a pull request, get it into shape and mark it ready"})
	} else {
		all = append(all, order{"why is the login test flaky?", "look it up in the code and answer"})
	}
	return append(all,
		order{"stop", "stop; the work so far is kept"},
		order{"retry", "do the last request again, from where it ended"},
		order{"status", "say what I am doing"},
		order{"ready", "mark the pull request ready for review"},
		order{"model NAME", "use another model from the next turn on"},
		order{"budget 10", "spend up to $10 on each coming turn"},
		order{"repo OWNER/NAME", "work in that repository"},
		order{"help", "show this"},
	)
}

// HelpText explains the commands, in Markdown.
func HelpText(i Idiom) string {
	var b strings.Builder
	b.WriteString(i.either("Start a line of a comment with `/ship` and I get to work:", "Tell me what to do, and I get to work:"))
	b.WriteString("\n\n| Write | and I |\n|---|---|\n")
	for _, o := range orders(i) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", i.either(strings.TrimSpace("/ship "+o.write), o.write), o.follows)
	}
	b.WriteString("\nAn instruction may run over several lines; put `[repo=OWNER/NAME branch=NAME model=NAME]` at either end of its first line to say where or with what. ")
	b.WriteString(i.either("Quotations and code do not start a command.", "A word of this table is a command when it stands alone."))
	return b.String()
}
