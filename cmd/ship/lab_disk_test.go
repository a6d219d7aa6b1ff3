package main

import (
	"strings"
	"testing"
)

// TestBoxIsFull: when there is no room left in a box, the turn ends with a
// sentence, and what was saved before is kept. The next request is heard.
func TestBoxIsFull(t *testing.T) {
	t.Parallel()
	l := newLab(t, labOptions{disk: 48 << 20})
	l.story = &story{lab: l}
	for _, g := range l.ships {
		g.up()
	}
	l.within("both ships to be ready", func() bool { return l.ships[0].ready() && l.ships[1].ready() })
	talk := newIssueTalk(l).(*issueTalk)
	for turn, text := range []string{"turn first", "turn FILL second", "turn third"} {
		for _, p := range talk.says(text) {
			l.within("it to be accepted", func() bool { return p(l.ships[0]) })
		}
		l.within("the turn to end", func() bool {
			return l.turnsOf("") == turn+1 && l.quiet() && talk.ended()
		})
		said := l.sticky(talk.number)
		t.Logf("after %q, boxes %+v:\n%s", text, l.boxes.Boxes(), said)
		if full := strings.Contains(said, "There is no room left on the box's disk"); full != strings.Contains(text, "FILL") {
			t.Errorf("what is said of %q is not what happened", text)
		}
		if _, work := l.someWork(); !strings.Contains(work, "turn first") {
			t.Errorf("what was saved is gone: %q", work)
		}
	}
	for _, g := range l.ships {
		g.stop()
	}
}
