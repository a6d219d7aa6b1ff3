package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ship/sandbox/agent/modeltest"
)

// TestStopInMidTurn: the real agent and what it runs end within ten seconds of
// the word, on a machine that has time for it, and what is done so far is kept.
func TestStopInMidTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{opencode: true, script: modeltest.Steps(
		modeltest.Use(modeltest.Bash("echo step one >> STEPS.md")),
		modeltest.Use(modeltest.Bash("sleep 617")),
		modeltest.Say("Never said."),
	)})
	r.start()
	r.deliver(r.says(r.issue, "/ship do the steps"))
	r.await("the agent's second step", patience, func() bool { return len(running("sleep\x00617")) > 0 })
	r.deliver(r.says(r.issue, "/ship stop"))
	r.await("the turn to end as stopped", patience, func() bool { return strings.Contains(r.sticky(r.issue), "### ⏹️") })
	r.ended(r.issue, patience)
	if left := running("sleep\x00617"); len(left) > 0 {
		t.Errorf("what the agent ran still runs: %v", left)
	}
	prs := r.host.PullRequests(rigRepo)
	if len(prs) != 1 {
		t.Fatalf("pull requests: %+v", prs)
	}
	if steps, _ := r.host.File(rigRepo, prs[0].Head, "STEPS.md"); strings.TrimSpace(steps) != "step one" {
		t.Errorf("the branch holds %q", steps)
	}
	r.check(t, "cancelled", "retry", "ready")
	r.stop()
}

// running lists the processes of this machine with a command line.
func running(cmdline string) (pids []string) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(text), cmdline+"\x00") {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

// TestQueue: who waits for a place is told which, may leave the line, and is
// served in order.
func TestQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{more: "sandbox: {max: 1}\n"})
	second := r.host.CreateIssue(rigRepo, "mona", "Second", "")
	third := r.host.CreateIssue(rigRepo, "mona", "Third", "")
	r.start()
	r.deliver(r.says(r.issue, "/ship SLOWLY"))
	r.await("the first to work", patience, func() bool { return strings.Contains(r.sticky(r.issue), "🚢 Working") })
	r.deliver(r.says(second, "/ship second"))
	r.await("the second to wait", patience, func() bool { return strings.Contains(r.sticky(second), "⏳ Next in line") })
	r.deliver(r.says(third, "/ship third"))
	r.await("the third to wait", patience, func() bool { return strings.Contains(r.sticky(third), "⏳ Waiting for a sandbox, number 2") })

	r.deliver(r.says(second, "/ship stop"))
	r.await("the second to be stopped", patience, func() bool { return strings.Contains(r.sticky(second), "### ⏹️") })
	r.await("the third to move up", patience, func() bool { return strings.Contains(r.sticky(third), "⏳ Next in line") })
	r.deliver(r.says(r.issue, "/ship stop"))
	r.await("the first to be stopped", patience, func() bool { return strings.Contains(r.sticky(r.issue), "### ⏹️") })
	r.await("the third to be done", patience, func() bool { return strings.Contains(r.sticky(third), "### ✅") })
	r.await("all sessions to be quiet", patience, r.quiet)
	r.stop()
}

// TestMoreThanThereIsRoomFor: all come to their end.
func TestMoreThanThereIsRoomFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{more: "sandbox: {max: 2}\n"})
	issues := []int{r.issue}
	for range 3 {
		issues = append(issues, r.host.CreateIssue(rigRepo, "mona", "Another", ""))
	}
	r.start()
	for _, n := range issues {
		r.deliver(r.says(n, "/ship do it"))
	}
	r.endedTurns(len(issues), patience)
	for _, n := range issues {
		if !strings.Contains(r.sticky(n), "### ✅") {
			t.Errorf("#%d:\n%s", n, r.sticky(n))
		}
	}
	if n := len(r.host.PullRequests(rigRepo)); n != len(issues) {
		t.Errorf("%d pull requests", n)
	}
	r.stop()
}

// TestStopAfterACrash: ship was dead in the middle of a turn, and the first that
// the next one hears is stop.
func TestStopAfterACrash(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	pr := r.draft()
	r.start()
	r.deliver(r.says(pr.Number, "/ship SLOWLY"))
	r.await("the agent to be at work", patience, func() bool { return r.working(1) })
	r.kill()
	stop := r.says(pr.Number, "/ship stop")
	if r.send(stop) != 0 {
		t.Error("a dead ship answers")
	}
	r.start()
	r.deliver(stop)
	r.await("the turn to end as stopped", patience, func() bool { return strings.Contains(r.sticky(pr.Number), "### ⏹️") })
	r.endedTurns(1, patience)
	if work, _ := r.host.File(rigRepo, "topic", "WORK.md"); work != "began: SLOWLY" {
		t.Errorf("the work so far is %q", work)
	}
	r.check(t, "cancelled", "retry", "ready")
	r.deliver(r.says(pr.Number, "/ship something else")) // the box is free for it
	r.endedTurns(2, patience)
	r.check(t, "success", "retry", "ready")
	r.stop()
}

// boxes are the folders of boxes on this machine.
func (r *rig) boxes() []string {
	r.t.Helper()
	all, err := filepath.Glob(filepath.Join(r.dir, "data", "boxes", "*", "box.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// TestMerged: the box goes soon after the pull request, and what is asked next
// gets a branch and a pull request of its own.
func TestMerged(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	r.start()
	r.deliver(r.says(r.issue, "/ship fix the widgets"))
	r.ended(r.issue, patience)
	first := r.host.PullRequests(rigRepo)[0]
	if n := len(r.boxes()); n != 1 {
		t.Fatalf("%d boxes", n)
	}
	r.deliver(r.host.PullClosed(rigRepo, first.Number, "mona", true))
	r.await("the box to go", patience, func() bool { return len(r.boxes()) == 0 })
	r.deliver(r.says(r.issue, "/ship paint them"))
	r.endedTurns(2, patience)
	prs := r.host.PullRequests(rigRepo)
	if len(prs) != 2 || prs[1].Head == first.Head || prs[1].State != "open" || !prs[1].Draft {
		t.Fatalf("pull requests: %+v", prs)
	}
	if work, _ := r.host.File(rigRepo, prs[1].Head, "WORK.md"); work != "paint them" {
		t.Errorf("the new branch holds %q", work)
	}
	if r.host.PullRequests(rigRepo)[0].HeadSHA != first.HeadSHA {
		t.Error("the merged branch was touched")
	}
	r.stop()
}

// TestClosedInMidTurn: the work stops, is kept, and leaves no box.
func TestClosedInMidTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	r.start()
	r.deliver(r.says(r.issue, "/ship fix the widgets"))
	r.ended(r.issue, patience)
	pr := r.host.PullRequests(rigRepo)[0]
	r.deliver(r.says(pr.Number, "/ship SLOWLY"))
	r.await("the agent to be at work", patience, func() bool { return r.working(2) })
	r.deliver(r.host.PullClosed(rigRepo, pr.Number, "mona", false))
	r.endedTurns(2, patience)
	r.await("the box to go", patience, func() bool { return len(r.boxes()) == 0 })
	if text := r.sticky(r.issue); !strings.Contains(text, "### ⏹️") || !strings.Contains(text, "was closed") {
		t.Errorf("the comment says:\n%s", text)
	}
	if n := len(r.host.PullRequests(rigRepo)); n != 1 {
		t.Errorf("%d pull requests", n)
	}
	r.stop()
}
