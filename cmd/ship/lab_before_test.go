package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"github.com/google/go-cmp/cmp"

	"ship/session"
)

// readBefore has the program of an earlier release, if there is one, read what
// is in Redis at the end: it may have to take over again after an upgrade that
// was taken back.
func (l *lab) readBefore() {
	l.t.Helper()
	before := os.Getenv("SHIP_TEST_LAB_READER")
	if before == "" {
		return
	}
	for _, s := range l.states() {
		read, err := l.readBy(before, s.ID)
		if err != nil {
			l.t.Errorf("broken: an earlier release cannot read %s: %v", s.ID, err)
			continue
		}
		if diff := cmp.Diff(gist(s), gist(read)); diff != "" {
			l.t.Errorf("broken: an earlier release reads %s otherwise (-now +then):\n%s", s.ID, diff)
		}
		l.tally.read()
	}
}

// gist is what of a state no release may read otherwise.
func gist(s session.State) map[string]any {
	return map[string]any{"turns": s.Turns, "branch": s.Branch, "box": s.Box, "waiting": len(s.Waiting), "pending": len(s.Pending)}
}

// readBy is a state as another program exports it.
func (l *lab) readBy(program string, id session.ID) (session.State, error) {
	cmd := exec.Command(program, "sessions", "export", string(id), "--config", l.config)
	cmd.Env = append(os.Environ(), l.ships[0].env...)
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := err.(*exec.ExitError); ok {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return session.State{}, err
	}
	var e struct{ State json.RawMessage }
	if err := json.Unmarshal(out, &e); err != nil {
		return session.State{}, err
	}
	return session.DecodeState(id, e.State)
}
