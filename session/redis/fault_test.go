package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ship/session"
	"ship/session/redis"
	"ship/session/redis/redistest"
)

const id = session.ID("gh.812345678.4321")

func delivery(key string) session.Delivery {
	return session.Delivery{
		Session: id, Keys: []string{key}, Keep: time.Hour,
		Event: session.Event{
			V: session.EventVersion, Kind: session.Asked, Delivery: key,
			Request: &session.Request{ID: key, Verb: session.Instruct, Text: "please fix the flaky test in the parser"},
		},
	}
}

// raw is a client beside the store, for looking at the server.
func raw(t testing.TB, url string) *goredis.Client {
	t.Helper()
	opts, err := goredis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	rdb := goredis.NewClient(opts)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func mustAppend(t testing.TB, s *redis.Store, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if _, err := s.Append(t.Context(), delivery(key)); err != nil {
			t.Fatal(err)
		}
	}
}

func mustClaim(t testing.TB, s *redis.Store, token string) session.Claim {
	t.Helper()
	c, err := s.Claim(t.Context(), id, token, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func commit(version, cursor int64, release bool) session.Commit {
	return session.Commit{
		Version: version, Cursor: cursor, State: []byte(`{"v":1}`), StateVersion: session.StateVersion,
		Lease: time.Minute, Release: release, Due: -1,
	}
}

// TestKilledServer kills Redis under a hail of deliveries. Whatever was
// acknowledged is there after the restart, and no position is used twice.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := open(t, srv)
	var mu sync.Mutex
	acknowledged := make(map[string]int64)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				key := fmt.Sprintf("%d-%d", i, n)
				r, err := s.Append(ctx, delivery(key))
				if err != nil {
					return
				}
				mu.Lock()
				acknowledged[key] = r.Seq
				if len(acknowledged) == 300 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	srv.Kill()
	cancel(errors.New("killed"))
	wg.Wait()
	srv.Restart()

	seen := make(map[string]int64)
	for after := int64(0); ; {
		events, err := s.Read(t.Context(), id, after)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			if e.Seq != after+1 {
				t.Fatalf("event %d follows %d", e.Seq, after)
			}
			after, seen[e.Delivery] = e.Seq, e.Seq
		}
	}
	for key, seq := range acknowledged {
		if seen[key] != seq {
			t.Errorf("%s was acknowledged as %d and is at %d", key, seq, seen[key])
		}
	}
	if r, err := s.Append(t.Context(), delivery("0-0")); err != nil || !r.Duplicate {
		t.Errorf("the dedupe record is gone: %+v, %v", r, err)
	}
}

// TestForgottenScripts: a restart empties the server's script cache, and
// anybody may flush it.
func TestForgottenScripts(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := open(t, srv)
	rdb := raw(t, srv.URL())
	ctx := t.Context()
	var c session.Claim
	steps := []struct {
		name string
		do   func() error
	}{
		{"append", func() error { _, err := s.Append(ctx, delivery("a")); return err }},
		{"due", func() error { _, err := s.Due(ctx, 10); return err }},
		{"claim", func() (err error) { c, err = s.Claim(ctx, id, "t1", time.Minute); return err }},
		{"renew", func() error { _, err := s.Renew(ctx, c.Lease, time.Minute); return err }},
		{"commit", func() error { return s.Commit(ctx, c.Lease, commit(0, 1, true)) }},
		{"peek", func() error { _, err := s.Peek(ctx, id); return err }},
		{"forget", func() error { return s.Forget(ctx, id) }},
		{"spend", func() error { _, err := s.Spend(ctx, "a", session.Usage{Calls: 1}); return err }},
	}
	for _, step := range steps {
		if err := rdb.ScriptFlush(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		if err := step.do(); err != nil {
			t.Errorf("%s after the scripts were flushed: %v", step.name, err)
		}
	}
}

// TestRestartedServer: connections of the pool are dead and the scripts gone;
// the next call heals both by itself.
func TestRestartedServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := open(t, srv)
	for i := range 3 {
		mustAppend(t, s, fmt.Sprint(i))
		srv.Kill()
		srv.Restart()
		if _, err := s.Due(t.Context(), 10); err != nil {
			t.Errorf("Due after a restart: %v", err)
		}
		srv.Kill()
		srv.Restart()
		if _, err := s.Totals(t.Context(), "a", "b"); err != nil {
			t.Errorf("Totals after a restart: %v", err)
		}
	}
	if got := len(mustClaim(t, s, "t1").Events); got != 3 {
		t.Errorf("%d events, want 3", got)
	}
}

// TestFullServer: a server without memory takes no new work, and lets what runs
// come to its end, which frees memory.
func TestFullServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := open(t, srv)
	mustAppend(t, s, "a", "b")
	l := mustClaim(t, s, "t1").Lease
	rdb := raw(t, srv.URL())
	limit := func(bytes string) {
		if err := rdb.ConfigSet(t.Context(), "maxmemory", bytes).Err(); err != nil {
			t.Fatal(err)
		}
	}
	limit("1mb") // less than it uses
	before := dump(t, rdb)
	if r, err := s.Append(t.Context(), delivery("c")); !goredis.IsOOMError(err) {
		t.Errorf("Append = %+v, %v; want it refused for lack of memory", r, err)
	}
	if after := dump(t, rdb); after != before {
		t.Errorf("a refused Append wrote:\n%s\nbefore:\n%s", after, before)
	}
	if err := s.Write(t.Context(), id, []string{"line"}); !goredis.IsExecAbortError(err) {
		t.Errorf("Write = %v, want it refused", err)
	}
	if _, err := s.Renew(t.Context(), l, time.Minute); err != nil {
		t.Errorf("Renew: %v", err)
	}
	if _, err := s.Spend(t.Context(), "a", session.Usage{Calls: 1}); err != nil {
		t.Errorf("Spend: %v", err)
	}
	if err := s.Commit(t.Context(), l, commit(0, 1, true)); err != nil {
		t.Errorf("Commit: %v", err)
	}
	if err := s.Commit(t.Context(), mustClaim(t, s, "t2").Lease, commit(1, 2, true)); err != nil {
		t.Errorf("Commit: %v", err)
	}
	// A second gateway can start as well.
	open(t, srv)
	limit("0")
	mustAppend(t, s, "c")
}

