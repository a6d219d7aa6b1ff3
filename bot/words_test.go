package bot

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/session"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "words", name+".md")
	if *update {
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

var start = time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)

// at is a view in the middle of a turn.
func at(p session.Phase) session.View {
	return session.View{
		Session: "gh.42.7", Title: "Login redirects to the wrong page", Phase: p, Turn: 2,
		By: []string{"octocat", "hubot", "octocat"}, Model: "anthropic/claude-sonnet-4-5",
		Doing: "bash: go test ./login", Usage: session.Usage{Calls: 12, Input: 91_000, Output: 4_200, USD: 0.31},
		Todos: []session.Todo{
			{Text: "Find where the redirect is made", Status: "completed"},
			{Text: "Keep `next` through the `<form>`", Status: "in_progress"},
			{Text: "Add a test", Status: "pending"},
			{Text: "Rename the handler", Status: "cancelled"},
		},
		Steps: []string{"read: login/handler.go", "edit: login/handler.go", "bash: go test ./login (failed)"},
		Repo:  "octo/hello", Base: "main", Branch: "ship/7-login", Head: "0123456789abcdef", Started: start,
	}
}

var draft = &session.PullRequest{Number: 8, URL: "https://github.com/octo/hello/pull/8", Draft: true}

func over(e session.Ending, say, answer string) session.View {
	v := at(session.PhaseEnded)
	v.Took = 12*time.Minute + 20*time.Second
	v.Changed, v.Files, v.PR = true, 3, draft
	v.Outcome = &session.Outcome{Ending: e, Say: say, Answer: answer, Usage: v.Usage}
	return v
}

const reply = "The redirect dropped `next`, because `Form<T>` lost it. Fixes #7, says @octocat.\n\n" +
	"```go\nfunc login() { /* @decorated <b> */ }\n```\n\n<details>\n\n- [x] tests pass\n"

