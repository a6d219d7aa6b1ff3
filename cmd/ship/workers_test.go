package main

import (
	"os"
	"strings"
	"testing"
)

// TestTwoWorkers: two of them and their boxes share the sessions. Whoever takes
// a session's next turn, it goes on from the branch.
func TestTwoWorkers(t *testing.T) {
	t.Parallel()
	a := newRig(t, rigOptions{})
	b := a.twin()
	a.start()
	b.start()
	issues := []int{a.issue, a.host.CreateIssue(rigRepo, "mona", "Second", ""), a.host.CreateIssue(rigRepo, "mona", "Third", "")}
	for turn, text := range []string{"one", "two", "three"} {
		for _, n := range issues {
			a.deliver(a.says(n, "/ship "+text))
		}
		a.endedTurns((turn+1)*len(issues), patience)
	}
	prs := a.host.PullRequests(rigRepo)
	if len(prs) != len(issues) {
		t.Fatalf("pull requests: %+v", prs)
	}
	for _, pr := range prs {
		if work, _ := a.host.File(rigRepo, pr.Head, "WORK.md"); work != "one\ntwo\nthree" {
			t.Errorf("%s holds %q", pr.Head, work)
		}
	}
	for _, n := range issues {
		if got := a.said(n, "<!-- ship:session="); got != 1 || !strings.Contains(a.sticky(n), "### ✅") {
			t.Errorf("#%d has %d status comments:\n%s", n, got, a.sticky(n))
		}
	}
	took := [2]int{strings.Count(a.log.String(), `"msg":"event"`), strings.Count(b.log.String(), `"msg":"event"`)}
	if t.Logf("requests taken: %v", took); took[0]+took[1] != 3*len(issues) {
		t.Errorf("%v events were read, of %d", took, 3*len(issues))
	}
	b.stop()
	a.stop()
}

// TestRoles: one process takes the webhooks, another does the work.
func TestRoles(t *testing.T) {
	t.Parallel()
	intake := newRig(t, rigOptions{})
	worker := intake.twin()
	intake.role, worker.role = "intake", "worker"
	intake.start()
	d := intake.says(intake.issue, "/ship fix the widgets")
	intake.deliver(d)
	worker.start()
	if status := worker.send(d); status == 200 {
		t.Error("a worker takes webhooks")
	}
	intake.endedTurns(1, patience)
	intake.checkOutcome(t, 1)
	if _, err := os.Stat(intake.dir + "/data/boxes"); err == nil {
		t.Error("the intake has boxes")
	}
	worker.stop()
	intake.stop()
}

// TestUninstalled: the app is taken off the repository in the middle of a turn.
// The turn ends, and what it did is pushed by the retry when it is back.
func TestUninstalled(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	n := r.begin("turn TAKING 12s")
	r.host.Uninstall(rigRepo)
	r.endedTurns(1, patience)
	r.host.Install(rigRepo)
	r.deliver(r.says(n, "/ship retry"))
	r.endedTurns(2, patience)
	if text := r.sticky(n); !strings.Contains(text, "### ✅") {
		t.Errorf("the comment says:\n%s", text)
	}
	if work, _ := r.host.File(rigRepo, "topic", "WORK.md"); strings.Count(work, "\nturn TAKING 12s") != 2 {
		t.Errorf("the branch holds %q", work)
	}
	r.check(t, "success", "retry", "ready")
	r.stop()
}
