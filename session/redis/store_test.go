package redis_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"ship/session"
	"ship/session/redis"
	"ship/session/redis/redistest"
	"ship/session/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(unhurried{m}) }

// unhurried gives goroutines time to end: a pool of go-redis that could not dial
// sees only after a second that it was closed.
type unhurried struct{ *testing.M }

func (u unhurried) Run() int {
	code := u.M.Run()
	for end := time.Now().Add(time.Minute); goleak.Find() != nil && time.Now().Before(end); {
	}
	return code
}

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
