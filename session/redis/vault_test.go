package redis

import (
	"testing"
	"time"

	"ship/session/redis/redistest"
)

// TestVaultOutlivesTheServer: what was swapped in is there after a crash.
func TestVaultOutlivesTheServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	v := openAt(t, srv).Vault()
	if ok, err := v.Swap(t.Context(), "acme", 0, []byte("one"), 0); err != nil || !ok {
		t.Fatal(ok, err)
	}
	srv.Kill()
	if _, err := v.Swap(t.Context(), "acme", 1, []byte("two"), 0); err == nil {
		t.Error("swapped without a server")
	}
	if _, _, err := v.Load(t.Context(), "acme"); err == nil {
		t.Error("loaded without a server")
	}
	if _, err := v.Lock(t.Context(), "acme", "me", time.Hour); err == nil {
		t.Error("locked without a server")
	}
	srv.Restart()
	if got, version, err := v.Load(t.Context(), "acme"); err != nil || string(got) != "one" || version == 0 {
		t.Errorf("loaded %q, %d, %v", got, version, err)
	}
}

// TestVaultKeepsForGood: a ttl of zero takes an earlier one away.
func TestVaultKeepsForGood(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t))
	v := s.Vault()
	key, err := vaultKey("vault", "acme")
	if err != nil {
		t.Fatal(err)
	}
	version := int64(0)
	for _, tt := range []struct {
		ttl  time.Duration
		want func(time.Duration) bool
	}{
		{time.Microsecond, func(left time.Duration) bool { return left <= time.Millisecond }},
		{time.Hour, func(left time.Duration) bool { return left > 59*time.Minute }},
		{0, func(left time.Duration) bool { return left == -1 }},
	} {
		if ok, err := v.Swap(t.Context(), "acme", version, []byte("x"+tt.ttl.String()), tt.ttl); err != nil || !ok {
			t.Fatal(ok, err)
		}
		if left := s.rdb.PTTL(t.Context(), key).Val(); !tt.want(left) {
			t.Errorf("kept for %s, it lives %s", tt.ttl, left)
		}
		if tt.ttl > 0 && tt.ttl < time.Millisecond { // it is over, as soon as anybody looks
			for s.rdb.Exists(t.Context(), key).Val() != 0 {
				time.Sleep(time.Millisecond)
			}
		}
		if _, version, err = v.Load(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVaultRefusesNames(t *testing.T) {
	t.Parallel()
	v := openAt(t, redistest.Start(t)).Vault()
	for _, name := range []string{"", "{00}", "a b", "a:b", "a/b"} {
		if _, _, err := v.Load(t.Context(), name); err == nil {
			t.Errorf("loaded %q", name)
		}
		if _, err := v.Swap(t.Context(), name, 0, []byte("x"), 0); err == nil {
			t.Errorf("swapped %q", name)
		}
		if _, err := v.Lock(t.Context(), name, "me", time.Hour); err == nil {
			t.Errorf("locked %q", name)
		}
		if err := v.Unlock(t.Context(), name, "me"); err == nil {
			t.Errorf("unlocked %q", name)
		}
	}
}
