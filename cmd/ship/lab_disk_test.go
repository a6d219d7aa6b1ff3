package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestBoxIsFull: when there is no room left in a box, the work comes out of it
// with the help of what ship reserves there. Without, what the agent committed
// does, and people hear what stayed behind. The next request has a box with room.
func TestBoxIsFull(t *testing.T) {
	t.Parallel()
	began := time.Now()
	l := newLab(t, labOptions{disk: 48 << 20})
	l.story = &story{lab: l}
	g := l.ships[0]
	g.up()
	l.within("the ship to be ready", g.ready)
	t.Logf("the ship is ready after %s", time.Since(began).Round(time.Second))
	talk := newIssueTalk(l).(*issueTalk)
	for turn, part := range []struct{ text, says, commits string }{
		{text: "turn FILL first", says: "is up to date"},
		{text: "turn HOG second", says: "There is no room left on the box's disk, so I pushed only what the agent had committed, and the rest is lost", commits: "committed: turn HOG second"},
		{text: "turn third", says: "is up to date"},
	} {
		for _, p := range talk.says(part.text) {
			l.within("it to be accepted", func() bool { return p(g) })
		}
		l.within("the turn to end", func() bool {
			return l.turnsOf("") == turn+1 && l.quiet() && talk.ended()
		})
		said := l.sticky(talk.number)
		if !strings.Contains(said, part.says) || !strings.Contains(said, "draft pull request [#") {
			t.Errorf("after %q:\n%s\n%s", part.text, said, l.dump())
		}
		_, work := l.someWork()
		for _, line := range []string{"turn FILL first", part.commits} {
			if !strings.Contains(work, line) {
				t.Errorf("after %q, %q is not pushed: %q", part.text, line, work)
			}
		}
		t.Logf("%s after the start, %q is over: %q", time.Since(began).Round(time.Second), part.text, work)
	}
	g.stop()
}

// commitAndHog commits a line and takes what is reserved on the disk, as an agent
// may that deletes what it finds.
func commitAndHog(line string) string {
	_ = leave("committed: " + line) // the test sees that it is missing
	said := commitWork(line)
	reserved, err := filepath.Glob("../.ship-reserve*")
	for _, path := range reserved {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return said + "\n\n" + err.Error()
	}
	return said
}
