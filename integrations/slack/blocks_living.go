package slack

import (
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"ship/bot"
	"ship/session"
)

// showing is what the living message needs to know besides the view.
type showing struct {
	// team that the thread is kept under: see blockID.
	team string
	now  time.Time
	// slow is how long a turn may run before it takes longer than expected;
	// zero: as long as it likes.
	slow time.Duration
	// asking is the question of ours that a request waits for.
	asking *session.Question
	// past: another turn has followed, so there is nothing to press any more.
	past bool
}

// living is the one message of a turn that changes with it. Equal views at the
// same time make equal messages. If there is no room for all of it, the list and
// the question give way.
func living(v session.View, s showing) post {
	p := post{text: mrkdwn(caption(v), maxCaption)[0]}
	for part := 1; part <= maxTodos; part *= 2 {
		if p.blocks = livingBlocks(v, s, part); size(p.blocks) <= maxSize {
			break
		}
	}
	return p
}

// caption is the state in a line, in Markdown.
func caption(v session.View) string {
	if unseen(v) {
		return noticed(v)
	}
	return bot.StatusLine(bot.Talking, v)
}

// unseen: nothing is known yet of what was asked for first.
func unseen(v session.View) bool { return v.Turn == 0 && v.Phase == session.PhasePreparing }

func noticed(v session.View) string { return "👀 " + bot.Seen(v, session.Instruct, true) }

// livingBlocks show what there is of a turn: all that is usual, or just a part.
func livingBlocks(v session.View, s showing, part int) []slack.Block {
	blocks := []slack.Block{section(mrkdwn(headline(v), maxSection)[0])}
	if list := checklist(v, maxTodos/part); list != "" {
		blocks = append(blocks, section(list))
	}
	blocks = append(blocks, questionBlocks(v, s, maxQuestion/part)...)
	if s.late(v) {
		blocks = append(blocks, aside("⏰ This is taking longer than expected. I keep at it; stop me if it is no longer worth it."))
	}
	if facts := strings.Join(s.facts(v), " · "); facts != "" {
		blocks = append(blocks, aside(mrkdwn(facts, maxSection)[0]))
	}
	if buttons := s.buttons(v); len(buttons) > 0 {
		blocks = append(blocks, slack.NewActionBlock(blockID(s.team, ofTurn(nameDo, v.Turn)), buttons...))
	}
	return blocks
}

// headline is the state in a few words, and what is done just now in a second
// line, in Markdown.
func headline(v session.View) string {
	switch {
	case unseen(v):
		return noticed(v)
	case v.Phase != session.PhaseWorking:
		first, _, _ := strings.Cut(bot.Markdown(v), "\n")
		return strings.TrimSpace(first)
	}
	head := "**🚢 Working**"
	if n, step := current(v.Todos); n > 0 {
		head = fmt.Sprintf("**🚢 Working on step %d of %d:** %s", n, len(v.Todos), bot.Phrase(step, maxTodo))
	} else if planning(v) {
		head = "**🧭 Planning**"
	}
	return head + "\n\n" + deed(v)
}

// planning: the agent has neither done anything yet nor said what it is going to.
func planning(v session.View) bool { return len(v.Todos) == 0 && len(v.Steps) == 0 }

// current is the step of the agent's list that is worked on, counted from one;
// 0: none is.
func current(todos []session.Todo) (n int, text string) {
	for i, t := range todos {
		if t.Status == "in_progress" {
			return i + 1, t.Text
		}
	}
	return 0, ""
}

// deed is the newest step, as bot has it. What the step itself is about is a
// command or a file, and shown as code.
func deed(v session.View) string {
	action, parameter, result := bot.Deed(v)
	if n := len(v.Steps); n > 0 && strings.Contains(v.Steps[n-1], parameter) {
		parameter = quoted(parameter, maxDeed)
	} else {
		parameter = shortened(parameter, maxDeed)
	}
	if result != "" {
		result = " (" + result + ")"
	}
	return action + " " + parameter + result
}

const (
	// maxTodos of the agent's list are shown at once, and maxTodo of each, in
	// bytes.
	maxTodos = 20
	maxTodo  = 120
	// maxDeed of what is done just now is shown, in characters.
	maxDeed = 120
	// maxQuestion of a question is shown, in bytes.
	maxQuestion = 1 << 10
)

// checklist is the agent's list as Slack has it: most entries at most, those
// around the one that is worked on. Each is converted by itself, so that what is
// open in one ends there.
func checklist(v session.View, most int) string {
	from, to := around(v.Todos, most)
	var lines []string
	if from > 0 {
		lines = append(lines, fmt.Sprintf("_%d before_", from))
	}
	room := maxSection - 2*len("_and 1000000 more_")
	for _, t := range v.Todos[from:to] {
		line := mrkdwn(entry(t, v.Phase), minRoom)[0]
		if room -= length(line) + 1; room < 0 {
			break
		}
		lines = append(lines, line)
		from++
	}
	if more := len(v.Todos) - from; more > 0 && len(lines) > 0 {
		lines = append(lines, fmt.Sprintf("_and %d more_", more))
	}
	return strings.Join(lines, "\n")
}

// around is the part of the list to be shown, which begins a few entries before
// the one that is worked on or the first that is open.
func around(todos []session.Todo, most int) (from, to int) {
	if len(todos) <= most {
		return 0, len(todos)
	}
	at := len(todos)
	if n, _ := current(todos); n > 0 {
		at = n - 1
	} else {
		for i, t := range todos {
			if t.Status != "completed" && t.Status != "cancelled" {
				at = i
				break
			}
		}
	}
	from = min(max(0, at-most/4), len(todos)-most)
	return from, from + most
}

// entry of the list. In a turn that has ended nothing goes on.
func entry(t session.Todo, phase session.Phase) string {
	text := bot.Phrase(t.Text, maxTodo)
	switch {
	case t.Status == "completed":
		return "☑ " + text
	case t.Status == "cancelled":
		return "☐ ~~" + text + "~~"
	case t.Status == "in_progress" && phase != session.PhaseEnded:
		return "▸ **" + text + "**"
	}
	return "☐ " + text
}

// questionBlocks show the question that is open, most bytes of it. What can be
// chosen stands in the message that asks, and nowhere else.
func questionBlocks(v session.View, s showing, most int) []slack.Block {
	q := s.asking
	if q == nil {
		q = agentAsks(v)
	}
	if q == nil {
		return nil
	}
	text := bot.Cut(bot.Neutralise(strings.TrimSpace(bot.Spoken(q.Text))), most)
	return []slack.Block{section(mrkdwn(text, maxSection)[0])}
}

// agentAsks is the question that the turn ended with.
func agentAsks(v session.View) *session.Question {
	if v.Phase != session.PhaseEnded {
		return nil
	}
	return v.Outcome.Asks()
}
