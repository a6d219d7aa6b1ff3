package main

import (
	"strings"
	"testing"

	"ship/session"
)

// rivals are two workers where one person may have one turn under way. The first
// is at work for her on one issue until it is stopped, and the second has her
// other issue.
func rivals(t *testing.T) (a, b *rig, second int) {
	a = newRig(t, rigOptions{more: "sandbox: {max: 2}\nlimits: {sessions_per_user: 1}\n"})
	b = a.twin()
	second = a.host.CreateIssue(rigRepo, "mona", "Gadgets are broken", "")
	a.start()
	a.deliver(a.says(a.issue, "/ship SLOWLY"))
	a.await("the agent to be at work", patience, func() bool { return a.working(1) })
	b.start()
	a.freeze() // so that the second takes what comes now
	b.deliver(b.says(second, "/ship fix the gadgets"))
	b.await("the second to take it", patience, func() bool { return strings.Contains(b.log.String(), `"msg":"event"`) })
	a.thaw()
	b.await("it to be told to wait", patience, func() bool { return strings.Contains(b.sticky(second), "⏳ Next in line") })
	return a, b, second
}

// alone waits for something, and for her turns to be at work one at a time until
// then.
func (r *rig) alone(what string, done func() bool) {
	r.t.Helper()
	r.await(what, patience, func() bool {
		working := 0
		for _, s := range r.states() {
			if s.Turn != nil && (s.Turn.Stage == session.Running || s.Turn.Stage == session.Publishing) {
				working++
			}
		}
		if working > 1 {
			r.t.Errorf("%d turns are at work", working)
		}
		return done()
	})
}

// TestPersonLimitOfAllWorkers: a person's second turn waits for the first,
// although another worker has it.
func TestPersonLimitOfAllWorkers(t *testing.T) {
	t.Parallel()
	a, b, second := rivals(t)
	a.deliver(a.says(a.issue, "/ship stop"))
	b.alone("both turns to end", func() bool { return a.turns() == 2 && a.quiet() })
	if text := b.sticky(second); !strings.Contains(text, "### ✅") {
		t.Errorf("the second comment says:\n%s", text)
	}
	b.stop()
	a.stop()
}

// TestPersonLimitOutlivesAWorker: the first worker is killed in the middle of a
// turn. Its place is the turn's, which the other goes on with before the person's
// second may begin.
func TestPersonLimitOutlivesAWorker(t *testing.T) {
	t.Parallel()
	a, b, second := rivals(t)
	a.kill()
	b.alone("the other to take over", func() bool { return len(b.boxes()) == 1 && b.working(1) })
	if text := b.sticky(second); !strings.Contains(text, "⏳ Next in line") {
		t.Errorf("the second comment says:\n%s", text)
	}
	b.deliver(b.says(a.issue, "/ship stop"))
	b.alone("both turns to end", func() bool { return b.turns() == 2 && b.quiet() })
	if text := b.sticky(second); !strings.Contains(text, "### ✅") {
		t.Errorf("the second comment says:\n%s", text)
	}
	b.stop()
}
