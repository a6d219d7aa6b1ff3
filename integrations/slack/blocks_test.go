package slack

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"ship/integrations/slack/slacktest"
	"ship/integrations/slack/slacktest/schema"
	"ship/session"
)

var rewrite = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with the file of that name under testdata/blocks.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "blocks", name+".txt")
	if *rewrite {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not as it was (go test -update writes it anew) (-want +got):\n%s", path, diff)
	}
}

// displayed is a message as its parts are sent, legibly.
func displayed(p post) string {
	lines := []string{"text: " + p.text, ""}
	for _, b := range p.blocks {
		switch b := b.(type) {
		case *slack.SectionBlock:
			lines = append(lines, b.Text.Text, "")
		case *slack.ContextBlock:
			lines = append(lines, "("+b.ContextElements.Elements[0].(*slack.TextBlockObject).Text+")", "")
		case *slack.ActionBlock:
			lines = append(lines, b.BlockID+":")
			for _, e := range b.Elements.ElementSet {
				lines = append(lines, pressable(e)...)
			}
		}
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

func pressable(e slack.BlockElement) []string {
	switch e := e.(type) {
	case *slack.ButtonBlockElement:
		return []string{strings.TrimRight(fmt.Sprintf("  [%s] %s %q %s%s", e.Text.Text, e.ActionID, e.Value, e.Style, e.URL), " ")}
	case *slack.SelectBlockElement:
		out := []string{fmt.Sprintf("  [%s] %s", e.Placeholder.Text, e.ActionID)}
		for _, o := range e.Options {
			out = append(out, fmt.Sprintf("    [%s] %q", o.Text.Text, o.Value))
		}
		return out
	}
	return []string{fmt.Sprintf("  %T", e)}
}

func allShown(all []post) string {
	var out []string
	for _, p := range all {
		out = append(out, displayed(p))
	}
	return strings.Join(out, "\n--- and then\n\n")
}

// slacksOwn is Slack's own schema, read once for all tests.
var slacksOwn = sync.OnceValues(func() (*schema.Validator, error) {
	return schema.Load("../../../shared/data/slack-blockkit.schema.json")
})

// taker takes messages as Slack would: all that it takes is within the limits.
func taker(t *testing.T) func(...post) {
	t.Helper()
	o := slacktest.Options{Limits: slacktest.NoLimits()}
	switch v, err := slacksOwn(); {
	case err == nil:
		o.Validator = v
	case !errors.Is(err, fs.ErrNotExist):
		t.Fatal(err)
	}
	s, err := slacktest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	channel := s.CreateChannel(slacktest.Channel{Name: "eng", Members: []string{"ada"}})
	client := slack.New(s.BotToken(), slack.OptionAPIURL(s.APIURL()))
	return func(all ...post) {
		t.Helper()
		for _, p := range all {
			if strings.TrimSpace(p.text) == "" || len(p.blocks) == 0 {
				t.Errorf("a message without a text or blocks: %+v", p)
			}
			_, ts, err := client.PostMessageContext(t.Context(), channel, slack.MsgOptionText(p.text, false), slack.MsgOptionBlocks(p.blocks...))
			if err != nil {
				t.Fatalf("post: %v: %v\n%s", err, s.Violations(), displayed(p))
			}
			if _, _, _, err := client.UpdateMessageContext(t.Context(), channel, ts, slack.MsgOptionText(p.text, false), slack.MsgOptionBlocks(p.blocks...)); err != nil {
				t.Fatalf("update: %v: %v\n%s", err, s.Violations(), displayed(p))
			}
		}
	}
}

var turnStart = time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)

// during is a view in the middle of a turn.
func during(p session.Phase) session.View {
	return session.View{
		Session: "sl.T.C.1", Title: "Login redirects to the wrong page", Phase: p, Turn: 2, By: []string{"U1", "U2"},
		Model: "anthropic/claude-sonnet-4-5", Doing: "bash: go test ./login", Usage: session.Usage{Calls: 12, Input: 91_000, Output: 4_200, USD: 0.31},
		Todos: []session.Todo{
			{Text: "Find where the redirect is made", Status: "completed"},
			{Text: "Keep `next` through the `<form>`", Status: "in_progress"},
			{Text: "Add a test", Status: "pending"},
			{Text: "Rename the handler", Status: "cancelled"},
		},
		Steps: []string{"read: login/handler.go", "edit: login/handler.go", "bash: go test ./login (failed)"},
		Repo:  "octo/hello", Base: "main", Branch: "ship/7-login", Head: "0123456789abcdef", Started: turnStart,
	}
}

func draftPull() *session.PullRequest {
	return &session.PullRequest{Number: 8, URL: "https://github.com/octo/hello/pull/8", Draft: true}
}

func after(e session.Ending, say, answer string) session.View {
	v := during(session.PhaseEnded)
	v.Took = 12*time.Minute + 20*time.Second
	v.Changed, v.Files, v.PR = true, 3, draftPull()
	v.Outcome = &session.Outcome{Ending: e, Say: say, Answer: answer, Usage: v.Usage}
	return v
}

const longAnswer = "The redirect dropped `next`, because `Form<T>` lost it. Fixes #7, says @octocat and <@U123>, <!here>.\n\n" +
	"## What changed\n\n1. The **form** keeps it\n2. So does the _cookie_\n   - for a day\n\n" +
	"| File | Lines |\n|---|---|\n| `login.go` | 12 |\n| `login_test.go` | 3 |\n\n" +
	"```go\nfunc login() { /* @decorated <b> & more */ }\n```\n\n> as it was *meant*\n\n- [x] tests pass\n"

// scene is a view with what else its message needs to know.
type scene struct {
	view session.View
	showing
}

// scenes are every phase and every ending, and the corners between them.
func scenes() map[string]scene {
	views := map[string]session.View{
		"queued": during(session.PhaseQueued), "queued-third": during(session.PhaseQueued), "preparing": during(session.PhasePreparing),
		"planning": during(session.PhaseWorking), "working": during(session.PhaseWorking), "working-slowly": during(session.PhaseWorking),
		"working-on-sixty": during(session.PhaseWorking), "working-on-a-pull-request": during(session.PhaseWorking),
		"stopping": during(session.PhaseStopping), "publishing": during(session.PhasePublishing),
		"new":             {Session: "sl.T.C.1", Phase: session.PhasePreparing, Repo: "octo/hello"},
		"completed":       after(session.Completed, "", longAnswer),
		"completed-ready": after(session.Completed, "", "All of it is done."),
		"completed-past":  after(session.Completed, "", "All of it is done."),
		"answered":        after(session.Completed, "", "It is in `login/handler.go`, line 12."),
		"pushed":          after(session.Completed, "", "Pushed."),
		"stopped":         after(session.Stopped, "Stopped by U1. `/ship retry` starts it again.", "I was about to add a test."),
		"stuck":           after(session.Stuck, "The agent did the same thing over and over (bash: go test) and was stopped; its work is kept.", ""),
		"timed-out":       after(session.TimedOut, "The time for one turn was over and the agent was stopped; its work is kept.", ""),
		"stalled":         after(session.Stalled, "Nothing moved for 5 minutes, so the agent was stopped; its work is kept.", ""),
		"spent":           after(session.Spent, "The money for one turn is used up and the agent was stopped; its work is kept.", ""),
		"paused":          after(session.Spent, "The $5 that this turn may cost are used up. The work so far is kept.", ""),
		"refused":         after(session.Refused, "The model claude refused the request: <img src=x> too long.", ""),
		"unreachable":     after(session.Unreachable, "The model claude could not be reached (503).", ""),
		"crashed":         after(session.Crashed, "Something failed on my side. `/ship retry` tries again.", ""),
		"crashed-unsaid":  after(session.Crashed, "", ""),
		"asking":          after(session.Completed, "", "The redirect can be kept in two ways."),
		"asking-of-many":  after(session.Completed, "", ""),
		"asking-freely":   after(session.Completed, "", ""),
		"asking-where":    {Session: "sl.T.C.1", Phase: session.PhaseAsking},
	}
	set := func(name string, change func(*session.View)) {
		v := views[name]
		change(&v)
		views[name] = v
	}
	set("queued", func(v *session.View) { v.Todos, v.Steps, v.Doing = nil, nil, "" })
	set("queued-third", func(v *session.View) { v.Place = 3; v.Todos, v.Steps = nil, nil })
	set("planning", func(v *session.View) { v.Todos, v.Steps, v.Doing = nil, nil, "thinking" })
	set("working-on-sixty", func(v *session.View) { v.Todos = sixty("Look at what <!channel> does to *file*") })
	set("working-on-a-pull-request", func(v *session.View) { v.PR = draftPull() })
	set("completed-ready", func(v *session.View) { v.PR.Draft = false })
	set("answered", func(v *session.View) { v.Changed, v.Files, v.PR, v.Todos, v.Steps = false, 0, nil, nil, nil })
	set("pushed", func(v *session.View) { v.PR = nil })
	set("stuck", func(v *session.View) { v.PR = nil })
	set("refused", func(v *session.View) { v.Changed, v.PR = false, nil })
	set("asking", func(v *session.View) {
		v.Outcome.Question = &session.Question{Text: "Which one, @octocat?\n\n`<b>` or none?", Choices: []session.Choice{
			{Value: "In the `form`"}, {Value: "cookie", Label: "In a cookie, fixes #7"}, {Label: "Neither <!here>"},
		}}
	})
	set("paused", func(v *session.View) {
		v.Outcome.Limit, v.Outcome.Question = session.TurnLimit, &session.Question{
			Text: v.Outcome.Say + " Shall I go on with $5 more?", Choices: []session.Choice{{Value: "Go on with $5 more"}, {Value: "Leave it"}},
		}
		v.Today = &session.Today{Payer: "slack:U1", Person: 6.1, PersonMax: 10, All: 31.456}
	})
	set("asking-of-many", func(v *session.View) {
		v.Outcome.Question = &session.Question{Text: "Which one?", Choices: choices(12, 20)}
	})
	set("asking-freely", func(v *session.View) {
		v.Changed, v.Files, v.PR, v.Todos, v.Steps = false, 0, nil, nil, nil
		v.Outcome.Question = &session.Question{Text: "What should the page say?"}
	})
	out := map[string]scene{}
	for name, v := range views {
		out[name] = scene{v, showing{team: team, now: turnStart.Add(7 * time.Minute), slow: 30 * time.Minute}}
	}
	late, past, where := out["working-slowly"], out["completed-past"], out["asking-where"]
	late.now, past.past = turnStart.Add(65*time.Minute), true
	where.asking = &session.Question{Text: "In which repository? Answer with one, such as `/ship octo/hello`.", Choices: []session.Choice{{Value: "octo/hello"}, {Value: "octo/world"}}}
	out["working-slowly"], out["completed-past"], out["asking-where"] = late, past, where
	return out
}

func sixty(text string) []session.Todo {
	var out []session.Todo
	for i := range 60 {
		status := "pending"
		if i < 25 {
			status = "completed"
		} else if i == 25 {
			status = "in_progress"
		}
		out = append(out, session.Todo{Text: fmt.Sprintf("%s %d", text, i+1), Status: status})
	}
	return out
}

func choices(n, long int) []session.Choice {
	var out []session.Choice
	for i := range n {
		out = append(out, session.Choice{Value: (fmt.Sprintf("choice-%d-", i+1) + strings.Repeat("x", long))[:long]})
	}
	return out
}

// TestLiving: the message of each state is as people were shown before, and
// Slack takes it.
func TestLiving(t *testing.T) {
	t.Parallel()
	take := taker(t)
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			p := living(s.view, s.showing)
			golden(t, "living-"+name, displayed(p))
			take(p)
		})
	}
}

