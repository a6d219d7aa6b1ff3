package sessiontest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"ship/session"
)

func commitTests() map[string]func(*suite) {
	return map[string]func(*suite){
		"changes state and cursor":      commits,
		"is refused on another version": conflicts,
		"whose answer was lost":         commitTwice,
		"whose release was lost":        releaseTwice,
		"that lost its lease since":     repeatAfterTakeover,
		"keeps the cursor in bounds":    cursorBounds,
		"keeps the lease":               commitLease,
		"shares no memory":              ownsState,
	}
}

func releaseTests() map[string]func(*suite) {
	return map[string]func(*suite){
		"goes dormant":                releaseDormant,
		"with mail in between":        releaseWithMail,
		"with a timer":                releaseTimer,
		"at once":                     releaseNow,
		"mail comes before the timer": mailBeforeTimer,
		"inbox goes on where it was":  inboxContinues,
		"the next owner is no thief":  releasedIsNotStolen,
	}
}

func commits(s *suite) {
	s.append("gh.1.1", "a", "b", "c")
	l := s.claim("gh.1.1", "t1", long).Lease
	s.commit(l, state(0, 0))
	s.commit(l, state(1, 2))
	p := s.peek("gh.1.1")
	if p.Version != 2 || p.Cursor != 2 || string(p.State) != `{"v":1,"n":2}` {
		s.Errorf("version %d, cursor %d, state %s", p.Version, p.Cursor, p.State)
	}
	if got := s.texts(2, p.Events); !slices.Equal(got, []string{"c"}) {
		s.Errorf("events behind the cursor %v, want c", got)
	}
	events, err := s.Read(s.Context(), "gh.1.1", 0)
	if got := s.texts(2, events); err != nil || !slices.Equal(got, []string{"c"}) {
		s.Errorf("the inbox holds %v, %v; want what was consumed to be trimmed", got, err)
	}
}

func conflicts(s *suite) {
	s.append("gh.1.1", "a")
	l := s.claim("gh.1.1", "t1", long).Lease
	s.commit(l, state(0, 0))
	s.commit(l, state(1, 0))
	for _, version := range []int64{0, 3} {
		if err := s.Commit(s.Context(), l, state(version, 1)); !errors.Is(err, session.ErrConflict) {
			s.Errorf("Commit on version %d of 2: %v, want ErrConflict", version, err)
		}
	}
	if p := s.peek("gh.1.1"); p.Version != 2 || p.Cursor != 0 {
		s.Errorf("a refused commit changed the session: %+v", p)
	}
}

func commitTwice(s *suite) {
	s.append("gh.1.1", "a", "b")
	l := s.claim("gh.1.1", "t1", long).Lease
	k := state(0, 1)
	k.Dead = []session.DeadLetter{{Session: "gh.1.1", At: time.Now(), Cause: "once"}}
	s.commit(l, k)
	s.commit(l, k)
	if p := s.peek("gh.1.1"); p.Version != 1 || p.Cursor != 1 {
		s.Errorf("version %d, cursor %d after the repeat; want 1 and 1", p.Version, p.Cursor)
	}
	if dead, err := s.DeadLetters(s.Context(), 10); err != nil || len(dead) != 1 {
		s.Errorf("dead letters %v, %v; want one", dead, err)
	}
	s.commit(l, state(1, 2))
}

func releaseTwice(s *suite) {
	s.append("gh.1.1", "a")
	l := s.claim("gh.1.1", "t1", long).Lease
	s.commit(l, released(0, 1, 0))
	s.commit(l, released(0, 1, 0))
	// Also when the next owner is there already.
	s.claim("gh.1.1", "t2", long)
	s.commit(l, released(0, 1, 0))
	if p := s.peek("gh.1.1"); p.Version != 1 || s.isDue("gh.1.1") {
		s.Errorf("the repeat disturbed the next owner: version %d", p.Version)
	}
}

func repeatAfterTakeover(s *suite) {
	s.append("gh.1.1", "a")
	l := s.claim("gh.1.1", "t1", long).Lease
	k := state(0, 1)
	k.Lease = 0
	s.commit(l, k)
	s.claimSoon("gh.1.1", "t2", long)
	// It was done, but who hears so would go on as the owner.
	if err := s.Commit(s.Context(), l, k); !errors.Is(err, session.ErrLeaseLost) {
		s.Errorf("Commit = %v, want ErrLeaseLost", err)
	}
}

func cursorBounds(s *suite) {
	s.append("gh.1.1", "a", "b")
	l := s.claim("gh.1.1", "t1", long).Lease
	s.commit(l, state(0, 1))
	for _, cursor := range []int64{0, 3, -1} {
		if err := s.Commit(s.Context(), l, state(1, cursor)); err == nil {
			s.Errorf("Commit with cursor %d of an inbox from 1 to 2 succeeded", cursor)
		}
	}
	if p := s.peek("gh.1.1"); p.Version != 1 || p.Cursor != 1 || len(p.Events) != 1 {
		s.Errorf("a refused commit changed the session: %+v", p)
	}
}

