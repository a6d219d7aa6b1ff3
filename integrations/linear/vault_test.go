package linear

import (
	"testing"

	"ship/session"
	"ship/session/memory"
	"ship/session/redis"
	"ship/session/redis/redistest"
)

// vault is both of what Tokens needs.
type vault interface {
	session.Vault
	session.Locker
}

func onRedis(t *testing.T) *redis.Store {
	t.Helper()
	s, err := redis.Open(t.Context(), redis.Options{URL: redistest.Start(t).URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// onBoth runs a test on every vault there is.
func onBoth(t *testing.T, test func(*testing.T, vault)) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) { t.Parallel(); test(t, &memory.Vault{}) })
	t.Run("redis", func(t *testing.T) { t.Parallel(); test(t, onRedis(t).Vault()) })
}