// TestReadOnlyServer: a primary that was made a replica takes nothing, and all
// goes on where it was when it is a primary again.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := open(t, srv)
	mustAppend(t, s, "a")
	l := mustClaim(t, s, "t1").Lease
	srv.Do("REPLICAOF 127.0.0.1 1")
	_, appendErr := s.Append(t.Context(), delivery("b"))
	_, renewErr := s.Renew(t.Context(), l, time.Minute)
	commitErr := s.Commit(t.Context(), l, commit(0, 1, false))
	for name, err := range map[string]error{"Append": appendErr, "Renew": renewErr, "Commit": commitErr} {
		if !goredis.IsReadOnlyError(err) {
			t.Errorf("%s on a replica: %v, want it refused", name, err)
		}
	}
	srv.Do("REPLICAOF NO ONE")
	mustAppend(t, s, "b")
	if newest, err := s.Renew(t.Context(), l, time.Minute); err != nil || newest != 2 {
		t.Errorf("Renew = %d, %v; want 2 events", newest, err)
	}
	if err := s.Commit(t.Context(), l, commit(0, 2, true)); err != nil {
		t.Errorf("Commit: %v", err)
	}
}

// dump is all keys of a server.
func dump(t testing.TB, rdb *goredis.Client) string {
	t.Helper()
	keys, err := rdb.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d keys: %s", len(keys), strings.Join(keys, " "))
}

// TestLostAnswers loses the answer of every kind of write, once so that the
// store heals it, and so often that the caller has to call again.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for _, lost := range []int32{1, 5} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			p := newProxy(t, srv)
			s, err := redis.Open(t.Context(), redis.Options{URL: p.URL()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			loseThrough(t, s, func() { p.loseNext(lost) }, lost > 2)
		})
	}
}

// loseThrough takes a session through its life; lose makes the store lose
// answers of what comes next, and mustFail says that the first call is to fail.
func loseThrough(t *testing.T, s *redis.Store, lose func(), mustFail bool) {
	ctx := t.Context()
	twice := func(name string, do func() error) {
		t.Helper()
		lose()
		err := do()
		if mustFail != (err != nil) {
			t.Fatalf("%s with lost answers: %v", name, err)
		}
		for tries := 0; err != nil; tries++ {
			if err = do(); tries > 10 {
				t.Fatalf("%s again: %v", name, err)
			}
		}
	}
	var r session.Receipt
	twice("append", func() (err error) { r, err = s.Append(ctx, delivery("a")); return err })
	if r.Seq != 1 {
		t.Errorf("receipt %+v, want Seq 1", r)
	}
	mustAppend(t, s, "b")
	var c session.Claim
	twice("claim", func() (err error) { c, err = s.Claim(ctx, id, "t1", time.Minute); return err })
	if len(c.Events) != 2 || c.Tries != 1 || c.Stolen {
		t.Errorf("claim %+v; want two events at the first try", c)
	}
	twice("renew", func() error { _, err := s.Renew(ctx, c.Lease, time.Minute); return err })
	k := commit(0, 1, false)
	k.Dead = []session.DeadLetter{{Session: id, Cause: "lost"}}
	twice("commit", func() error { return s.Commit(ctx, c.Lease, k) })
	twice("release", func() error { return s.Commit(ctx, c.Lease, commit(1, 2, true)) })
	if p, err := s.Peek(ctx, id); err != nil || p.Version != 2 || p.Cursor != 2 || len(p.Events) != 0 {
		t.Errorf("session %+v, %v; want version 2 and cursor 2", p, err)
	}
	if dead, err := s.DeadLetters(ctx, 10); err != nil || len(dead) != 1 || dead[0].At.IsZero() {
		t.Errorf("dead letters %+v, %v; want one with the time of its burial", dead, err)
	}
	twice("forget", func() error { return s.Forget(ctx, id) })
}

// TestSpendIsNotRepeated: an amount whose answer was lost is counted once.
func TestSpendIsNotRepeated(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	p := newProxy(t, srv)
	s, err := redis.Open(t.Context(), redis.Options{URL: p.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	p.loseNext(1)
	if _, err := s.Spend(t.Context(), "a", session.Usage{Calls: 1}); err == nil {
		t.Fatal("Spend with a lost answer succeeded")
	}
	if got, err := s.Spend(t.Context(), "a", session.Usage{}); err != nil || got.Calls != 1 {
		t.Errorf("the account holds %+v, %v; want 1 call", got, err)
	}
}

// TestFrozenServer: nobody waits longer than a context allows, and what was on
// its way then is not doubled by asking again.
func TestFrozenServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := open(t, srv)
	mustAppend(t, s, "a")
	srv.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if r, err := s.Append(ctx, delivery("b")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Append = %+v, %v; want the deadline", r, err)
	}
	if err := s.Ping(ctx); err == nil {
		t.Error("Ping of a frozen server succeeded")
	}
	srv.Thaw()
	r, err := s.Append(t.Context(), delivery("b"))
	if err != nil || r.Seq != 2 {
		t.Errorf("Append = %+v, %v; want Seq 2", r, err)
	}
}
