package redis_test

import (
	"testing"

	"go.uber.org/goleak"

	"ship/session"
	"ship/session/redis"
	"ship/session/redis/redistest"
	"ship/session/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	sessiontest.RunStore(t, func(t *testing.T) sessiontest.Stores { return open(t, redistest.Start(t)) })
}

func TestVault(t *testing.T) {
	sessiontest.RunVault(t, func(t *testing.T) sessiontest.Vault { return open(t, redistest.Start(t)).Vault() })
}

func TestQuota(t *testing.T) {
	sessiontest.RunQuota(t, func(t *testing.T) session.Quota { return open(t, redistest.Start(t)).Quota() })
}

// open returns a store on a server, closed at the test's end.
func open(t testing.TB, srv *redistest.Server) *redis.Store {
	t.Helper()
	s, err := redis.Open(t.Context(), redis.Options{URL: srv.URL()})
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