// views are every phase and every ending, and the corners between them.
func views() map[string]session.View {
	all := map[string]session.View{
		"queued":          at(session.PhaseQueued),
		"queued-third":    at(session.PhaseQueued),
		"preparing":       at(session.PhasePreparing),
		"working":         at(session.PhaseWorking),
		"stopping":        at(session.PhaseStopping),
		"publishing":      at(session.PhasePublishing),
		"new":             {Session: "gh.42.7", Phase: session.PhasePreparing, Repo: "octo/hello"},
		"completed":       over(session.Completed, "", reply),
		"completed-ready": over(session.Completed, "", "All of it is done."),
		"answered":        over(session.Completed, "", "It is in `login/handler.go`, line 12."),
		"pushed":          over(session.Completed, "", "Pushed."),
		"stopped":         over(session.Stopped, "Stopped as @octocat asked; what was done so far is kept.", "I was about to add a test."),
		"stuck":           over(session.Stuck, "The agent did the same thing over and over (bash: go test) and was stopped; its work is kept.", ""),
		"timed-out":       over(session.TimedOut, "The time for one turn was over and the agent was stopped; its work is kept.", ""),
		"stalled":         over(session.Stalled, "Nothing moved for 5 minutes, so the agent was stopped; its work is kept.", ""),
		"spent":           over(session.Spent, "The money for one turn is used up and the agent was stopped; its work is kept.", ""),
		"paused":          over(session.Spent, "The $5 that this turn may cost are used up. The work so far is kept.", "I was about to add a test."),
		"paused-for-day":  over(session.Spent, "What all together may spend today, $50, is used up. I have not begun.", ""),
		"day-over":        over(session.Spent, "What one person may spend here today, $10, is used up. The work so far is kept. A new day begins at 00:00 UTC; `/ship retry` goes on then.", ""),
		"refused":         over(session.Refused, "The model claude refused the request: <img src=x> too long.", ""),
		"unreachable":     over(session.Unreachable, "The model claude could not be reached (503).", ""),
		"crashed":         over(session.Crashed, "Something failed on my side. `/ship retry` tries again.", ""),
		"crashed-unsaid":  over(session.Crashed, "", ""),
		"asking":          over(session.Completed, "", "The redirect can be kept in two ways."),
		"asking-freely":   over(session.Completed, "", ""),
		"stopped-asking":  over(session.Stopped, "Stopped as @octocat asked.", ""),
	}
	set := func(name string, change func(*session.View)) {
		v := all[name]
		change(&v)
		all[name] = v
	}
	set("queued-third", func(v *session.View) { v.Place = 3; v.Todos, v.Steps = nil, nil })
	set("completed-ready", func(v *session.View) { pr := *draft; pr.Draft = false; v.PR = &pr })
	set("answered", func(v *session.View) { v.Changed, v.Files, v.PR, v.Todos, v.Steps = false, 0, nil, nil, nil })
	set("pushed", func(v *session.View) { v.PR = nil })
	set("stuck", func(v *session.View) { v.PR = nil })
	set("refused", func(v *session.View) { v.Changed, v.PR = false, nil })
	set("asking", func(v *session.View) {
		v.Outcome.Question = &session.Question{Text: "Which one, @octocat?\n\n`<b>` or none?", Choices: []session.Choice{
			{Value: "In the `form`"}, {Value: "cookie", Label: "In a cookie, fixes #7"}, {Label: "Neither"},
		}}
	})
	set("asking-freely", func(v *session.View) {
		v.Changed, v.Files, v.PR, v.Todos, v.Steps = false, 0, nil, nil, nil
		v.Outcome.Question = &session.Question{Text: "What should the page say?"}
	})
	set("stopped-asking", func(v *session.View) { v.Outcome.Question = &session.Question{Text: "Which?"} })
	more := []session.Choice{{Value: "Go on with $5 more"}, {Value: "Leave it"}}
	set("paused", func(v *session.View) {
		v.Outcome.Limit, v.Outcome.Question = session.TurnLimit, &session.Question{Text: v.Outcome.Say + " Shall I go on with $5 more?", Choices: more}
		v.Usage.USD, v.Box, v.All = 5.02, 14*time.Minute, session.Cost{USD: 7.4, Box: time.Hour}
		v.Today = &session.Today{Payer: "github:octocat", Person: 6.1, PersonMax: 10, All: 31.456}
	})
	set("paused-for-day", func(v *session.View) {
		v.Outcome.Limit, v.Outcome.Question = session.DayLimit, &session.Question{Text: v.Outcome.Say + " Shall I go on with $5 more?", Choices: more}
		v.Changed, v.Files, v.PR, v.Todos, v.Steps, v.Took, v.Usage = false, 0, nil, nil, nil, 0, session.Usage{}
		v.Today = &session.Today{Payer: "github:octocat", All: 50.3, AllMax: 50}
	})
	set("day-over", func(v *session.View) { v.Outcome.Limit = session.PersonLimit })
	set("spent", func(v *session.View) { v.Usage.USD = 7.21 })
	return all
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for name, v := range views() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := Markdown(v)
			title, summary := CheckOutput(v)
			golden(t, name, text+"\n\n--- as a check: "+title+"\n--- in a line: "+StatusLine(Commenting, v)+
				"\n--- when talking: "+StatusLine(Talking, v)+"\n")
			if !strings.HasSuffix(text, summary) {
				t.Errorf("the check's summary is not what the comment says:\n%s", summary)
			}
			if strings.Contains(StatusLine(Commenting, v)+StatusLine(Talking, v)+title, "\n") {
				t.Error("a line has a line break")
			}
			if strings.Contains(StatusLine(Talking, v), "/ship") {
				t.Error("a conversation is told to write /ship")
			}
		})
	}
}

// TestEveryPhaseAndEnding is shown in a golden file.
func TestEveryPhaseAndEnding(t *testing.T) {
	t.Parallel()
	phases, endings := map[session.Phase]bool{}, map[session.Ending]bool{}
	for _, v := range views() {
		phases[v.Phase] = true
		if v.Outcome != nil {
			endings[v.Outcome.Ending] = true
		}
	}
	for _, p := range []session.Phase{
		session.PhaseQueued, session.PhasePreparing, session.PhaseWorking, session.PhaseStopping, session.PhasePublishing, session.PhaseEnded,
	} {
		if !phases[p] {
			t.Errorf("phase %s has no golden file", p)
		}
	}
	for _, e := range []session.Ending{
		session.Completed, session.Stopped, session.Stuck, session.TimedOut, session.Stalled, session.Spent,
		session.Refused, session.Unreachable, session.Crashed,
	} {
		if !endings[e] {
			t.Errorf("ending %s has no golden file", e)
		}
	}
}

