package main

import (
	"strings"
	"testing"
	"time"
)

// TestLostBox: a box is lost in the middle of a turn, and the turn goes on in
// another from what was saved; people hear so.
func TestLostBox(t *testing.T) {
	if testing.Short() {
		t.Skip("work is saved after three quarters of a minute")
	}
	t.Parallel()
	r := newRig(t, rigOptions{})
	r.start()
	pr := r.draft().Number
	r.deliver(r.says(pr, "/ship turn TAKING 70s"))
	wip := ""
	r.await("the work to be saved", patience, func() bool {
		for _, s := range r.states() {
			if wip = "refs/ship/wip/" + string(s.ID); r.host.Ref(rigRepo, wip) != "" {
				return true
			}
		}
		return false
	})
	killBoxes(t, r.dir+"/data")
	lost := time.Now()
	r.endedTurns(1, patience)
	t.Logf("it took another %s", time.Since(lost).Round(time.Second))
	const began = "began: turn TAKING 70s\n"
	if work, _ := r.host.File(rigRepo, "topic", "WORK.md"); strings.TrimSpace(work) != began+began+"turn TAKING 70s" {
		t.Errorf("the branch holds %q", work)
	}
	if n := r.said(pr, "I continue in a new one from what I had saved at"); n != 1 {
		t.Errorf("it is told %d times that the box was lost", n)
	}
	if left := r.host.Ref(rigRepo, wip); left != "" {
		t.Errorf("the checkpoint is left at %s", left)
	}
	if text := r.sticky(pr); !strings.Contains(text, "### ✅") {
		t.Errorf("the comment says:\n%s", text)
	}
	r.stop()
}