// TestEveryStateIsThere among the scenes.
func TestEveryStateIsThere(t *testing.T) {
	t.Parallel()
	phases, endings := map[session.Phase]bool{}, map[session.Ending]bool{}
	for _, s := range scenes() {
		phases[s.view.Phase] = true
		if s.view.Outcome != nil {
			endings[s.view.Outcome.Ending] = true
		}
	}
	for _, p := range []session.Phase{
		session.PhaseAsking, session.PhaseQueued, session.PhasePreparing, session.PhaseWorking, session.PhaseStopping, session.PhasePublishing, session.PhaseEnded,
	} {
		if !phases[p] {
			t.Errorf("phase %s has no golden file", p)
		}
	}
	for _, e := range []session.Ending{
		session.Completed, session.Stopped, session.Stuck, session.TimedOut, session.Stalled, session.Spent, session.Refused, session.Unreachable, session.Crashed,
	} {
		if !endings[e] {
			t.Errorf("ending %s has no golden file", e)
		}
	}
}

// ended is the state that a view of a turn's end is of.
func ended(v session.View) session.State {
	return session.State{
		ID: v.Session, Turns: v.Turn, Title: v.Title, Repo: session.Repo{Name: v.Repo}, Branch: v.Branch, Head: v.Head, PR: v.PR,
		Turn: &session.Turn{N: v.Turn, Stage: session.Ended, Outcome: v.Outcome, Changed: v.Changed, Files: v.Files, Model: v.Model, Took: int(v.Took.Seconds())},
	}
}

