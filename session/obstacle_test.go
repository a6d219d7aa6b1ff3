package session

import (
	"strings"
	"testing"
)

// TestObstacles: what a replay is refused for, and what is as good as ever.
func TestObstacles(t *testing.T) {
	t.Parallel()
	thread := Thread{Platform: "plat", Key: "t"}
	idle := State{Turns: 2, Turn: &Turn{N: 2, Stage: Ended, Told: true, Requests: []Request{{Text: "fix it"}}}, Threads: []Voice{{Thread: thread}}}
	busy, forgotten, told := idle, idle, idle
	busy.Turn = &Turn{N: 2, Stage: Running, Requests: []Request{{Text: "fix it"}}}
	forgotten.Turn = &Turn{N: 2, Stage: Ended, Told: true, Forgotten: true}
	told.Turn = &Turn{N: 2, Stage: Ended, Outcome: &Outcome{Ending: Completed}}
	asking, draft, checked := idle, idle, idle
	asking.Asking = &Asking{Question: Question{Text: "Where?"}}
	draft.PR = &PullRequest{Number: 7, Draft: true}
	checked.Check = &CheckState{SHA: "a", Conclusion: "success"}
	cases := []struct {
		name   string
		state  State
		effect Effect
		told   *Turn
		want   string
	}{
		{"a turn's step", idle, Effect{Kind: Run, Turn: 2}, nil, ""},
		{"a turn's step in a new session", State{}, Effect{Kind: Prepare, Turn: 1}, nil, "nothing was ever run"},
		{"a past turn's step", idle, Effect{Kind: Publish, Turn: 1}, nil, "gone on to turn 2"},
		{"a step of a turn that runs", busy, Effect{Kind: Open, Turn: 2}, nil, "still at work"},
		{"a step of a turn that is forgotten", forgotten, Effect{Kind: Run, Turn: 2}, nil, "not kept"},
		{"a beginning", busy, Effect{Kind: Begin, Turn: 2}, nil, ""},
		{"a beginning that is past", idle, Effect{Kind: Begin, Turn: 2}, nil, "has ended"},
		{"an end", idle, Effect{Kind: Answer, Turn: 2}, &Turn{N: 2}, ""},
		{"an end that is known yet", told, Effect{Kind: Answer, Turn: 2}, nil, ""},
		{"an end that nobody knows", idle, Effect{Kind: Answer, Turn: 2}, nil, "not kept"},
		{"a past turn's end", idle, Effect{Kind: Answer, Turn: 1}, &Turn{N: 1}, "gone on"},
		{"a question", asking, Effect{Kind: Ask, Text: "Where?"}, nil, ""},
		{"a question that was answered", idle, Effect{Kind: Ask, Text: "Where?"}, nil, "nobody waits"},
		{"another question", asking, Effect{Kind: Ask, Text: "Who?"}, nil, "nobody waits"},
		{"a check", checked, Effect{Kind: Check, Check: &CheckState{SHA: "a", Conclusion: "success"}}, nil, ""},
		{"a past commit's check", checked, Effect{Kind: Check, Check: &CheckState{SHA: "b", Conclusion: "failure"}}, nil, ""},
		{"a check that changed", checked, Effect{Kind: Check, Check: &CheckState{SHA: "a", Conclusion: "failure"}}, nil, "something else"},
		{"a check in progress", idle, Effect{Kind: Check, Check: &CheckState{SHA: "a"}}, nil, "in progress"},
		{"ready", draft, Effect{Kind: MarkReady}, nil, ""},
		{"ready for nothing", idle, Effect{Kind: MarkReady}, nil, "no open draft"},
		{"a report", idle, Effect{Kind: Report, Thread: &thread}, nil, ""},
		{"a report elsewhere", idle, Effect{Kind: Report, Thread: &Thread{}}, nil, "nothing to report"},
		{"a box", idle, Effect{Kind: Discard}, nil, "ends by itself"},
		{"words", idle, Effect{Kind: Say}, nil, ""},
		{"a request", State{}, Effect{Kind: Admit}, nil, ""},
	}
	for _, c := range cases {
		got := DeadLetter{Effect: &c.effect, Turn: c.told}.Obstacle(c.state)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for want, d := range map[string]DeadLetter{
		"no event":        {Raw: []byte("x")},
		"neither":         {},
		"without a requ":  {Event: &Event{Kind: Asked}},
		"cannot hold an ": {Event: &Event{Kind: Done}},
	} {
		if got := d.Obstacle(idle); !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", d, got, want)
		}
	}
	if got := (DeadLetter{Event: &Event{Kind: Closed}}).Obstacle(idle); got != "" {
		t.Errorf("an event: %q", got)
	}
}
