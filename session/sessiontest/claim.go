package sessiontest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/session"
)

func claimTests() map[string]func(*suite) {
	return map[string]func(*suite){
		"hands out the session":            claimNew,
		"has one winner":                   claimExclusive,
		"may be repeated":                  claimTwice,
		"needs a token":                    claimNeedsToken,
		"of an unknown session":            claimUnknown,
		"after the lease ran out":          leaseExpires,
		"is fenced from those before":      fenced,
		"counts those without progress":    countsTries,
		"renew keeps it":                   renews,
		"leaves a newer state alone":       newerState,
		"leaves a newer event alone":       newerEvent,
		"epoch rises after a new start":    epochRises,
		"longest waiting first":            dueOrder,
		"a lease that ran out still works": lateOwner,
	}
}

func claimNew(s *suite) {
	s.append("gh.1.1", "a", "b")
	c := s.claim("gh.1.1", "t1", long)
	if got := s.texts(0, c.Events); !slices.Equal(got, []string{"a", "b"}) {
		s.Errorf("events %v", got)
	}
	if skew := time.Since(c.Now); skew < -time.Minute || skew > time.Minute {
		s.Errorf("Now = %s, want the store's time", c.Now)
	}
	if c.Lease.Epoch < c.Now.UnixMilli() {
		s.Errorf("epoch %d is behind the clock %d", c.Lease.Epoch, c.Now.UnixMilli())
	}
	want := session.Claim{Lease: session.Lease{ID: "gh.1.1", Token: "t1", Epoch: c.Lease.Epoch}, Tries: 1, Now: c.Now, Events: c.Events}
	if diff := cmp.Diff(want, c); diff != "" {
		s.Errorf("claim (-want +got):\n%s", diff)
	}
	if s.isDue("gh.1.1") {
		s.Error("a held session is due")
	}
}

func claimExclusive(s *suite) {
	s.append("gh.1.1", "a")
	const callers = 20
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { _, errs[i] = s.Claim(s.Context(), "gh.1.1", fmt.Sprintf("t%d", i), long) })
	}
	wg.Wait()
	var won int
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, session.ErrNotDue) {
			s.Error(err)
		}
	}
	if won != 1 {
		s.Errorf("%d callers hold the session, want 1", won)
	}
}

func claimTwice(s *suite) {
	s.append("gh.1.1", "a")
	first := s.claim("gh.1.1", "t1", long)
	again := s.claim("gh.1.1", "t1", long)
	again.Now = first.Now
	if diff := cmp.Diff(first, again); diff != "" {
		s.Errorf("the repeated claim differs (-first +again):\n%s", diff)
	}
}

func claimNeedsToken(s *suite) {
	s.append("gh.1.1", "a")
	if c, err := s.Claim(s.Context(), "gh.1.1", "", long); err == nil {
		s.Errorf("Claim without a token = %+v", c)
	}
	// A free session has no owner; no token must not stand for that.
	if _, err := s.Renew(s.Context(), session.Lease{ID: "gh.1.1"}, long); !errors.Is(err, session.ErrLeaseLost) {
		s.Errorf("Renew without a token: %v, want ErrLeaseLost", err)
	}
	if err := s.Commit(s.Context(), session.Lease{ID: "gh.1.1"}, state(0, 1)); !errors.Is(err, session.ErrLeaseLost) {
		s.Errorf("Commit without a token: %v, want ErrLeaseLost", err)
	}
}

func claimUnknown(s *suite) {
	if _, err := s.Claim(s.Context(), "gh.no.1", "t1", long); !errors.Is(err, session.ErrNotDue) {
		s.Errorf("Claim: %v, want ErrNotDue", err)
	}
	l := session.Lease{ID: "gh.no.1", Token: "t1"}
	if _, err := s.Renew(s.Context(), l, long); !errors.Is(err, session.ErrLeaseLost) {
		s.Errorf("Renew: %v, want ErrLeaseLost", err)
	}
	if err := s.Commit(s.Context(), l, state(0, 0)); !errors.Is(err, session.ErrLeaseLost) {
		s.Errorf("Commit: %v, want ErrLeaseLost", err)
	}
}

