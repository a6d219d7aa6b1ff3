package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ship/session"
	"ship/session/redis/redistest"
)

// patience bounds failures only.
const patience = 2 * time.Minute

func openWith(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
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

// TestCluster runs the store on three primaries. Each refuses any step over two
// slots.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	s := openWith(t, Options{URL: c.URL()})
	checkInboxes(t, s, appendAll(t, s, 100))
	clusterLife(t, s)
	d, err := s.Durability(t.Context())
	if err != nil || d.AppendOnly != true || d.Safe() || !d.Failover {
		t.Errorf("Durability = %s, %v; want it to tell of the failover", d, err)
	}
	contract(t, func() string {
		for _, p := range c.Primaries {
			p.Do("FLUSHALL")
		}
		return c.URL()
	})
}

// clusterLife takes every session through all that a store does.
func clusterLife(t *testing.T, s *Store) {
	ctx := t.Context()
	ids, err := s.Due(ctx, 100)
	if err != nil || len(ids) != 40 {
		t.Fatalf("%d sessions are due, %v; want 40", len(ids), err)
	}
	for _, id := range ids {
		c, err := s.Claim(ctx, id, "t", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		newest, err := s.Renew(ctx, c.Lease, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		k := session.Commit{Cursor: newest, State: []byte("{}"), Release: true, Due: -1, Dead: []session.DeadLetter{{Session: id}}}
		err = errors.Join(s.Commit(ctx, c.Lease, k), s.Write(ctx, id, []string{"line"}))
		_, spendErr := s.Spend(ctx, string(id), session.Usage{Calls: 1})
		if err := errors.Join(err, spendErr); err != nil {
			t.Fatal(err)
		}
	}
	var accounts []string
	for _, id := range ids {
		accounts = append(accounts, string(id))
	}
	spent, err := s.Totals(ctx, accounts...)
	if want := slices.Repeat([]session.Usage{{Calls: 1}}, len(ids)); err != nil || !slices.Equal(spent, want) {
		t.Errorf("spent %v, %v; want a call of each", spent, err)
	}
	all, err := s.Sessions(ctx)
	if err != nil || len(all) != 40 {
		t.Errorf("%d sessions, %v; want 40", len(all), err)
	}
	if dead, err := s.DeadLetters(ctx, 100); err != nil || len(dead) != 40 {
		t.Errorf("%d dead letters, %v; want 40", len(dead), err)
	}
	for _, id := range all {
		if err := s.Forget(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	mustTake(t, s.Places(), onlyOne("a"), 0)
	mustTake(t, s.Places(), onlyOne("b"), 1)
	if next, err := s.Places().Release(ctx, "a", 1); err != nil || len(next) != 1 {
		t.Errorf("after the first come %v, %v", next, err)
	}
}

// TestClusterFailover: one primary of three dies. What the others hold goes on
// all the while, and the rest goes on when its replica has taken over; nothing
// that was accepted is lost, for each delivery waited for the replica.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ctx := t.Context()
	s := openWith(t, Options{URL: c.URL()})
	ids := perShard()
	for _, id := range ids {
		if _, err := s.Append(ctx, request(id, "before")); err != nil {
			t.Fatal(err)
		}
	}
	s.wait = Wait{Replicas: 1}.withDefaults() // of the first only: the others have none
	dying := heldBy(t, s, ids, c.Primaries[0])
	if len(dying) == 0 || len(dying) == len(ids) {
		t.Fatalf("the first primary holds %d of %d shards", len(dying), len(ids))
	}
	for id := range dying {
		if _, err := s.Append(ctx, request(id, "confirmed")); err != nil {
			t.Fatal(err)
		}
	}
	s.wait = Wait{}
	wakes := s.Wakes(ctx)
	c.Primaries[0].Kill()
	killed := time.Now()

	due := retry(t, func() ([]session.ID, error) { return s.Due(ctx, 100) })
	if want := len(ids) - len(dying); len(due) < want {
		t.Errorf("with a primary gone %d sessions are due, want %d", len(due), want)
	}
	if err := s.Ping(ctx); err != nil {
		t.Errorf("Ping with a primary gone: %v", err)
	}
	for _, id := range ids {
		if !dying[id] {
			if _, err := s.Append(ctx, request(id, "meanwhile")); err != nil {
				t.Errorf("append where nothing happened: %v", err)
			}
		}
	}
	for id := range dying {
		r := retry(t, func() (session.Receipt, error) { return s.Append(ctx, request(id, "after")) })
		if r.Seq != 3 && !r.Duplicate {
			t.Errorf("%s: after the failover %+v, want Seq 3", id, r)
		}
	}
	if took := time.Since(killed); took > 45*time.Second {
		t.Errorf("the replica was found after %s: nobody looked around", took)
	}
	t.Logf("the replica took over, and was found, after %s", time.Since(killed).Round(time.Millisecond))
	due = retry(t, func() ([]session.ID, error) { return s.Due(ctx, 100) })
	if len(due) != len(ids) {
		t.Errorf("%d sessions are due, want %d", len(due), len(ids))
	}
	spent := retry(t, func() (session.Usage, error) { return s.Spend(ctx, string(ids[0]), session.Usage{Calls: 1}) })
	if spent.Calls < 1 {
		t.Errorf("spent %+v", spent)
	}
	select {
	case <-wakes:
	case <-time.After(patience):
		t.Error("nobody was woken")
	}
}

// retry calls again what may fail for a while.
func retry[T any](t *testing.T, do func() (T, error)) T {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got, err := do()
		if err == nil {
			return got
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// perShard is a session of each shard.
func perShard() []session.ID {
	ids := make([]session.ID, shards)
	for n, found := 0, 0; found < shards; n++ {
		id := session.ID(fmt.Sprintf("gh.1.%d", n))
		if i := shardOf(string(id)); ids[i] == "" {
			ids[i] = id
			found++
		}
	}
	return ids
}

// heldBy tells which of the sessions a server holds.
func heldBy(t *testing.T, s *Store, ids []session.ID, srv *redistest.Server) map[session.ID]bool {
	t.Helper()
	held := make(map[session.ID]bool)
	first := srv.Do("CLUSTER MYID")
	for _, id := range ids {
		err := s.once(t.Context(), keysOf(id).session, func(node *goredis.Client) error {
			name, err := node.Do(t.Context(), "CLUSTER", "MYID").Text()
			if name == first {
				held[id] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return held
}

// TestWrongKind: what is at an address is not what the address says.
func TestWrongKind(t *testing.T) {
	t.Parallel()
	port := redistest.Port(t)
	node := redistest.Start(t, "--bind", "127.0.0.1", "--port", port, "--cluster-enabled", "yes", "--cluster-port", redistest.Port(t))
	node.Do("CLUSTER ADDSLOTSRANGE 0 16383")
	alone := redistest.Port(t)
	redistest.Start(t, "--bind", "127.0.0.1", "--port", alone)
	for url, want := range map[string]string{
		node.URL():                                      "redis+cluster://",
		"redis+cluster://127.0.0.1:" + alone:            "cluster",
		"redis+sentinel://127.0.0.1:" + alone + "/main": "sentinel",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		s, err := Open(ctx, Options{URL: url})
		cancel()
		if err == nil {
			t.Fatal("Open succeeded", s.Close())
		}
		t.Log(err)
		if !strings.Contains(strings.ToLower(err.Error()), want) {
			t.Errorf("Open(%s): %v; want it to say %q", url, err, want)
		}
	}
}
