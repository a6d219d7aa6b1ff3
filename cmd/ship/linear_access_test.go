package main

import (
	"testing"
)

// TestLinearTeamTakenAway in mid-turn: the work ends and is kept, Linear is left
// alone, and the session goes on when the team is given back.
func TestLinearTeamTakenAway(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{})
	r.start()
	id := r.slowly("SLOWLY turn them")
	r.tell(r.linear.ChangeAccess(nil, []string{"ENG"}))
	r.await("the turn to end", patience, r.quiet)
	r.calm()
	r.work(t, 1)
	r.tell(r.linear.ChangeAccess([]string{"ENG"}, nil))
	r.tell(r.linear.Prompt(id, "ada", "oil them"))
	r.settled(id, 1, patience)
	r.work(t, 2)
	r.stop()
}

// TestLinearReinstalled: the app is removed in mid-turn, which ends it, and
// installed again.
func TestLinearReinstalled(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{})
	r.start()
	id := r.slowly("SLOWLY turn them")
	revoked := r.linear.Revoke()
	r.tell(revoked)
	r.await("the turn to end", patience, r.quiet)
	r.calm()
	r.work(t, 1)
	r.linear.Install()
	r.tell(r.linear.Prompt(id, "ada", "oil them"))
	r.settled(id, 1, patience)
	r.tell(revoked.Again()) // late
	r.tell(r.linear.Prompt(id, "ada", "paint them"))
	r.settled(id, 2, patience)
	r.work(t, 3)
	r.stop()
}
