package sessiontest

import (
	"slices"
	"time"

	"ship/session"
)

func registerTests() map[string]func(*suite) {
	return map[string]func(*suite){
		"knows who has a box":         registers,
		"goes by the last commit":     leavesRegister,
		"holds to its fence":          registerFenced,
		"forgets with the session":    registerForgets,
		"repeats":                     registersTwice,
		"has more than one hand full": registersMany,
	}
}

// house commits that a session has a box, or has none any more.
func (s *suite) house(l session.Lease, version int64, has bool) {
	s.Helper()
	k := state(version, 0)
	k.Housed = has
	s.commit(l, k)
}

func (s *suite) housed(want ...session.ID) {
	s.Helper()
	got, err := s.Housed(s.Context())
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		s.Errorf("with a box are %v, %v; want %v", got, err, want)
	}
}

func registers(s *suite) {
	s.housed()
	s.append("gh.1.1", "a")
	s.append("gh.1.2", "a")
	l := s.claim("gh.1.1", "t1", long).Lease
	s.housed()
	s.house(l, 0, true)
	s.house(s.claim("gh.1.2", "t2", long).Lease, 0, false)
	s.housed("gh.1.1")
	s.house(l, 1, true)
	s.housed("gh.1.1")
}

func leavesRegister(s *suite) {
	s.append("gh.1.1", "a")
	l := s.claim("gh.1.1", "t1", long).Lease
	s.house(l, 0, true)
	k := state(1, 1)
	k.Housed, k.Release, k.Due = true, true, -1
	s.commit(l, k)
	s.housed("gh.1.1") // at rest, with no timer either
	s.append("gh.1.1", "b")
	s.commit(s.claim("gh.1.1", "t2", long).Lease, state(2, 2))
	s.housed()
}

func registerFenced(s *suite) {
	s.append("gh.1.1", "a")
	l := s.claim("gh.1.1", "t1", short).Lease
	s.house(l, 0, true)
	k := state(1, 0)
	k.Housed, k.Lease = true, short
	s.commit(l, k)
	time.Sleep(2 * short)
	s.claim("gh.1.1", "t2", long)
	if err := s.Commit(s.Context(), l, state(2, 0)); err == nil {
		s.Error("who lost the lease commits")
	}
	s.housed("gh.1.1")
}

func registerForgets(s *suite) {
	s.append("gh.1.1", "a")
	l := s.claim("gh.1.1", "t1", long).Lease
	k := state(0, 1)
	k.Housed, k.Release, k.Due = true, true, -1
	s.commit(l, k)
	for range 2 {
		if err := s.Forget(s.Context(), "gh.1.1"); err != nil {
			s.Fatal(err)
		}
		s.housed()
	}
}

func registersTwice(s *suite) {
	s.append("gh.1.1", "a")
	l := s.claim("gh.1.1", "t1", long).Lease
	s.house(l, 0, true)
	s.house(l, 0, true)
	s.housed("gh.1.1")
}

func registersMany(s *suite) {
	var want []session.ID
	for _, n := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		for _, repo := range []session.ID{"gh.1.", "gh.2.", "gh.3.", "gh.4."} {
			id := repo + session.ID(n)
			s.append(id, "a")
			s.house(s.claim(id, "t", long).Lease, 0, true)
			want = append(want, id)
		}
	}
	slices.Sort(want)
	s.housed(want...)
}
