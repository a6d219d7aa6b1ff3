package agent

import (
	"fmt"
	"time"
)

const maxSteps = 8

// progress renders a snapshot for people.
func progress(s Snapshot, usage Usage, active time.Time) Progress {
	return Progress{
		Doing: doing(s), Todos: s.Todos, Steps: steps(s.Calls), Usage: usage, Active: active,
	}
}

// doing is what happens now, in a few words.
func doing(s Snapshot) string {
	switch {
	case s.Status.Phase == Retrying:
		return fmt.Sprintf("waiting for the model (attempt %d)", s.Status.Attempt+1)
	case s.Finished:
		return "finished"
	case runs(s.Calls):
		return stepText(s.Calls[len(s.Calls)-1])
	case s.Started:
		return "thinking"
	}
	return "starting"
}

// steps are the last calls, without those that only keep the agent's list.
func steps(calls []Call) []string {
	var out []string
	for i := len(calls) - 1; i >= 0 && len(out) < maxSteps; i-- {
		if calls[i].Tool != "todowrite" && calls[i].Tool != "todoread" {
			out = append([]string{stepText(calls[i])}, out...)
		}
	}
	return out
}

func stepText(c Call) string {
	text := c.Tool
	if c.Title != "" {
		text += ": " + c.Title
	}
	text = oneLine(text, maxStep)
	if c.Status == CallFailed {
		text += " (failed)"
	}
	return text
}

// redacted applies f to every text that people see.
func (p Progress) redacted(f func(string) string) Progress {
	p.Doing = f(p.Doing)
	p.Steps = mapped(p.Steps, f)
	p.Todos = mapped(p.Todos, func(t Todo) Todo { return Todo{Text: f(t.Text), Status: t.Status} })
	return p
}

// redacted leaves out what was printed: that may have been cut anywhere, so it
// takes somebody who has seen it from its beginning.
func (c Call) redacted(f func(string) string) Call {
	c.Title, c.Command, c.Error, c.Output = f(c.Title), f(c.Command), f(c.Error), ""
	return c
}

func mapped[T any](in []T, f func(T) T) []T {
	out := make([]T, 0, len(in))
	for _, v := range in {
		out = append(out, f(v))
	}
	return out
}
