package redis_test

import (
	"testing"

	"go.uber.org/goleak"

	"ship/session/redis"
	"ship/session/redis/redistest"
	"ship/session/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	sessiontest.RunStore(t, func(t *testing.T) sessiontest.Stores { return open(t, redistest.Start(t)) })
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