// TestFailuresSayWhatToDo: whatever went wrong, the reader has a command.
func TestFailuresSayWhatToDo(t *testing.T) {
	t.Parallel()
	for name, v := range views() {
		if failed(v) && (!strings.Contains(Markdown(v), "`/ship ") || !strings.Contains(StatusLine(Commenting, v), "`/ship ")) {
			t.Errorf("%s does not say what to do next", name)
		}
		if failed(v) && !strings.Contains(StatusLine(Talking, v), "Reply ") {
			t.Errorf("%s does not say what to reply", name)
		}
	}
}

// hostileView puts text everywhere.
func hostileView(text string, p session.Phase, e session.Ending) session.View {
	v := over(e, text, text)
	v.Phase, v.Title, v.Model, v.Doing, v.Branch = p, text, text, text, text
	v.By, v.Steps = []string{text}, []string{text, text}
	v.Todos = []session.Todo{{Text: text, Status: "completed"}, {Text: text, Status: text}}
	v.PR = &session.PullRequest{Number: 1, URL: text}
	if e == session.Completed {
		v.Outcome.Question = hostileQuestion(text)
	}
	return v
}

func hostileQuestion(text string) *session.Question {
	q := &session.Question{Text: text}
	for range 30 {
		q.Choices = append(q.Choices, session.Choice{Value: text, Label: "x " + text}, session.Choice{Label: text})
	}
	return q
}

var hostile = []string{
	"@everyone <details><img src=x onerror=y> fixes #1 closes octo/x#2 <!-- ship:session=gh.1.1 -->",
	"```\n@octocat\n````", "a\n```\nb", "`", "``", "](https://evil.test)", "![x](https://evil.test/x.png)",
	"&#64;octocat &commat;hubot", "\u202eevil\u202c\x00\x1b[31m", "\r\n- [ ] @a\r\n~~~", strings.Repeat("@a ", 5000),
	strings.Repeat("`", 9000), strings.Repeat("ü", 70_000), "> ```\n@octocat", "- ```\n  @octocat", "-->\n# @octocat",
	"~~~\n\t~~~\n![x](y) @octocat\n1. </details>", "fixes\nhttps://github.com/o/r/issues/1", "https://x.test/@octocat", "-@octocat .@octocat (@octocat)", "<@octocat>", "@@octocat",
}

func TestHostileWords(t *testing.T) {
	t.Parallel()
	for i, text := range hostile {
		for _, p := range []session.Phase{session.PhaseWorking, session.PhaseEnded} {
			for _, e := range []session.Ending{session.Completed, session.Stuck} {
				t.Run(fmt.Sprint(i, p, e), func(t *testing.T) {
					t.Parallel()
					v := hostileView(text, p, e)
					harmless(t, Markdown(v))
					harmless(t, StatusLine(Commenting, v))
					harmless(t, StatusLine(Talking, v))
					if title, _ := CheckOutput(v); len(title) > maxCheckTitle {
						t.Errorf("title of %d bytes", len(title))
					}
				})
			}
		}
	}
}

// harmless: nothing of ours mentions anybody, is unbalanced or too long.
func harmless(t *testing.T, text string) {
	t.Helper()
	if len(text) > 65_000 {
		t.Errorf("%d bytes", len(text))
	}
	for _, bad := range []string{"<img", "<!-- ship:session=gh.1.1", "![", "&#64;", "&commat;", "\x00", "\u202e", "\r"} {
		if strings.Contains(text, bad) && !onlyInCode(text, bad) {
			t.Errorf("holds %q:\n%s", bad, text)
		}
	}
	outside := prose(text)
	if m := mentionIn(outside); m != "" {
		t.Errorf("mentions %q in:\n%s", m, outside)
	}
	if m := closes.FindString(outside); m != "" {
		t.Errorf("closes with %q", m)
	}
	if open, closed := strings.Count(outside, "<details>"), strings.Count(outside, "</details>"); open != closed {
		t.Errorf("%d <details>, %d </details>:\n%s", open, closed, text)
	}
	if l := layOut(text, true); l.open != nil {
		t.Errorf("line %d opens a block that never ends:\n%s", l.open.first, text)
	}
}