func commitLease(s *suite) {
	s.append("gh.1.1", "a")
	l := s.claim("gh.1.1", "t1", 0).Lease
	s.commit(l, state(0, 1))
	if s.isDue("gh.1.1") {
		s.Error("the session is due under the lease that the commit asked for")
	}
	k := state(1, 1)
	k.Lease = 0
	s.commit(l, k)
	if !s.isDue("gh.1.1") {
		s.Error("the session is not due after a lease of nothing")
	}
}

func ownsState(s *suite) {
	s.append("gh.1.1", "a")
	l := s.claim("gh.1.1", "t1", long).Lease
	k := state(0, 0)
	want := string(k.State)
	s.commit(l, k)
	copy(k.State, "garbage")
	p := s.peek("gh.1.1")
	if string(p.State) != want {
		s.Errorf("state %s, want %s", p.State, want)
	}
	copy(p.State, "garbage")
	p.Events[0].Request.Text = "garbage"
	if p := s.peek("gh.1.1"); string(p.State) != want || p.Events[0].Request.Text != "a" {
		s.Errorf("a caller changed the store's memory: %s, %v", p.State, p.Events[0].Request)
	}
}

func releaseDormant(s *suite) {
	s.append("gh.1.1", "a")
	s.commit(s.claim("gh.1.1", "t1", long).Lease, released(0, 1, -1))
	if s.isDue("gh.1.1") {
		s.Error("a dormant session is due")
	}
	if _, err := s.Claim(s.Context(), "gh.1.1", "t2", long); !errors.Is(err, session.ErrNotDue) {
		s.Errorf("Claim of a dormant session: %v, want ErrNotDue", err)
	}
	s.append("gh.1.1", "b")
	if c := s.claim("gh.1.1", "t2", long); c.Version != 1 || c.Cursor != 1 || len(c.Events) != 1 {
		s.Errorf("claim %+v", c)
	}
}

// releaseWithMail: what came in since the last look must not wait for a wake
// that nobody heard.
func releaseWithMail(s *suite) {
	for i, due := range []time.Duration{-1, time.Hour} {
		id := session.ID(fmt.Sprintf("gh.1.%d", i))
		s.append(id, "a")
		l := s.claim(id, "t1", long).Lease
		s.append(id, "b")
		s.commit(l, released(0, 1, due))
		if !s.isDue(id) {
			s.Errorf("released with due %s: a session with mail is not due", due)
		}
		if c := s.claim(id, "t2", long); !slices.Equal(s.texts(1, c.Events), []string{"b"}) {
			s.Errorf("events %v, want b", c.Events)
		}
	}
}

func releaseTimer(s *suite) {
	s.append("gh.1.1", "a")
	s.commit(s.claim("gh.1.1", "t1", long).Lease, released(0, 1, short))
	began := time.Now()
	c := s.claimSoon("gh.1.1", "t2", long)
	if waited := time.Since(began); waited < short/2 {
		s.Errorf("due after %s, want %s", waited, short)
	}
	if len(c.Events) != 0 || c.Stolen {
		s.Errorf("claim %+v; want no events and no theft", c)
	}
}

func releaseNow(s *suite) {
	s.append("gh.1.1", "a")
	s.commit(s.claim("gh.1.1", "t1", long).Lease, released(0, 1, 0))
	if !s.isDue("gh.1.1") {
		s.Error("not due at once")
	}
}

func mailBeforeTimer(s *suite) {
	s.append("gh.1.1", "a")
	s.commit(s.claim("gh.1.1", "t1", long).Lease, released(0, 1, time.Hour))
	if s.isDue("gh.1.1") {
		s.Error("due before its time")
	}
	s.append("gh.1.1", "b")
	if !s.isDue("gh.1.1") {
		s.Error("mail did not make it due")
	}
}

func inboxContinues(s *suite) {
	for i := range int64(5) {
		s.append("gh.1.1", fmt.Sprint(i))
		c := s.claim("gh.1.1", fmt.Sprintf("t%d", i), long)
		if len(c.Events) != 1 || c.Events[0].Seq != i+1 || c.Cursor != i {
			s.Fatalf("round %d: %+v", i, c)
		}
		s.commit(c.Lease, released(i, i+1, -1))
	}
}

func releasedIsNotStolen(s *suite) {
	s.append("gh.1.1", "a")
	first := s.claim("gh.1.1", "t1", long)
	s.commit(first.Lease, released(0, 1, 0))
	second := s.claim("gh.1.1", "t2", long)
	if second.Stolen || second.Tries != 1 || second.Lease.Epoch <= first.Lease.Epoch {
		s.Errorf("claim %+v after epoch %d", second, first.Lease.Epoch)
	}
}
