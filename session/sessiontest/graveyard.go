package sessiontest

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/session"
)

func graveyardTests() map[string]func(*suite) {
	return map[string]func(*suite){
		"keeps dead letters":            deadLetters,
		"finds one by its id":           findsLetter,
		"drops one":                     dropsLetter,
		"appends a replayed event once": replaysOnce,
	}
}

// bury leaves a dead letter for each of n sessions, and returns them, newest
// first.
func (s *suite) bury(n int) []session.DeadLetter {
	s.Helper()
	var want []session.DeadLetter
	event := asked("a")
	for i := range n {
		id := session.ID(fmt.Sprintf("gh.1.%d", i))
		s.append(id, "a")
		d := session.DeadLetter{
			Session: id, At: time.Unix(int64(1000*i), 0).UTC(), Cause: fmt.Sprint("cause ", i), Event: &event,
			Raw: []byte("\xff\x00"),
		}
		k := released(0, 1, -1)
		k.Dead = []session.DeadLetter{d}
		s.commit(s.claim(id, "t1", long).Lease, k)
		want = append([]session.DeadLetter{d}, want...)
		now := s.now()
		s.await("the clock to go on", func() bool { return s.now().After(now) })
	}
	return want
}

func (s *suite) deadLetters(n int) []session.DeadLetter {
	s.Helper()
	letters, err := s.DeadLetters(s.Context(), n)
	if err != nil {
		s.Fatal(err)
	}
	return letters
}

func deadLetters(s *suite) {
	want := s.bury(5)
	seen := map[string]bool{}
	for i, d := range s.deadLetters(5) {
		if d.ID == "" || seen[d.ID] {
			s.Errorf("dead letter %d has the id %q", i, d.ID)
		}
		seen[d.ID], want[i].ID = true, d.ID
	}
	for _, n := range []int{-1, 0, 2, 5, 100} {
		got, wanted := s.deadLetters(n), want[:max(0, min(n, len(want)))]
		if len(got) != len(wanted) {
			s.Fatalf("%d dead letters, want %d", len(got), len(wanted))
		}
		for i := range got {
			if diff := cmp.Diff(wanted[i], got[i]); diff != "" {
				s.Errorf("dead letter %d of %d (-want +got):\n%s", i, n, diff)
			}
		}
	}
}

func findsLetter(s *suite) {
	s.bury(2)
	for _, want := range s.deadLetters(2) {
		got, err := s.DeadLetter(s.Context(), want.ID)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			s.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	for _, id := range []string{"", "1", "99-1-0", "00-1-1", "gh.1.1"} {
		if _, err := s.DeadLetter(s.Context(), id); !errors.Is(err, session.ErrUnknown) {
			s.Errorf("DeadLetter(%q): %v, want ErrUnknown", id, err)
		}
	}
}

func dropsLetter(s *suite) {
	s.bury(3)
	letters := s.deadLetters(3)
	for range 2 {
		for _, id := range []string{letters[1].ID, "none of ours"} {
			if err := s.DropDeadLetter(s.Context(), id); err != nil {
				s.Fatal(err)
			}
		}
	}
	want := []session.DeadLetter{letters[0], letters[2]}
	if diff := cmp.Diff(want, s.deadLetters(3)); diff != "" {
		s.Errorf("left (-want +got):\n%s", diff)
	}
}

func replaysOnce(s *suite) {
	s.bury(1)
	letter := s.deadLetters(1)[0]
	for i := range 2 {
		r, err := s.Append(s.Context(), letter.Replay())
		if err != nil || r.Duplicate != (i == 1) {
			s.Errorf("replay %d = %+v, %v", i+1, r, err)
		}
	}
	c := s.claim(letter.Session, "t2", long)
	if len(c.Events) != 1 || c.Events[0].Request.Text != "a" {
		s.Errorf("the inbox holds %+v", c.Events)
	}
}