// TestAnswered: so is the end of a turn, in a message of its own.
func TestAnswered(t *testing.T) {
	t.Parallel()
	take := taker(t)
	for name, s := range scenes() {
		if s.view.Phase != session.PhaseEnded || s.past {
			continue
		}
		t.Run(name, func(t *testing.T) {
			all := answered(team, ended(s.view))
			golden(t, "answered-"+name, allShown(all))
			take(all...)
		})
	}
}

// TestLimits: Slack takes whatever there is much of.
func TestLimits(t *testing.T) {
	t.Parallel()
	take := taker(t)
	long := map[string]string{
		"words": strings.Repeat("many words ", 1000), "none": "", "paragraphs": strings.Repeat("A paragraph.\n\n", 800),
		"a word": strings.Repeat("x", 10_000), "code": "```\n" + strings.Repeat("if a < b && c > d {\n", 600) + "```", "line of code": "    " + strings.Repeat("&", 10_000),
		"emphasis": strings.Repeat("**a** _b_ ~~c~~ `d` ", 500), "escapes": strings.Repeat("<&>", 3400), "quotes": strings.Repeat(`"`, 10_000),
		"links": strings.Repeat("[a](https://b.c/?d=1&e=2) ", 400), "faces": strings.Repeat("😀", 2500), "list": strings.Repeat("- entry\n", 1200),
		"bold": "**" + strings.Repeat("very bold ", 1000) + "**", "table": "|a|b|\n|-|-|\n" + strings.Repeat("|c|d|\n", 300), "ticks": strings.Repeat("`", 10_000),
		"link": "[" + strings.Repeat("label ", 1500) + "](https://a.b/" + strings.Repeat("c&", 400) + ")",
	}
	for name, text := range long {
		t.Run(name, func(t *testing.T) {
			v := after(session.Completed, "", text)
			v.Todos = sixty(text)
			v.Title, v.Doing, v.Steps, v.Repo, v.Model, v.Branch = text, text, []string{text}, text, text, text
			v.PR = &session.PullRequest{Number: 1, URL: "https://x.y/" + text}
			take(told(text)...)
			take(answered(team, ended(v))...)
			v.Outcome.Question = &session.Question{Text: text, Choices: []session.Choice{{Value: text, Label: text}, {Value: "yes"}}}
			take(answered(team, ended(v))...)
			take(living(v, showing{team: team}))
			v.Phase = session.PhaseWorking
			take(living(v, showing{team: team, now: turnStart.Add(time.Hour), slow: time.Minute, asking: v.Outcome.Question}))
		})
	}
}

