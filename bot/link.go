package bot

import (
	"fmt"

	"ship/session"
)

// Link is something on another platform that a text names, such as the issue
// behind an address.
type Link struct {
	// Thread shows how far the work is.
	Thread session.Thread
	// About describes it for the agent, as quoted data; empty if who asks may not
	// read it.
	About string
}

// Standing says in a few words how far the work is, for a place where that is
// all that is said of it. It changes with the phase and with what became of the
// work, not with each step, and holds nothing that anybody wrote.
func Standing(v session.View) string {
	switch {
	case v.Phase == session.PhaseQueued:
		return "Waiting for a sandbox"
	case v.Phase == session.PhaseWorking && v.PR != nil:
		return fmt.Sprintf("Working, pull request #%d is open", v.PR.Number)
	case v.Phase == session.PhaseWorking:
		return "Working"
	}
	return headline(v)
}
