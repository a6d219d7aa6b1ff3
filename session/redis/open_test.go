package redis_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ship/session"
	"ship/session/redis"
	"ship/session/redis/redistest"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		set  [2]string
		want string
	}{
		{"a policy that evicts sessions", []string{"--maxmemory-policy", "allkeys-lru"}, [2]string{}, "allkeys-lru"},
		{"a replica", []string{"--replicaof", "127.0.0.1", "1"}, [2]string{}, "primary"},
		{"another number of shards", nil, [2]string{"ship:shards", "32"}, "32 shards"},
		{"a foreign key", nil, [2]string{"ship:shards", "x"}, "ship:shards"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t, test.args...)
			if test.set[0] != "" {
				if err := raw(t, srv.URL()).Set(t.Context(), test.set[0], test.set[1], 0).Err(); err != nil {
					t.Fatal(err)
				}
			}
			s, err := redis.Open(t.Context(), redis.Options{URL: srv.URL()})
			if err == nil {
				t.Fatal("Open succeeded", s.Close())
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open: %v; want it to say %q", err, test.want)
			}
		})
	}
}

func TestOpenUnreachable(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"redis://user:hunter2@127.0.0.1:1", "unix:///tmp/ship-no-such-socket", "http://user:hunter2@host",
		"redis://user:hunter2@ho st", "", "unix://", "unix://" + filepath.Join("/tmp", strings.Repeat("x", 110)),
	} {
		s, err := redis.Open(t.Context(), redis.Options{URL: url})
		if err == nil {
			t.Fatal("Open succeeded", s.Close())
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open shows the password: %v", err)
		}
	}
}

// TestOpenWaitsForData: a server that reads a long append-only file refuses
// everything for a while.
func TestOpenWaitsForData(t *testing.T) {
	t.Parallel()
	p := newProxy(t, redistest.Start(t))
	p.loading.Store(3)
	s, err := redis.Open(t.Context(), redis.Options{URL: p.URL()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	p.loading.Store(1 << 20)
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if _, err := redis.Open(ctx, redis.Options{URL: p.URL()}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Open of a server that never loads: %v, want the deadline", err)
	}
}

func TestDurability(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args []string
		safe bool
		want string
	}{
		{nil, true, "survives its own crash and a power cut"},
		{[]string{"--appendfsync", "everysec"}, false, "about a second"},
		{[]string{"--appendfsync", "no"}, false, "half a minute"},
		{[]string{"--appendonly", "no"}, false, "last snapshot"},
		{[]string{"--maxmemory-policy", "volatile-lru"}, false, "noeviction"},
		{[]string{"--rename-command", "CONFIG", ""}, false, "does not tell"},
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			t.Parallel()
			s := open(t, redistest.Start(t, test.args...))
			d, err := s.Durability(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if d.Safe() != test.safe || !strings.Contains(d.String(), test.want) {
				t.Errorf("Safe %t, %q; want %t, %q", d.Safe(), d, test.safe, test.want)
			}
		})
	}
}

func TestHook(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	var points []string
	s, err := redis.Open(t.Context(), redis.Options{
		URL: srv.URL(), Hook: func(_ context.Context, point string) { points = append(points, point) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	mustAppend(t, s, "a")
	l := mustClaim(t, s, "t1").Lease
	if _, err := s.Renew(t.Context(), l, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), l, commit(0, 1, true)); err != nil {
		t.Fatal(err)
	}
	want := "append.before append.after claim.before claim.after renew.before renew.after commit.before commit.after"
	if got := strings.Join(points, " "); got != want {
		t.Errorf("points %s, want %s", got, want)
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s, err := redis.Open(t.Context(), redis.Options{URL: srv.URL()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Append(t.Context(), delivery("a")); err == nil {
		t.Errorf("Append after Close = %+v", r)
	}
	if _, err := s.Spend(t.Context(), "a", session.Usage{}); err == nil {
		t.Error("Spend after Close succeeded")
	}
}
