package redis

import (
	"testing"
	"time"

	"ship/session"
	"ship/session/redis/redistest"
)

func TestQuotaRefuses(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	q := openAt(t, srv).Quota()
	some := session.Allowance{Need: [2]int64{1, 1}, Limit: [2]int64{1, 1}, Window: time.Minute}
	news := session.Rate{Limit: [2]int64{1, 1}, Left: [2]int64{1, 1}, Window: time.Minute}
	for _, name := range []string{"", "{00}", "a:b"} {
		if _, err := q.Take(t.Context(), name, some); err == nil {
			t.Errorf("taken from %q", name)
		}
		if err := q.Tell(t.Context(), name, news); err == nil {
			t.Errorf("told %q", name)
		}
	}
	srv.Kill()
	if _, err := q.Take(t.Context(), "acme", some); err == nil {
		t.Error("taken without a server")
	}
	if err := q.Tell(t.Context(), "acme", news); err == nil {
		t.Error("told without a server")
	}
}

// TestQuotaKeepsAccounts: until they are full again and no block is left, and
// not for good.
func TestQuotaKeepsAccounts(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t))
	q := s.Quota()
	key, err := quotaKey("acme", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	lives := func(want time.Duration) {
		t.Helper()
		if left := s.rdb.PTTL(t.Context(), key).Val(); left > want || left < want-10*time.Second {
			t.Errorf("it lives %s, want %s", left, want)
		}
	}
	take := func() {
		t.Helper()
		a := session.Allowance{Need: [2]int64{1, 1}, Limit: [2]int64{9, 9}, Window: time.Minute}
		if _, err := q.Take(t.Context(), "acme", a); err != nil {
			t.Fatal(err)
		}
	}
	tell := func(block time.Duration) {
		t.Helper()
		if err := q.Tell(t.Context(), "acme", session.Rate{Window: time.Minute, Block: block}); err != nil {
			t.Fatal(err)
		}
	}
	take()
	lives(2 * time.Minute)
	tell(time.Minute)
	lives(3 * time.Minute)
	tell(0)
	lives(3 * time.Minute)
	take()
	lives(3 * time.Minute)
}
