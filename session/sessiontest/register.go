package sessiontest

import (
	"slices"
	"time"

	"ship/session"
)

func registerTests() map[string]func(*suite) {
	return map[string]func(*suite){
		"has mail, leases and timers": registers,
		"goes by the last commit":     leavesRegister,
		"holds to its fence":          registerFenced,
		"forgets with the session":    registerForgets,
		"has more than one hand full": registersMany,
	}
}

func (s *suite) scheduled(want ...session.ID) {
	s.Helper()
	got, err := s.Scheduled(s.Context())
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		s.Errorf("scheduled are %v, %v; want %v", got, err, want)
	}
}

func registers(s *suite) {
	s.scheduled()
	s.append("gh.1.1", "a")
	s.scheduled("gh.1.1")
	l := s.claim("gh.1.1", "t1", long).Lease
	s.scheduled("gh.1.1")
	s.append("gh.1.2", "a")
	s.commit(l, released(0, 1, time.Hour))
	s.scheduled("gh.1.1", "gh.1.2")
}

func leavesRegister(s *suite) {
	s.append("gh.1.1", "a")
	k := released(0, 1, -1)
	l := s.claim("gh.1.1", "t1", long).Lease
	s.commit(l, k)
	s.scheduled()
	s.commit(l, k) // its answer was lost
	s.scheduled()
	s.append("gh.1.1", "b")
	s.scheduled("gh.1.1")
}

func registerFenced(s *suite) {
	s.append("gh.1.1", "a")
	l := s.claim("gh.1.1", "t1", short).Lease
	time.Sleep(2 * short)
	s.scheduled("gh.1.1") // for whoever takes it over
	s.claim("gh.1.1", "t2", long)
	if err := s.Commit(s.Context(), l, released(0, 1, -1)); err == nil {
		s.Error("who lost the lease commits")
	}
	s.scheduled("gh.1.1")
}

func registerForgets(s *suite) {
	s.append("gh.1.1", "a")
	s.commit(s.claim("gh.1.1", "t1", long).Lease, released(0, 1, time.Hour))
	for range 2 {
		if err := s.Forget(s.Context(), "gh.1.1"); err != nil {
			s.Fatal(err)
		}
		s.scheduled()
	}
}

func registersMany(s *suite) {
	var want []session.ID
	for _, n := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		for _, repo := range []session.ID{"gh.1.", "gh.2.", "gh.3.", "gh.4."} {
			id := repo + session.ID(n)
			s.append(id, "a")
			want = append(want, id)
		}
	}
	slices.Sort(want)
	s.scheduled(want...)
}
