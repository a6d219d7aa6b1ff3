package redis

import (
	"testing"

	"ship/session/redis/redistest"
)

func TestQuotaRefuses(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	q := openAt(t, srv).Quota()
	some := [2]int64{1, 1}
	for _, name := range []string{"", "{00}", "a:b"} {
		if _, err := q.Take(t.Context(), name, some, some, 0); err == nil {
			t.Errorf("taken from %q", name)
		}
		if err := q.Tell(t.Context(), name, some, some, 0); err == nil {
			t.Errorf("told %q", name)
		}
	}
	srv.Kill()
	if _, err := q.Take(t.Context(), "acme", some, some, 0); err == nil {
		t.Error("taken without a server")
	}
	if err := q.Tell(t.Context(), "acme", some, some, 0); err == nil {
		t.Error("told without a server")
	}
}
