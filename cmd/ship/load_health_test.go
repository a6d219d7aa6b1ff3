package main

import (
	"fmt"
	"testing"
	"time"

	"ship/sandbox/agent/modeltest"
)

// answersIn is how soon /healthz has to answer, whatever else is going on. What
// the bare server needed at the same time is not ship's to answer for.
const answersIn = 200 * time.Millisecond

// TestLoadHealth: many sessions work in boxes of this machine at the same time,
// and ship goes on answering.
func TestLoadHealth(t *testing.T) {
	loaded(t)
	n := size(3, 30)
	watchHealth(t, n, rigOptions{more: healthSettings(n)})
}

// TestLoadHealthOpenCode does so with the real agent, which takes half a
// gigabyte and a core while it starts.
func TestLoadHealthOpenCode(t *testing.T) {
	if !alone() {
		t.Skip("set " + loadEnv + " to run the real agent three times at once")
	}
	watchHealth(t, 3, rigOptions{more: healthSettings(3), opencode: true, script: modeltest.Steps(
		modeltest.Use(modeltest.Write("DONE.md", "done\n")),
		modeltest.Use(modeltest.Bash("for i in 1 2 3; do git log >> /tmp/log; sleep 1; done")),
		modeltest.Say("Done."),
	)})
}

// healthSettings let n sessions of one person work side by side.
func healthSettings(n int) string {
	return fmt.Sprintf("sandbox: {max: %d}\nlimits: {sessions_per_user: %d, requests_per_minute: 1000}\n", n, n)
}

func watchHealth(t *testing.T, n int, o rigOptions) {
	t.Helper()
	r := newRig(t, o)
	ship, bare := newPulse("http://"+r.addr+"/healthz"), newPulse("http://"+startBare(t)+"/")
	r.start()
	began := time.Now()
	stop := feel(ship, bare)
	for i := range n {
		issue := r.host.CreateIssue(rigRepo, "mona", fmt.Sprintf("Widget %d", i), "It does not turn.")
		r.deliver(r.says(issue, "/ship fix it"))
	}
	r.endedTurns(n, patience*time.Duration(1+n/10))
	stop()
	if got := len(r.host.PullRequests(rigRepo)); got != n {
		t.Errorf("%d pull requests for %d sessions", got, n)
	}
	report(t, "%d sessions at once, real agent %t, in %s: /healthz %s; a bare server beside it %s",
		n, o.opencode, time.Since(began).Round(time.Second), &ship.took, &bare.took)
	if faults := ship.faults(); len(faults) > 0 {
		t.Errorf("/healthz failed %d times, first: %v", len(faults), faults[0])
	}
	if ship.took.worst() > answersIn+bare.took.worst() && alone() {
		t.Errorf("/healthz took %s; the bare server at worst %s", ship.took.worst(), bare.took.worst())
	}
	r.stop()
}
