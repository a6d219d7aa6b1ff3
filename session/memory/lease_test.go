package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"ship/session"
	"ship/session/memory"
)

// TestProven: an owner that has lived for a while was not brought down by what it
// found, and whoever follows it is the first again.
func TestProven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memory.New()
		if _, err := s.Append(t.Context(), asked("a", 0)); err != nil {
			t.Fatal(err)
		}
		c, err := s.Claim(t.Context(), "gh.1.1", "one", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for _, tries := range []int{1, 0} {
			time.Sleep(session.ProvenAfter / 2)
			if _, err := s.Renew(t.Context(), c.Lease, time.Hour); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Peek(t.Context(), "gh.1.1"); err != nil || got.Tries != tries {
				t.Errorf("%d tries, %v; want %d", got.Tries, err, tries)
			}
		}
	})
}
