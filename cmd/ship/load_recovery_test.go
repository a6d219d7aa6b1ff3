package main

import (
	"testing"
	"time"

	"ship/session"
	"ship/session/redis"
)

// TestLoadRecovery: ship is killed again and again while agents are at work, and
// started anew at once, as a supervisor does. Measured is how long nobody looks
// after a session: from the kill until somebody has claimed it again, and until
// the new process answers.
func TestLoadRecovery(t *testing.T) {
	loaded(t)
	kills, sessions := size(1, 20), size(2, 5)
	r := newRig(t, rigOptions{more: healthSettings(sessions)})
	r.start()
	var issues []int
	for i := range sessions {
		issues = append(issues, r.host.CreateIssue(rigRepo, "mona", "Widget", "It does not turn."))
		r.deliver(r.says(issues[i], "/ship turn it SLOWLY"))
	}
	r.await("all agents to be at work", patience, func() bool { return r.running() == sessions })
	store := r.openStore(t)
	var claimed, answering sample
	for k := range kills {
		before := epochs(t, store)
		killed := time.Now()
		r.kill()
		r.start()
		answering.add(time.Since(killed))
		r.await("the sessions to be claimed", patience, func() bool {
			for id, was := range before {
				if epochOf(t, store, id) > was {
					claimed.add(time.Since(killed))
					delete(before, id)
				}
			}
			return len(before) == 0
		})
		for i, n := range issues { // five owners without any mail between count as poison
			r.deliver(r.says(n, "/ship status"))
			r.await("the answer", patience, func() bool { return r.said(issues[i], "<!-- ship:say=") == k+1 })
		}
		if n := r.running(); n != sessions {
			t.Errorf("%d of %d agents are watched", n, sessions)
		}
	}
	report(t, "%d kills of ship with %d turns under way: it answers again after %s; a turn is watched again after %s",
		kills, sessions, &answering, &claimed)
	for _, s := range r.states() {
		if s.Turns != 1 || s.Turn == nil || s.Turn.Stage != session.Running || s.Turn.Prepares != 1 {
			t.Errorf("session %s: %d turns, %+v", s.ID, s.Turns, s.Turn)
		}
	}
	r.stop()
}

// running counts the sessions whose agent is at work.
func (r *rig) running() (n int) {
	for _, s := range r.states() {
		if s.Turn != nil && s.Turn.Stage == session.Running && s.Conversation != "" {
			n++
		}
	}
	return n
}

// epochs are the generations of all sessions.
func epochs(t *testing.T, store *redis.Store) map[session.ID]int64 {
	t.Helper()
	ids, err := store.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[session.ID]int64{}
	for _, id := range ids {
		all[id] = epochOf(t, store, id)
	}
	return all
}

func epochOf(t *testing.T, store *redis.Store, id session.ID) int64 {
	t.Helper()
	c, err := store.Peek(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return c.Lease.Epoch
}
