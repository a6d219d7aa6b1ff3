package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ship/sandbox/agent/modeltest"
	"ship/session"
)

// sampleTitle and sampleIssue are what is wrong.
const sampleTitle = "Discounts are off by one cent"

const sampleIssue = `A discount of 15 % on 9.99 should give 8.49, but we charge 8.50.
` + "`sh test.sh` shows it."

// sampleFiles is a repository whose test fails, in a language that every
// machine speaks.
func sampleFiles() map[string]string {
	return map[string]string{
		"README.md": "# prices\n\nTurns a price in cents and a discount in percent into what a customer pays.\n\n    sh price.sh 999 15\n\nTests: `sh test.sh`.\n",
		"price.sh": `#!/bin/sh
# price.sh CENTS PERCENT: what is left to pay, in cents, rounded half up.
cents=$1
percent=$2
echo $(( (cents * (100 - percent) + 99) / 100 ))
`,
		"test.sh": `#!/bin/sh
failed=0
check() {
	got=$(sh price.sh "$1" "$2")
	if [ "$got" = "$3" ]; then
		echo "ok    $1 cents less $2 % is $3"
	else
		echo "FAIL  $1 cents less $2 %: got $got, want $3"
		failed=1
	fi
}
check 1000 10 900
check 999 15 849
check 250 0 250
check 333 50 167
exit $failed
`,
	}
}

// sampleScript is what the stand-in for a model says. The work itself is real:
// the agent runs these commands in its box.
func sampleScript() modeltest.Script {
	todos := func(first, second, third string) modeltest.Call {
		return modeltest.Todos(
			modeltest.Todo{Text: "Reproduce the failing test", Status: first},
			modeltest.Todo{Text: "Fix the rounding in price.sh", Status: second},
			modeltest.Todo{Text: "Run all tests again", Status: third},
		)
	}
	return slowly(
		modeltest.Use(todos("in_progress", "pending", "pending")),
		modeltest.Use(modeltest.Bash("sh test.sh")),
		modeltest.Use(modeltest.Read("price.sh")),
		modeltest.Use(todos("completed", "in_progress", "pending")),
		modeltest.Use(modeltest.Edit("price.sh", "+ 99) / 100", "+ 50) / 100")),
		modeltest.Use(todos("completed", "completed", "in_progress")),
		modeltest.Use(modeltest.Bash("sh test.sh")),
		modeltest.Use(todos("completed", "completed", "completed")),
		modeltest.Say("`price.sh` rounded every fraction of a cent up, because it added 99 before dividing by 100. It now adds 50, which rounds half up as its comment says.\n\nVerified with `sh test.sh`: all four checks pass; before the change, `999 cents less 15 %%` failed."),
	)
}

// slowly plays replies at a pace that people can follow.
func slowly(replies ...modeltest.Reply) modeltest.Script {
	for i := range replies {
		replies[i] = replies[i].Slowly(150 * time.Millisecond)
	}
	return modeltest.Steps(replies...)
}

// opening says what is real here and what is not.
func (s *stage) opening() {
	s.title("ship demo")
	model := "a scripted stand-in, not a language model (try --model)"
	if s.script == nil {
		model = s.settings.Agent.Model
	}
	fmt.Fprintf(s.out, "  stand-ins   %s; GitHub and its git host on %s\n", s.scene.where, s.host.URL)
	fmt.Fprintf(s.out, "  real        the gateway, OpenCode in an isolated box, git, the signed webhook\n")
	fmt.Fprintf(s.out, "  model       %s\n", model)
	fmt.Fprintf(s.out, "  sandbox     %s\n\n", isolationOf(s.settings))
}

func isolationOf(s Settings) string {
	if s.Sandbox.Local.Isolation == "none" {
		return "none: the agent runs as a plain process of this machine"
	}
	return "bubblewrap: no network but the broker, one writable folder"
}

// tell delivers the request and prints what people would see, until the end.
func (s *stage) tell(ctx context.Context, store session.Archive, url string) error {
	if err := s.scene.ask(ctx, url); err != nil {
		return err
	}
	s.line("webhook", "signed, verified and kept; answered 200")
	return s.follow(ctx, store)
}

