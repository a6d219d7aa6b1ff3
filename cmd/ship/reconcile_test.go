package main

import (
	"strings"
	"testing"
)

// hurried holds boxes against sessions every second, and not every few minutes.
const hurried = "SHIP_TEST_ROUNDS=1s"

// TestABoxThatIsGoneIsNoticed although nobody works in it, whether ship was there
// when it went or not: nothing is counted any more, nobody hears of it, and what
// is asked next gets another box.
func TestABoxThatIsGoneIsNoticed(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{more: "sandbox: {idle_pause: 30m}\n"}) // before that, nobody looks
	r.start(hurried)
	r.deliver(r.says(r.issue, "/ship fix the widgets"))
	r.ended(r.issue, patience)
	if s := r.states()[0]; len(r.boxes()) != 1 || s.Box == "" || !strings.HasPrefix(s.Site, "local.") {
		t.Fatalf("%d boxes, and on record is %q of %q", len(r.boxes()), s.Box, s.Site)
	}
	said := r.host.World()
	killBoxes(t, r.dir+"/data")
	r.letGo(t)

	r.deliver(r.says(r.issue, "/ship paint them"))
	r.endedTurns(2, patience)
	before := r.states()[0].Left
	r.kill()
	killBoxes(t, r.dir+"/data")
	r.start(hurried)
	r.letGo(t)
	if left := r.states()[0].Left; len(left) != len(before)+1 {
		t.Errorf("left are %v, and were %v", left, before)
	}
	if strings.Contains(r.host.World(), "was lost") || strings.Contains(said, "was lost") {
		t.Errorf("people hear of a box that nobody was at work in:\n%s", r.host.World())
	}
	if n := len(r.host.PullRequests(rigRepo)); n != 1 {
		t.Errorf("%d pull requests", n)
	}
	r.stop()
}

// letGo waits until the one session has no box on record.
func (r *rig) letGo(t *testing.T) {
	t.Helper()
	r.await("the box to be missed", patience, func() bool { return r.states()[0].Box == "" && r.quiet() })
	if s := r.states()[0]; s.Life != nil || !s.Metered.IsZero() || s.BoxSeconds == 0 {
		t.Errorf("after %d s, a box that is gone is counted since %s: %+v", s.BoxSeconds, s.Metered, s.Life)
	}
}