// TestChoicesStandBesideTheEnd of a text that leaves no room for them.
func TestChoicesStandBesideTheEnd(t *testing.T) {
	t.Parallel()
	take := taker(t)
	for n := 10_000; n < 14_000; n += 250 {
		all := posed(blockID(team, nameRepo), strings.Repeat("Which of them? ", n/15), choices(20, 100))
		take(all...)
		last := all[len(all)-1]
		if _, ok := last.blocks[0].(*slack.SectionBlock); !ok || valuesOf(last.blocks[len(last.blocks)-1]) == nil {
			t.Errorf("%d: the last message is\n%s", n, displayed(last))
		}
	}
}

// TestManyChoices: as many as there is room for can be chosen, each as it is, and
// the others are there to be read.
func TestManyChoices(t *testing.T) {
	t.Parallel()
	take := taker(t)
	for _, tt := range []struct{ n, long, offered int }{
		{1, 10, 1}, {5, 75, 5}, {6, 150, 6}, {20, 10, 20}, {60, 150, 11}, {60, 151, 10}, {5, 1990, 1}, {6, 3000, 0}, {0, 0, 0},
	} {
		list := choices(tt.n, tt.long)
		all := posed(blockID(team, nameRepo), "Which **one**?", list)
		take(all...)
		take(living(session.View{Phase: session.PhaseAsking}, showing{team: team, asking: &session.Question{Text: "Which?", Choices: list}}))
		offered, _ := choosing(blockID(team, nameRepo), list)
		values := valuesOf(offered)
		for i, v := range values {
			if v != list[i].Value {
				t.Errorf("%d of %d: %q is offered for %q", tt.n, tt.long, v, list[i].Value)
			}
		}
		if len(values) != tt.offered {
			t.Errorf("%d of %d: %d are offered, want %d", tt.n, tt.long, len(values), tt.offered)
		}
		if written := strings.Contains(all[0].text, "• "); written != (tt.n > tt.offered || tt.long > maxLabel) {
			t.Errorf("%d of %d: written out is %v\n%s", tt.n, tt.long, written, all[0].text)
		}
	}
}

