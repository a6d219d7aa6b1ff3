package main

import (
	"strings"
	"testing"

	"ship/sandbox/agent/modeltest"
)

// costing makes a reply cost about so many cents at the prices of a rig.
func costing(r modeltest.Reply, cents int) modeltest.Reply {
	return r.Costing(modeltest.Usage{Output: cents * 1e4 / 15})
}

// TestBudgets: the real agent works until the turn's money is spent. The thread
// is warned, hears that it is over and is asked; going on is the same
// conversation. When the day's is spent too, it is asked before anything is done.
func TestBudgets(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{
		opencode: true, more: "limits: {budget_usd: 0.10, day_usd: 0.12}\nsandbox: {usd_per_hour: 0.0001}\n",
		script: modeltest.Steps(
			costing(modeltest.Use(modeltest.Bash("echo one > STEPS.md; sleep 5")), 9),
			costing(modeltest.Use(modeltest.Bash("echo two >> STEPS.md")), 2),
			costing(modeltest.Say("Both steps are done."), 2),
			costing(modeltest.Say("Painted."), 1),
		),
	})
	r.start()
	r.deliver(r.says(r.issue, "/ship do the steps"))
	r.wantsPause(t, "The $0.10 that this turn may cost are used up. The work so far is kept.")
	pr := r.host.PullRequests(rigRepo)
	if len(pr) != 1 {
		t.Fatalf("pull requests: %+v", pr)
	}
	if steps, _ := r.host.File(rigRepo, pr[0].Head, "STEPS.md"); strings.TrimSpace(steps) != "one\ntwo" {
		t.Errorf("what was done and pushed: %q", steps)
	}
	checks := r.host.Checks(rigRepo, "")
	if len(checks) != 1 || checks[0].Conclusion != "neutral" {
		t.Errorf("checks: %+v", checks)
	}
	conversation, box := r.states()[0].Conversation, r.states()[0].Box

	r.deliver(r.says(r.issue, "/ship Go on with $0.10 more"))
	r.await("the work to be done", patience, func() bool { return strings.Contains(r.sticky(r.issue), "### ✅") })
	r.await("quiet", patience, r.quiet)
	s := r.states()[0]
	if s.Conversation != conversation || s.Box != box || conversation == "" || s.Turns != 2 {
		t.Errorf("turn %d went on as %s in %s, after %s in %s", s.Turns, s.Conversation, s.Box, conversation, box)
	}
	asked := r.model.Tally("scripted").Requests
	if s.Spent.USD < 0.12 || s.BoxSeconds < 5 {
		t.Errorf("the session has spent %+v, %d s of a box", s.Spent, s.BoxSeconds)
	}

	r.deliver(r.says(r.issue, "/ship paint them"))
	r.wantsPause(t, "What all together may spend today, $0.12, is used up. I have not begun.")
	if n := r.model.Tally("scripted").Requests; n != asked {
		t.Errorf("the model was asked %d times after the day was over", n-asked)
	}
	r.deliver(r.says(r.issue, "/ship yes"))
	r.await("the paint", patience, func() bool { return strings.Contains(r.sticky(r.issue), "Painted.") })
	r.await("quiet", patience, r.quiet)
	r.wantsWarnings(t, "I have spent $0.09 of the $0.10", "All together have spent $0.11 of the $0.12")
	r.stop()
}

// wantsPause waits until the thread is asked whether to go on.
func (r *rig) wantsPause(t *testing.T, why string) {
	t.Helper()
	r.await("the question", patience, func() bool { return strings.Contains(r.sticky(r.issue), "### ⏸️") })
	r.await("quiet", patience, r.quiet)
	if text := r.sticky(r.issue); !strings.Contains(text, why+" Shall I go on with $0.10 more?") || !strings.Contains(text, "- `Leave it`") || !strings.Contains(text, " by all") {
		t.Errorf("the question:\n%s", text)
	}
}

// wantsWarnings: each was heard once.
func (r *rig) wantsWarnings(t *testing.T, all ...string) {
	t.Helper()
	heard := map[string]int{}
	for _, c := range r.host.Comments(rigRepo, r.issue) {
		for _, text := range all {
			if strings.Contains(c.Body, text) {
				heard[text]++
			}
		}
	}
	for _, text := range all {
		if heard[text] != 1 {
			t.Errorf("heard %d times: %s\n%s", heard[text], text, r.host.World())
		}
	}
}