// follow watches the session as an operator would, with Peek: it is in memory,
// so looking often costs nothing.
func (s *stage) follow(ctx context.Context, store session.Archive) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	watch := watcher{stage: s}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		s.scene.listen()
		ids, err := store.Sessions(ctx)
		if err != nil {
			return err
		}
		for _, id := range ids {
			state, err := peek(ctx, store, id)
			if err != nil {
				return err
			}
			if watch.see(state) {
				s.scene.listen()
				return nil
			}
		}
	}
}

func peek(ctx context.Context, store session.Archive, id session.ID) (session.State, error) {
	c, err := store.Peek(ctx, id)
	if err != nil {
		return session.State{}, fmt.Errorf("look at session %s: %w", id, err)
	}
	return session.DecodeState(id, c.State)
}

// watcher prints what changes.
type watcher struct {
	*stage
	phase session.Phase
	doing string
	steps []string
}

// see prints the news and tells whether the story is over.
func (w *watcher) see(s session.State) bool {
	if s.Turn == nil {
		return false
	}
	v := session.ViewOf(s)
	if v.Doing != "" && v.Doing != w.doing && v.Phase == session.PhasePreparing {
		w.line("box", v.Doing)
		w.doing = v.Doing
	}
	if v.Phase != w.phase {
		w.phase = v.Phase
		if words, ok := phaseWords[v.Phase]; ok {
			w.line("ship", words)
		}
	}
	w.newSteps(v.Steps)
	return s.Turn.Told
}

var phaseWords = map[session.Phase]string{
	session.PhaseWorking:    "the agent works",
	session.PhasePublishing: "commits and pushes through the git proxy",
	session.PhaseEnded:      "settles the check and has the last word",
}

func (w *watcher) newSteps(steps []string) {
	// A step is shown when it has got its words.
	steps = slices.DeleteFunc(slices.Clone(steps), func(s string) bool { return !strings.Contains(s, ": ") })
	for _, step := range steps[overlap(w.steps, steps):] {
		w.line("agent", shorten(step, 100))
	}
	if len(steps) > 0 {
		w.steps = steps
	}
}

// overlap is how many entries of next were at the end of old.
func overlap(old, next []string) int {
	for n := min(len(old), len(next)); n > 0; n-- {
		if strings.Join(old[len(old)-n:], "\n") == strings.Join(next[:n], "\n") {
			return n
		}
	}
	return 0
}

// ending shows what is left where the request was made, and on the code host.
func (s *stage) ending() error {
	s.scene.ending()
	prs := s.host.PullRequests(demoRepo)
	if len(prs) == 0 {
		return errors.New("no pull request was opened; --verbose shows the log")
	}
	pr := prs[0]
	for _, c := range s.host.Checks(demoRepo, pr.HeadSHA) {
		s.title("The check on " + pr.HeadSHA[:7])
		fmt.Fprintf(s.out, "  %s: %s, %s — %s\n\n", c.Name, c.Status, c.Conclusion, c.Title)
	}
	s.title(fmt.Sprintf("Draft pull request #%d: %s", pr.Number, pr.Title))
	fmt.Fprintf(s.out, "  %s → %s\n\n", pr.Head, pr.Base)
	diff, err := s.host.Diff(demoRepo, pr.Base, pr.Head)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out, s.colored(diff))
	return nil
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ") + "\n"
}

const (
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	plain = "\x1b[0m"
)

func (s *stage) paint(style, text string) string {
	if !s.color {
		return text
	}
	return style + text + plain
}

func (s *stage) title(text string) { fmt.Fprintln(s.out, s.paint(bold, text)) }

func (s *stage) line(who, text string) {
	fmt.Fprintf(s.out, "%s  %s\n", s.paint(dim, fmt.Sprintf("%9s", who)), text)
}

func (s *stage) colored(diff string) string {
	lines := strings.Split(diff, "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "+"):
			lines[i] = s.paint(green, line)
		case strings.HasPrefix(line, "-"):
			lines[i] = s.paint(red, line)
		}
	}
	return strings.Join(lines, "\n")
}