func valuesOf(b slack.Block) []string {
	row, ok := b.(*slack.ActionBlock)
	if !ok {
		return nil
	}
	var out []string
	for _, e := range row.Elements.ElementSet {
		switch e := e.(type) {
		case *slack.ButtonBlockElement:
			out = append(out, e.Value)
		case *slack.SelectBlockElement:
			for _, o := range e.Options {
				out = append(out, o.Value)
			}
		}
	}
	return out
}

// TestNothingIsLost of a long answer, and it is told in one message if there is
// room.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	var want []string
	var text strings.Builder
	for i := range 900 {
		word := fmt.Sprintf("word%d", i)
		want = append(want, word)
		text.WriteString(word + []string{" ", "\n", "\n\n"}[i%3])
	}
	all := told(text.String())
	var got []string
	for _, p := range all {
		for _, b := range p.blocks {
			got = append(got, strings.Fields(b.(*slack.SectionBlock).Text.Text)...)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(all) != 1 {
		t.Errorf("%d messages\n%s", len(all), diff)
	}
}

// TestPressed: what is pressed is understood as what it says, in the workspace
// that the thread is kept under.
func TestPressed(t *testing.T) {
	t.Parallel()
	verbs := map[string]session.Verb{"Stop": session.Stop, "Retry": session.Retry, "Mark ready": session.Ready, "Open PR": ""}
	found := map[string]bool{}
	for name, s := range scenes() {
		for _, b := range living(s.view, s.showing).blocks {
			row, ok := b.(*slack.ActionBlock)
			if !ok {
				continue
			}
			if teamOf(row.BlockID) != team {
				t.Errorf("%s: block %q", name, row.BlockID)
			}
			for _, e := range row.Elements.ElementSet {
				var a action
				raw, err := json.Marshal(e)
				if err := errors.Join(err, json.Unmarshal(raw, &a)); err != nil {
					t.Fatal(err)
				}
				if button, ok := e.(*slack.ButtonBlockElement); ok {
					c, ignored := asks(a)
					want, known := verbs[button.Text.Text]
					if !known {
						want = session.Instruct
					}
					if c.Verb != want || ignored != "" && button.URL == "" || want == session.Instruct && c.Text == "" {
						t.Errorf("%s: %q is %+v, ignored %q", name, button.Text.Text, c, ignored)
					}
					found[button.Text.Text] = true
				}
			}
		}
	}
	for label := range verbs {
		if !found[label] {
			t.Errorf("nowhere is there %q", label)
		}
	}
}
