package sessiontest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/session"
)

func archiveTests() map[string]func(*suite) {
	return map[string]func(*suite){
		"peeks without claiming":       peeks,
		"peeks at nothing":             peekUnknown,
		"lists sessions":               lists,
		"forgets":                      forgets,
		"does not forget what is held": forgetHeld,
		"forgets what was abandoned":   forgetAbandoned,
	}
}

func peeks(s *suite) {
	s.append("gh.1.1", "a", "b")
	c := s.claim("gh.1.1", "secret", long)
	s.commit(c.Lease, state(0, 1))
	p := s.peek("gh.1.1")
	if p.Lease.Token != "" {
		s.Errorf("the owner's token is shown: %q", p.Lease.Token)
	}
	want := session.Claim{
		Lease:   session.Lease{ID: "gh.1.1", Epoch: c.Lease.Epoch},
		Version: 1, Cursor: 1, State: state(0, 1).State, Events: c.Events[1:], Now: p.Now,
	}
	if diff := cmp.Diff(want, p); diff != "" {
		s.Errorf("peek (-want +got):\n%s", diff)
	}
	s.commit(c.Lease, state(1, 2))
}

func peekUnknown(s *suite) {
	if _, err := s.Peek(s.Context(), "gh.no.1"); !errors.Is(err, session.ErrUnknown) {
		s.Errorf("Peek: %v, want ErrUnknown", err)
	}
}

func lists(s *suite) {
	if ids, err := s.Sessions(s.Context()); err != nil || len(ids) != 0 {
		s.Errorf("Sessions of an empty store = %v, %v", ids, err)
	}
	var want []session.ID
	for i := range 50 {
		id := session.ID(fmt.Sprintf("gh.7.%d", i))
		s.append(id, "a")
		want = append(want, id)
	}
	// What looks like a session to a careless search is none.
	if _, err := s.Spend(s.Context(), "a:s:b", session.Usage{Calls: 1}); err != nil {
		s.Fatal(err)
	}
	// A dormant one is listed as well.
	s.commit(s.claim(want[0], "t1", long).Lease, released(0, 1, -1))
	got, err := s.Sessions(s.Context())
	slices.Sort(got)
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		s.Errorf("Sessions = %v, %v; want %v", got, err, want)
	}
}

func forgets(s *suite) {
	s.append("gh.1.1", "a", "b")
	s.append("gh.1.2", "c")
	s.commit(s.claim("gh.1.1", "t1", long).Lease, released(0, 1, time.Hour))
	if err := s.Write(s.Context(), "gh.1.1", []string{"line"}); err != nil {
		s.Fatal(err)
	}
	for range 2 { // the second time there is nothing to forget
		if err := s.Forget(s.Context(), "gh.1.1"); err != nil {
			s.Fatalf("Forget: %v", err)
		}
	}
	if _, err := s.Peek(s.Context(), "gh.1.1"); !errors.Is(err, session.ErrUnknown) {
		s.Errorf("Peek after Forget: %v, want ErrUnknown", err)
	}
	if lines, _, err := s.Lines(s.Context(), "gh.1.1", "", 10); err != nil || len(lines) != 0 {
		s.Errorf("transcript after Forget = %v, %v", lines, err)
	}
	if ids, err := s.Sessions(s.Context()); err != nil || !slices.Equal(ids, []session.ID{"gh.1.2"}) {
		s.Errorf("Sessions = %v, %v; want the other one", ids, err)
	}
	if s.isDue("gh.1.1") {
		s.Error("a forgotten session is due")
	}
	if r, err := s.Append(s.Context(), delivery("gh.1.1", "a")); err != nil || !r.Duplicate {
		s.Errorf("Append of what was delivered before = %+v, %v; want a duplicate", r, err)
	}
	s.append("gh.1.1", "new")
	if c := s.claim("gh.1.1", "t2", long); c.Version != 0 || c.Cursor != 0 || c.State != nil || len(c.Events) != 1 {
		s.Errorf("the session begins with %+v, want it new", c)
	}
}

func forgetHeld(s *suite) {
	s.append("gh.1.1", "a")
	l := s.claim("gh.1.1", "t1", long).Lease
	if err := s.Forget(s.Context(), "gh.1.1"); !errors.Is(err, session.ErrNotDue) {
		s.Errorf("Forget of a held session: %v, want ErrNotDue", err)
	}
	s.commit(l, state(0, 1))
}

func forgetAbandoned(s *suite) {
	s.append("gh.1.1", "a")
	l := s.claim("gh.1.1", "t1", 0).Lease
	s.await("the lease to run out", func() bool { return s.isDue("gh.1.1") })
	if err := s.Forget(s.Context(), "gh.1.1"); err != nil {
		s.Fatalf("Forget: %v", err)
	}
	if err := s.Commit(s.Context(), l, state(0, 1)); !errors.Is(err, session.ErrLeaseLost) {
		s.Errorf("Commit to a forgotten session: %v, want ErrLeaseLost", err)
	}
	if _, err := s.Peek(s.Context(), "gh.1.1"); !errors.Is(err, session.ErrUnknown) {
		s.Errorf("the commit brought the session back: %v", err)
	}
}