func leaseExpires(s *suite) {
	s.append("gh.1.1", "a")
	began := time.Now() // the lease begins somewhere within the claim
	first := s.claim("gh.1.1", "t1", short)
	second := s.claimSoon("gh.1.1", "t2", long)
	if waited := time.Since(began); waited < short/2 {
		s.Errorf("taken over after %s of a lease of %s", waited, short)
	}
	if !second.Stolen || second.Tries != 2 || second.Lease.Epoch <= first.Lease.Epoch {
		s.Errorf("claim %+v after epoch %d; want it stolen, the second try, under a higher epoch", second, first.Lease.Epoch)
	}
	if len(second.Events) != 1 {
		s.Errorf("%d events, want the one that was not consumed", len(second.Events))
	}
}

func fenced(s *suite) {
	s.append("gh.1.1", "a")
	old := s.claim("gh.1.1", "t1", 0).Lease
	c := s.claimSoon("gh.1.1", "t2", long)
	if _, err := s.Renew(s.Context(), old, long); !errors.Is(err, session.ErrLeaseLost) {
		s.Errorf("Renew by the old owner: %v, want ErrLeaseLost", err)
	}
	for _, k := range []session.Commit{state(0, 1), released(0, 1, -1)} {
		if err := s.Commit(s.Context(), old, k); !errors.Is(err, session.ErrLeaseLost) {
			s.Errorf("Commit by the old owner: %v, want ErrLeaseLost", err)
		}
	}
	if p := s.peek("gh.1.1"); p.Version != 0 || p.Cursor != 0 || p.State != nil {
		s.Errorf("the old owner changed the session: %+v", p)
	}
	s.commit(c.Lease, released(0, 1, -1))
	if _, err := s.Renew(s.Context(), c.Lease, long); !errors.Is(err, session.ErrLeaseLost) {
		s.Errorf("Renew after the release: %v, want ErrLeaseLost", err)
	}
}

func countsTries(s *suite) {
	s.append("gh.1.1", "a", "b")
	for try := 1; try <= 3; try++ {
		c := s.claimSoon("gh.1.1", fmt.Sprintf("t%d", try), 0)
		if c.Tries != try || c.Stolen != (try > 1) {
			s.Fatalf("try %d: Tries %d, Stolen %t", try, c.Tries, c.Stolen)
		}
	}
	// A commit that keeps the cursor is no progress, one that moves it is.
	c := s.claimSoon("gh.1.1", "t4", long)
	s.commit(c.Lease, state(0, 0))
	if got := s.peek("gh.1.1").Tries; got != 4 {
		s.Errorf("Tries after a commit without progress = %d, want 4", got)
	}
	s.commit(c.Lease, state(1, 1))
	if got := s.peek("gh.1.1").Tries; got != 0 {
		s.Errorf("Tries after progress = %d, want 0", got)
	}
}

func renews(s *suite) {
	s.append("gh.1.1", "a")
	l := s.claim("gh.1.1", "t1", 0).Lease
	s.append("gh.1.1", "b")
	newest, err := s.Renew(s.Context(), l, long)
	if err != nil || newest != 2 {
		s.Errorf("Renew = %d, %v; want 2", newest, err)
	}
	if s.isDue("gh.1.1") {
		s.Error("the session is due under a renewed lease")
	}
	if _, err := s.Renew(s.Context(), l, 0); err != nil {
		s.Error(err)
	}
	if !s.isDue("gh.1.1") {
		s.Error("the session is not due after a lease of nothing")
	}
}

// lateOwner: a lease ends when somebody else claims, not by the clock alone.
func lateOwner(s *suite) {
	s.append("gh.1.1", "a")
	l := s.claim("gh.1.1", "t1", 0).Lease
	s.await("the lease to run out", func() bool { return s.isDue("gh.1.1") })
	if _, err := s.Renew(s.Context(), l, 0); err != nil {
		s.Errorf("Renew after the lease ran out: %v", err)
	}
	s.commit(l, state(0, 1))
}

