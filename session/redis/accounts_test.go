package redis

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/session"
	"ship/session/redis/redistest"
)

// TestAccounts lists those of a prefix, and no others.
func TestAccounts(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t))
	want := map[string]session.Usage{
		"spent:2026-01-31":              {Calls: 3, Input: 5, Output: 7, USD: 1.25},
		"spent:2026-01-31:github:alice": {USD: 0.5},
	}
	for name, u := range want {
		if _, err := s.Spend(t.Context(), name, u); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []string{"spent:2026-02-01", "boxes:2026-01-31", "gh.1.2:1"} {
		if _, err := s.Spend(t.Context(), other, session.Usage{Calls: 1}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Accounts(t.Context(), "spent:2026-01-31")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, bad := range []string{"", "*", "spent:[a]", "a b"} {
		if _, err := s.Accounts(t.Context(), bad); err == nil {
			t.Errorf("%q was scanned for", bad)
		}
	}
}
