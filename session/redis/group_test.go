package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

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
	}, 1)
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
