package slack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	api "github.com/slack-go/slack"

	"ship/bot"
	"ship/integrations/slack/slacktest"
	"ship/session"
)

// page is what people read of what ship says in Slack.
var page = filepath.Join("..", "..", "docs", "slack-messages.md")

const pageHead = `# What ship says in Slack

Each message below is rendered by the code that sends it, posted to the stand-in
for Slack and read back as people see it, without bold and the like. Lines in
parentheses are small print, and what is in brackets can be pressed.
` + "`go test ./integrations/slack -run TestPage -update`" + ` writes this page anew; a test fails
when it is not true any more.

There is one living message per turn, which changes while ship works, and a new
message for each question and for the end. A request is acknowledged by 👀 on the
message that made it.
`

// exhibit is a part of the page: a state with the messages that show it.
type exhibit struct {
	title, about string
	messages     []post
}

// plainly is a scene in words that say something to whoever reads the page.
// Those of the scenes are there to do harm.
func plainly(s scene) scene {
	v := &s.view
	if len(v.Todos) == 60 {
		v.Todos = sixty("Move the tests of package")
	} else if len(v.Todos) > 0 {
		v.Todos = []session.Todo{
			{Text: "Find where the redirect is made", Status: "completed"}, {Text: "Keep `next` through the form", Status: "in_progress"},
			{Text: "Add a test", Status: "pending"}, {Text: "Rename the handler", Status: "cancelled"},
		}
	}
	if v.Outcome == nil {
		return s
	}
	o := *v.Outcome
	if o.Answer == longAnswer {
		o.Answer = "The redirect dropped `next`, because the form lost it.\n\n## What changed\n\n1. The **form** keeps it.\n2. So does the cookie.\n\n" +
			"| File | Lines |\n|---|---|\n| `login.go` | 12 |\n| `login_test.go` | 3 |\n\n```go\nfunc login(next string) {\n```\n"
	}
	if o.Question != nil && len(o.Question.Choices) == 3 {
		o.Question = &session.Question{Text: "Which one is it to be?", Choices: []session.Choice{{Value: "In the form"}, {Value: "In a cookie"}, {Value: "Neither"}}}
	} else if o.Question != nil && len(o.Question.Choices) > 3 {
		o.Question = &session.Question{Text: "Which release is it for?"}
		for n := range 12 {
			o.Question.Choices = append(o.Question.Choices, session.Choice{Value: fmt.Sprintf("v1.%d", n)})
		}
	}
	v.Outcome = &o
	return s
}

// exhibits are in the order in which people get to see them.
func exhibits() []exhibit {
	all := scenes()
	for name, s := range all {
		all[name] = plainly(s)
	}
	live := func(title, about, scene string) exhibit {
		return exhibit{title, about, []post{living(all[scene].view, all[scene].showing)}}
	}
	end := func(title, about, scene string) exhibit {
		return exhibit{title, about, answered(team, ended(all[scene].view))}
	}
	both := func(title, about, scene string) exhibit {
		e := live(title, about, scene)
		e.messages = append(e.messages, answered(team, ended(all[scene].view))...)
		return e
	}
	return slices.Concat(beginnings(live, all["asking-where"].asking), middles(live), []exhibit{
		both("Done", "With a draft pull request: the living message, then the answer.", "completed"),
		live("Done, and ready for review", "", "completed-ready"),
		live("Done, and followed by another turn", "Only the link is left to be pressed.", "completed-past"),
		both("Answered", "Nothing was changed.", "answered"),
		both("A question with buttons", "The turn ends with it, and the answer starts the next.", "asking"),
		end("A question with many answers", "One of them is selected from a list.", "asking-of-many"),
		end("A question without answers to choose from", "", "asking-freely"),
		both("Stopped", "", "stopped"),
		both("Stuck", "", "stuck"),
		both("Failed", "", "crashed"),
		both("Out of time", "", "timed-out"),
		both("Out of money", "", "spent"),
		both("The model was not to be reached", "", "unreachable"),
		{"A long answer", "10,000 characters make as many messages as it takes.", answered(team, ended(long()))},
	})
}

type shows func(title, about, scene string) exhibit

func beginnings(live shows, where *session.Question) []exhibit {
	return []exhibit{
		live("Seen", "At once, before anything is looked at.", "new"),
		{"Not begun", "Why is said in a message of its own.", told(notBegun)},
		live("Which repository?", "The living message, while a question waits for an answer.", "asking-where"),
		{"Which repository, asked", "The question is a message of its own.", posed(blockID(team, nameRepo), bot.Spoken(where.Text), where.Choices)},
		live("Queued", "At place 3 of the queue for a sandbox.", "queued-third"),
		live("Preparing", "", "preparing"),
	}
}

func middles(live shows) []exhibit {
	return []exhibit{
		live("Planning", "The agent thinks, and has done nothing yet.", "planning"),
		live("Working", "On step 2 of 4.", "working"),
		live("Working, with a pull request", "As from the second turn on.", "working-on-a-pull-request"),
		live("Working on 60 steps", "Those around the one that is worked on are shown.", "working-on-sixty"),
		live("Late", "It takes longer than expected.", "working-slowly"),
		live("Stopping", "", "stopping"),
		live("Publishing", "", "publishing"),
	}
}

// long is the end of a turn with much to say, in code, which takes more room
// than words.
func long() session.View {
	var text strings.Builder
	text.WriteString("This is how each of them reads now:\n\n```go\n")
	for n := 1; text.Len() < 10_000; n++ {
		fmt.Fprintf(&text, "if next != \"\" && len(next) < %d { // page %d\n", 100+n, n)
	}
	text.WriteString("```\n")
	return after(session.Completed, "", text.String())
}

// peruser posts messages and reads them as people do.
func peruser(t *testing.T) func(post) string {
	t.Helper()
	s, err := slacktest.New(slacktest.Options{Limits: slacktest.NoLimits()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	channel := s.CreateChannel(slacktest.Channel{Name: "eng", Members: []string{"ada"}})
	client := api.New(s.BotToken(), api.OptionAPIURL(s.APIURL()))
	return func(p post) string {
		t.Helper()
		_, ts, err := client.PostMessageContext(t.Context(), channel, api.MsgOptionText(p.text, false), api.MsgOptionBlocks(p.blocks...))
		if err != nil {
			t.Fatal(err)
		}
		return s.Message(channel, ts).Plain
	}
}

// Of a message of more than maxLines the page shows the first and the last.
const (
	maxLines = 40
	endLines = 8
)

// fenced is a message for the page: a fence that no fence in it ends.
func fenced(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	if n := len(lines); n > maxLines {
		left := fmt.Sprintf("[… %d lines more]", n-2*endLines)
		lines = slices.Concat(lines[:endLines], []string{left}, lines[n-endLines:])
	}
	return "````text\n" + strings.Join(lines, "\n") + "\n````\n"
}

// TestPage: the page shows what is sent.
func TestPage(t *testing.T) {
	t.Parallel()
	read := peruser(t)
	var b strings.Builder
	b.WriteString(pageHead)
	for _, e := range exhibits() {
		fmt.Fprintf(&b, "\n## %s\n\n", e.title)
		if e.about != "" {
			b.WriteString(e.about + "\n\n")
		}
		for i, p := range e.messages {
			if i > 0 {
				b.WriteString("\nand then\n\n")
			}
			b.WriteString(fenced(read(p)))
		}
	}
	if *rewrite {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%s is missing: go test -run TestPage -update writes it", page)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("the page is not true any more, go test -run TestPage -update writes it anew (-page +sent):\n%s", diff)
	}
}
