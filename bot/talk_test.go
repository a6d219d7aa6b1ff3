package bot

import (
	"strings"
	"testing"
	"time"

	"ship/session"
)

func TestSpoken(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Stopped by ada. `/ship retry` starts it again.":                                  "Stopped by ada. `retry` starts it again.",
		"Such as `/ship budget 5`, or `/ship help`.":                                      "Such as `budget 5`, or `help`.",
		"Nothing yet. Tell me what to do with `/ship …`.":                                 "Nothing yet. Just tell me what to do.",
		"It was too long. Please write it again: `/ship …`.":                              "It was too long. Please write it again.",
		"Too much. Put what is to be done behind a second `/ship`, on a line of its own.": "Too much. Write what is to be done in a message of its own.",
		"Check the rules, then `/ship retry`.":                                            "Check the rules, then reply `retry`.",
		"Name one that exists: `/ship [branch=…] …`.":                                     "Name one that exists: `[branch=…] …`.",
		"The path `/ship` and `/shipyard x` stay as they are.":                            "The path `/ship` and `/shipyard x` stay as they are.",
		"From the next turn on this thread uses `acme/large`.":                            "From the next turn on this thread uses `acme/large`.",
		" ": "Done.",
	} {
		if got := Spoken(text); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestDeed(t *testing.T) {
	t.Parallel()
	doing := session.View{Title: "Flaky login", Doing: "starting"}
	todo := session.View{Title: "Flaky login", Steps: []string{"thinking"}, Todos: []session.Todo{{Text: "Read it", Status: "completed"}, {Text: "Fix it", Status: "in_progress"}}}
	for _, tt := range []struct {
		view                      session.View
		action, parameter, result string
	}{
		{session.View{Steps: []string{"read: a.go", "bash: sh test.sh (failed)"}}, "Running", "sh test.sh", "failed"},
		{session.View{Steps: []string{"bash: "}, Repo: "acme/widgets"}, "Working on", "acme/widgets", ""},
		{session.View{Steps: []string{"edit"}, Title: "Flaky login"}, "Working on", "Flaky login", ""},
		{session.View{Steps: []string{"mcp_thing: x: y"}}, "mcp_thing", "x: y", ""},
		{todo, "Thinking about", "Fix it", ""},
		{doing, "Starting with", "Flaky login", ""},
		{session.View{Doing: "waiting for the model (attempt 3)", Steps: []string{"bash: sh test.sh"}}, "Waiting for", "the model (attempt 3)", ""},
		{session.View{}, "Working on", "the request", ""},
		{session.View{Steps: []string{": \n "}}, "Working on", "the request", ""},
		{session.View{Steps: []string{"bash: echo @bob\nls"}}, "Running", "echo @\u200bbob ls", ""},
	} {
		if action, parameter, result := Deed(tt.view); action != tt.action || parameter != tt.parameter || result != tt.result {
			t.Errorf("%q: %q %q %q", tt.view.Steps, action, parameter, result)
		}
	}
}

// FuzzDeed: whatever the agent calls its tools, neither part is empty.
func FuzzDeed(f *testing.F) {
	for _, seed := range []string{"", "bash: sh test.sh", "thinking", ": ", "\x00: \u202e", "\xff"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, step, doing string) {
		for _, v := range []session.View{{Steps: []string{step}, Doing: doing}, {Doing: doing}, {Steps: []string{step}, Todos: []session.Todo{{Text: doing, Status: "in_progress"}}}} {
			action, parameter, _ := Deed(v)
			if strings.TrimSpace(action) == "" || strings.TrimSpace(parameter) == "" || strings.ContainsAny(action+parameter, "\n\r") {
				t.Errorf("%q %q", action, parameter)
			}
		}
	})
}

// stateOf is a state with a view's turn at its end.
func stateOf(o session.Outcome) session.State {
	return session.State{
		ID: "ln.1", Turns: 1, Repo: session.Repo{Name: "acme/widgets"}, Branch: "ship/x",
		Turn: &session.Turn{N: 1, Stage: session.Ended, Outcome: &o, Took: 60},
	}
}