func newerState(s *suite) {
	s.append("gh.1.1", "a")
	l := s.claim("gh.1.1", "t1", long).Lease
	k := released(0, 1, 0)
	k.StateVersion = session.StateVersion + 1
	s.commit(l, k)
	s.refusesNewer("gh.1.1")
	if got := s.peek("gh.1.1").State; string(got) != string(k.State) {
		s.Errorf("state %s, want %s", got, k.State)
	}
}

func newerEvent(s *suite) {
	s.append("gh.1.1", "a")
	d := delivery("gh.1.1", "b")
	d.Event.V = session.EventVersion + 1
	if _, err := s.Append(s.Context(), d); err != nil {
		s.Fatal(err)
	}
	s.append("gh.1.1", "c")
	s.refusesNewer("gh.1.1")
	events, err := s.Read(s.Context(), "gh.1.1", 0)
	if got := s.texts(0, events); err != nil || !slices.Equal(got, []string{"a"}) {
		s.Errorf("Read = %v, %v; want what is before the newer event", got, err)
	}
	if _, err := s.Read(s.Context(), "gh.1.1", 1); !errors.Is(err, session.ErrTooNew) {
		s.Errorf("Read of the newer event: %v, want ErrTooNew", err)
	}
}

// refusesNewer: whoever is too old changes nothing by trying.
func (s *suite) refusesNewer(id session.ID) {
	s.Helper()
	before := s.peek(id)
	for range 3 {
		if _, err := s.Claim(s.Context(), id, "old", long); !errors.Is(err, session.ErrTooNew) {
			s.Fatalf("Claim: %v, want ErrTooNew", err)
		}
	}
	after := s.peek(id)
	after.Now = before.Now
	if diff := cmp.Diff(before, after); diff != "" {
		s.Errorf("a refused claim changed the session (-before +after):\n%s", diff)
	}
	if !s.isDue(id) {
		s.Error("the session is not due for a newer release")
	}
}

func epochRises(s *suite) {
	s.append("gh.1.1", "a")
	c := s.claim("gh.1.1", "t1", long)
	s.commit(c.Lease, released(0, 1, -1))
	if err := s.Forget(s.Context(), "gh.1.1"); err != nil {
		s.Fatal(err)
	}
	s.await("the clock to go on", func() bool { return s.now().After(c.Now) })
	s.append("gh.1.1", "b")
	if again := s.claim("gh.1.1", "t2", long); again.Lease.Epoch <= c.Lease.Epoch {
		s.Errorf("epoch %d after %d", again.Lease.Epoch, c.Lease.Epoch)
	}
}

// now is the store's clock, seen through a session made for it.
func (s *suite) now() time.Time {
	s.Helper()
	if _, err := s.Append(s.Context(), delivery("clock", "clock")); err != nil {
		s.Fatal(err)
	}
	return s.peek("clock").Now
}

func dueOrder(s *suite) {
	s.now()
	s.claim("clock", "t1", long) // and so it is not due itself
	var want []session.ID
	for i := range 20 {
		id := session.ID(fmt.Sprintf("gh.1.%d", i))
		want = append(want, id)
		s.append(id, "a")
		began := s.now()
		s.await("the clock to go on", func() bool { return s.now().After(began) })
	}
	s.append(want[0], "b") // who waits already keeps its place
	got, err := s.Due(s.Context(), 1000)
	if err != nil || !slices.Equal(got, want) {
		s.Errorf("Due = %v, %v; want %v", got, err, want)
	}
	if got, err = s.Due(s.Context(), 3); err != nil || len(got) != 3 || got[0] != want[0] {
		s.Errorf("Due of 3 = %v, %v", got, err)
	}
	if got, err = s.Due(s.Context(), 0); err != nil || len(got) != 0 {
		s.Errorf("Due of 0 = %v, %v", got, err)
	}
}