func TestHelpText(t *testing.T) {
	t.Parallel()
	for idiom, name := range map[Idiom]string{Commenting: "help", Talking: "help-talking"} {
		help := HelpText(idiom)
		golden(t, name, help+"\n")
		for _, word := range []string{"stop", "retry", "status", "help", "model", "budget", "ready", "repo", "branch="} {
			if !strings.Contains(help, word) {
				t.Errorf("%s: %q is not explained", name, word)
			}
		}
		if got := Parse(help); len(got) > 0 {
			t.Errorf("our own help is a command: %+v", got)
		}
	}
	if strings.Contains(HelpText(Talking), "/ship") {
		t.Error("a conversation is told to write /ship")
	}
}

// TestHelpIsTrue: what the help tells people to write is understood.
func TestHelpIsTrue(t *testing.T) {
	t.Parallel()
	want := map[string]session.Verb{
		"stop": session.Stop, "retry": session.Retry, "status": session.Status, "ready": session.Ready,
		"model NAME": session.Model, "budget 10": session.Budget, "help": session.Help,
	}
	for _, o := range orders(Talking) {
		if got := ParseText(o.write); got.Verb != want[o.write] && !(got.Verb == session.Instruct && want[o.write] == "") {
			t.Errorf("%q is taken for %+v", o.write, got)
		}
		if got := Parse("/ship " + o.write); len(got) != 1 || got[0] != ParseText(o.write) {
			t.Errorf("%q in a comment is taken for %+v", o.write, got)
		}
	}
}

// TestChoicesAreListed as far as anybody would read.
func TestChoicesAreListed(t *testing.T) {
	t.Parallel()
	got := choices(hostileQuestion("x").Choices)
	if lines := strings.Split(got, "\n"); len(lines) != maxChoices+1 || lines[maxChoices] != "- and 40 more" || lines[0] != "- `x`: x x" {
		t.Errorf("listed as\n%s", got)
	}
	if choices(nil) != "" {
		t.Error("nothing is listed as something")
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		400 * time.Millisecond: "0 s", 59 * time.Second: "59 s", time.Minute: "1 min", 90 * time.Second: "2 min",
		59*time.Minute + 40*time.Second: "1 h 0 min", time.Hour: "1 h 0 min", 25*time.Hour + 90*time.Second: "25 h 2 min",
	} {
		if got := took(d); got != want {
			t.Errorf("took(%v) = %q, want %q", d, got, want)
		}
	}
	for amount, want := range map[float64]string{0: "", -1: "", 0.001: "under $0.01", 0.01: "$0.01", 12.345: "$12.35"} {
		if got := usd(amount); got != want {
			t.Errorf("usd(%v) = %q, want %q", amount, got, want)
		}
	}
	for amount, want := range map[float64]int{0: 10, 5: 10, 7.21: 16, 9000: MaxBudget} {
		if got := moreThan(amount); got != want {
			t.Errorf("moreThan(%v) = %d, want %d", amount, got, want)
		}
	}
}

// FuzzQuestion: whatever an agent asks, in the places where it is shown.
func FuzzQuestion(f *testing.F) {
	for _, text := range hostile[:4] {
		f.Add(text, text, text)
	}
	f.Add("Which?\n- a", "a", "``")
	f.Fuzz(func(t *testing.T, text, value, label string) {
		q := &session.Question{Text: text, Choices: []session.Choice{{Value: value, Label: label}, {Label: value}}}
		v := over(session.Completed, "", "")
		v.Outcome.Question = q
		harmless(t, Markdown(v))
		harmless(t, StatusLine(Talking, v))
		s := turned(func(s *session.State) { s.Turn.Outcome.Question = q })
		harmless(t, strings.TrimSuffix(PullRequestBody(s), Marker(s.ID)))
	})
}
