package session_test

import (
	"fmt"
	"strings"

	"ship/session"
)

// greet posts, where that is how it is done, the message that changes with the
// work, before there is any.
func (p *process) greet(job session.Job) (voice string) {
	if job.Effect.By != "chat" || job.State.Turns > 0 || shownIn(job) != "" {
		return ""
	}
	p.world.make(job.Repeat, "living message")
	return "0.living message"
}

// adopt makes that message the turn's.
func (p *process) adopt(job session.Job) (voice string) {
	message, unbound := strings.CutPrefix(shownIn(job), "0.")
	switch {
	case job.Effect.By != "chat":
		return ""
	case !unbound:
		message = fmt.Sprintf("living message of turn %d", job.Effect.Turn)
		p.world.make(job.Repeat, message)
	}
	return fmt.Sprintf("%d.%s", job.Effect.Turn, message)
}

// shownIn is the message that the effect's thread has.
func shownIn(job session.Job) string {
	for _, v := range job.State.Threads {
		if v.Thread == *job.Effect.Thread {
			return v.Ref
		}
	}
	return ""
}

// write notes which message was last written to.
func (w *world) write(message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = message
}