// TestToldOfEveryEnding: nothing that is told is empty, too long, or speaks of
// comments.
func TestToldOfEveryEnding(t *testing.T) {
	t.Parallel()
	for _, ending := range append(everyEnding(), "") {
		for _, answer := range []string{"", "Fixed @bob's test.\n\n```\n" + strings.Repeat("line\n", 10_000)} {
			for _, say := range []string{"", "Too bad. `/ship retry` tries again."} {
				s := stateOf(session.Outcome{Ending: ending, Answer: answer, Say: say})
				for name, text := range map[string]string{
					"Answer": Answer(s), "AnswerElsewhere": AnswerElsewhere(s), "AgentAsks": AgentAsks(s), "Settled": Settled(s),
				} {
					if strings.TrimSpace(text) == "" || len(text) > maxTold+maxWords || strings.Contains(text, "`/ship") || strings.Contains(text, "@bob") {
						t.Errorf("%s of %q: %d bytes\n%.300s", name, ending, len(text), text)
					}
				}
				if text := AnswerElsewhere(s) + Settled(s); strings.Contains(text, "Fixed") {
					t.Errorf("it tells what was said elsewhere:\n%s", text)
				}
			}
		}
	}
}

func everyEnding() []session.Ending {
	return []session.Ending{
		session.Completed, session.Stopped, session.Stuck, session.TimedOut, session.Stalled, session.Spent, session.Refused, session.Unreachable, session.Crashed,
	}
}

func TestAgentAsks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ answer, question, want string }{
		{"I found two ways.", "Which one?", "I found two ways.\n\nWhich one?\n\nReply in your own words.\n\n1 min"},
		{"I found two ways. Which one?", "Which one?", "I found two ways. Which one?\n\nReply in your own words.\n\n1 min"},
		{"", "", "I need a decision from you before I can go on.\n\nReply in your own words.\n\n1 min"},
	} {
		s := stateOf(session.Outcome{Ending: session.Completed, Answer: tt.answer, Question: &session.Question{Text: tt.question}})
		if got := AgentAsks(s); got != tt.want {
			t.Errorf("got  %q\nwant %q", got, tt.want)
		}
	}
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	working := session.View{Phase: session.PhaseWorking, Doing: "bash: go test ./..."}
	for _, tt := range []struct {
		view    session.View
		running time.Duration
		want    string
	}{
		{working, 12 * time.Minute, "Still running `go test ./...`, 12 min so far."},
		{working, time.Second, "Still running `go test ./...`."},
		{session.View{Phase: session.PhaseWorking, Doing: "waiting for the model (attempt 3)"}, 9 * time.Minute, "Still waiting for the model (attempt 3), 9 min so far."},
		{session.View{Phase: session.PhaseWorking, Doing: "mcp_thing: `x`"}, 9 * time.Minute, "Still at it, 9 min so far."},
		{session.View{Phase: session.PhaseWorking}, 90 * time.Minute, "Still at it, 1 h 30 min so far."},
		{session.View{Phase: session.PhaseQueued, Place: 2}, 9 * time.Minute, "Waiting for a sandbox, number 2 in line, 9 min so far."},
	} {
		if got := Heartbeat(tt.view, tt.running); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestSeen(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, verb := range []session.Verb{
		session.Instruct, session.Finish, session.Stop, session.Retry, session.Status, session.Help, session.Model, session.Budget, session.Ready, session.Unclear, "new",
	} {
		for _, phase := range []session.Phase{"", session.PhaseAsking, session.PhaseWorking, session.PhaseEnded} {
			for _, first := range []bool{true, false} {
				text := Seen(session.View{Turn: len(phase), Phase: phase}, verb, first)
				seen[text] = true
				if text == "" || strings.Contains(text, "`") {
					t.Errorf("%s: %q", verb, text)
				}
			}
		}
	}
	if len(seen) != 8 {
		t.Errorf("said %v", seen)
	}
}
