package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ship/session"
	"ship/session/redis/redistest"
)

func openAt(t testing.TB, srv *redistest.Server) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{URL: srv.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func request(id session.ID, key string) session.Delivery {
	return session.Delivery{
		Session: id, Keys: []string{key}, Keep: time.Hour,
		Event: session.Event{V: session.EventVersion, Kind: session.Asked, Delivery: key},
	}
}

// appendAll appends one delivery per caller, all at once.
func appendAll(t testing.TB, s *Store, callers int) []session.Receipt {
	t.Helper()
	receipts := make([]session.Receipt, callers)
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			id := session.ID(fmt.Sprintf("gh.1.%d", i%40))
			receipts[i], errs[i] = s.Append(t.Context(), request(id, fmt.Sprint("k", i)))
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return receipts
}

// checkInboxes finds every event where its receipt says.
func checkInboxes(t testing.TB, s *Store, receipts []session.Receipt) {
	t.Helper()
	for i, r := range receipts {
		id := session.ID(fmt.Sprintf("gh.1.%d", i%40))
		events, err := s.Read(t.Context(), id, r.Seq-1)
		if err != nil || len(events) == 0 || events[0].Seq != r.Seq || events[0].Delivery != fmt.Sprint("k", i) {
			t.Fatalf("delivery %d with receipt %+v: found %+v, %v", i, r, events, err)
		}
	}
}

// TestGroups: 128 callers at once need few round trips, and each gets its own
// answer.
func TestGroups(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t))
	ctx := t.Context()
	// Callers that are here together form a group for certain when the
	// flusher is busy; so let it be.
	if err := s.rdb.ConfigResetStat(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	checkInboxes(t, s, appendAll(t, s, 128))
	info, err := s.rdb.Info(ctx, "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	var calls int
	line := infoFields(info)["cmdstat_evalsha"]
	if _, err := fmt.Sscanf(line, "calls=%d,", &calls); err != nil {
		t.Fatalf("command statistics %q: %v", line, err)
	}
	if calls > 64 {
		t.Errorf("128 deliveries took %d scripts, want them in groups", calls)
	}
	t.Logf("128 deliveries took %d scripts", calls)
}

// TestGroupMembersFailAlone: a delivery that the server refuses does not take
// its neighbours with it.
func TestGroupMembersFailAlone(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t))
	ctx := t.Context()
	bad := session.ID("gh.1.bad")
	if err := s.rdb.Set(ctx, keysOf(bad).inbox, "no stream", 0).Err(); err != nil {
		t.Fatal(err)
	}
	var group []*parcel
	for _, d := range []session.Delivery{request("gh.1.1", "a"), request(bad, "b"), request("gh.1.1", "c"), request("gh.1.1", "a")} {
		p, err := prepare(d)
		if err != nil {
			t.Fatal(err)
		}
		group = append(group, p)
	}
	s.ingest(ctx, group)
	want := []session.Receipt{{Seq: 1}, {}, {Seq: 2}, {Seq: 1, Duplicate: true}}
	for i, p := range group {
		if refused := i == 1; p.receipt != want[i] || (p.err != nil) != refused {
			t.Errorf("delivery %d: %+v, %v; want %+v", i, p.receipt, p.err, want[i])
		}
	}
	if n, err := s.rdb.Exists(ctx, keysOf(bad).session, keysOf(bad).dedupe+"b").Result(); err != nil || n != 0 {
		t.Errorf("the refused delivery left %d keys, %v", n, err)
	}
}

// TestFlusherGathers: what comes in while a group is being written makes up
// the next one.
func TestFlusherGathers(t *testing.T) {
	t.Parallel()
	sizes := make(chan int)
	proceed := make(chan struct{})
	f := newFlusher(t.Context(), func(_ context.Context, group []*parcel) {
		sizes <- len(group)
		<-proceed
	})
	var wg sync.WaitGroup
	send := func(n int, size int) {
		for range n {
			wg.Go(func() {
				if err := f.do(t.Context(), &parcel{size: size}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	send(1, 1)
	if got := <-sizes; got != 1 {
		t.Fatalf("the first group has %d, want 1", got)
	}
	send(maxGroup+10, 1)
	var total int
	for total < maxGroup+10 {
		proceed <- struct{}{}
		got := <-sizes
		if got > maxGroup {
			t.Errorf("a group of %d, want at most %d", got, maxGroup)
		}
		total += got
	}
	proceed <- struct{}{}
	wg.Wait()
	f.stop()
	if err := f.do(t.Context(), &parcel{}); !errors.Is(err, errClosed) {
		t.Errorf("after stop: %v, want errClosed", err)
	}
}

func TestFlusherBoundsBytes(t *testing.T) {
	t.Parallel()
	f := &flusher{parcels: make(chan *parcel, 8)}
	for range 8 {
		f.parcels <- &parcel{size: maxGroupBytes / 2}
	}
	if got := len(f.gather(<-f.parcels)); got != 2 {
		t.Errorf("a group of %d parcels of half the bound each, want 2", got)
	}
}

// TestFlusherSkipsGone: nothing is written for a caller who left.
func TestFlusherSkipsGone(t *testing.T) {
	t.Parallel()
	var wrote []*parcel
	f := &flusher{write: func(_ context.Context, group []*parcel) { wrote = group }}
	gone, cancel := context.WithCancelCause(t.Context())
	left := errors.New("left")
	cancel(left)
	group := []*parcel{
		{ctx: gone, done: make(chan struct{})},
		{ctx: t.Context(), done: make(chan struct{})},
	}
	f.flush(t.Context(), group)
	if len(wrote) != 1 || wrote[0] != group[1] {
		t.Errorf("wrote %d parcels, want the one whose caller waits", len(wrote))
	}
	if <-group[0].done; !errors.Is(group[0].err, left) {
		t.Errorf("the other one's error is %v, want the cause", group[0].err)
	}
}

// TestCluster runs the store on a cluster of one node, which holds all slots
// and refuses any step over two of them.
func TestCluster(t *testing.T) {
	t.Parallel()
	port := clusterPort(t)
	srv := redistest.Start(t, "--cluster-enabled", "yes", "--bind", "127.0.0.1", "--port", port)
	opts := &goredis.ClusterOptions{Addrs: []string{"127.0.0.1:" + port}}
	node, err := parse(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := goredis.NewClient(node)
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	awaitCluster(t, client)
	opts.MaxRetries, opts.MaintNotificationsConfig = -1, node.MaintNotificationsConfig
	s, err := open(t.Context(), goredis.NewClusterClient(opts), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	checkInboxes(t, s, appendAll(t, s, 100))
	clusterLife(t, s)
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
}

func awaitCluster(t *testing.T, client *goredis.Client) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if info, err := client.ClusterInfo(t.Context()).Result(); err == nil && strings.Contains(info, "cluster_state:ok") {
			return
		}
	}
	t.Fatal("the cluster did not form")
}

// clusterPort is a free port whose bus port, 10000 higher, is one as well. Both lie
// below those that the kernel gives to whoever asks for any.
func clusterPort(t *testing.T) string {
	t.Helper()
	for port := 20000 + os.Getpid()%2000; port < 22700; port++ {
		if free(port) && free(port+10000) {
			return fmt.Sprint(port)
		}
	}
	t.Fatal("no port is free")
	return ""
}

func free(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	return err == nil && l.Close() == nil
}
