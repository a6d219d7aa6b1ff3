package agent

import (
	"fmt"
	"strings"
	"time"
)

// say is one plain sentence for people: what happened, and what to do next.
func (r Run) say(v verdict) string {
	why := oneLine(scrub(v.why), maxMessage)
	switch v.ending {
	case Completed:
		return ""
	case Stopped:
		return "Stopped; what was done so far is kept. Say what to do next to go on."
	case Stuck:
		return fmt.Sprintf("The agent did the same thing over and over (%s) and was stopped; "+
			"its work is kept. Say what it should do differently.", why)
	case TimedOut:
		return "The time for one turn was over and the agent was stopped; its work is kept. " +
			"Ask it to go on, or give it a smaller task."
	case Stalled:
		return fmt.Sprintf("Nothing moved for %s, so the agent was stopped; its work is kept. "+
			"Ask it to go on.", why)
	case Spent:
		return spent(v.why)
	case Refused:
		return r.refused(why)
	case Unreachable:
		return fmt.Sprintf("The model %s could not be reached%s; the work so far is kept. "+
			"Ask again later, or name another model.", r.Prompt.Model.Name, because(why))
	}
	return fmt.Sprintf("The agent was lost in the middle of the work%s. Ask it to go on.", because(why))
}

func spent(code string) string {
	what := "The money"
	if code == CodeCallsSpent {
		what = "The number of model calls"
	}
	return what + " for one turn is used up and the agent was stopped; its work is kept. " +
		"Ask it to go on, or raise the budget."
}

func (r Run) refused(why string) string {
	if why == "" {
		return fmt.Sprintf("The agent did not begin with the model %s. "+
			"Check that the model is set up, or name another.", r.Prompt.Model.Name)
	}
	return fmt.Sprintf("The model %s refused the request: %s. Change the request, or name another model.",
		r.Prompt.Model.Name, strings.TrimRight(why, ". "))
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return " (" + strings.TrimRight(why, ". ") + ")"
}

// plain says a span in words: "5 minutes".
func plain(d time.Duration) string {
	n, unit := int(d/time.Second), "second"
	if d >= 2*time.Minute {
		n, unit = int(d/time.Minute), "minute"
	}
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprint(n, " ", unit)
}
