package redis

import (
	"testing"
	"time"

	"ship/session"
	"ship/session/redis/redistest"
)

// TestProven: an owner that has lived for a while was not brought down by what it
// found, and whoever follows it is the first again.
func TestProven(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t))
	if _, err := s.Append(t.Context(), request("gh.1.1", "a")); err != nil {
		t.Fatal(err)
	}
	c, err := s.Claim(t.Context(), "gh.1.1", "one", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		lived time.Duration
		tries int
	}{{session.ProvenAfter - 30*time.Second, 1}, {session.ProvenAfter, 0}} {
		if err := s.rdb.HSet(t.Context(), keysOf("gh.1.1").session, "e", c.Now.Add(-tt.lived).UnixMilli()).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Renew(t.Context(), c.Lease, time.Minute); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Peek(t.Context(), "gh.1.1"); err != nil || got.Tries != tt.tries {
			t.Errorf("after %s: %d tries, %v; want %d", tt.lived, got.Tries, err, tt.tries)
		}
	}
}
