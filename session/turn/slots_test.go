package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ship/session"
	"ship/session/memory"
)

// slotsOf is a worker's part of places that it may share.
func slotsOf(p session.Places, most session.Most) *slots {
	return newSlots(Config{Places: p, Slots: most.Worker, PerPerson: most.Person, Total: most.All, Log: slog.New(slog.DiscardHandler)})
}

// alone is a worker with places of its own.
func alone(limit, perPerson int) *slots {
	return slotsOf(&memory.Places{}, session.Most{Worker: limit, Person: perPerson})
}

// of is what a session asks for, for a person's turn.
func (s *slots) of(id session.ID, person string, keep time.Duration) session.Stake {
	return s.stake(session.Job{
		Lease: session.Lease{ID: id, Epoch: 1},
		State: session.State{ID: id, Turn: &session.Turn{Requests: []session.Request{{By: session.Person{Login: person}}}}},
	}, keep)
}

// some is what a session asks for, for somebody's turn.
func (s *slots) some(id session.ID) session.Stake { return s.of(id, string(id), time.Hour) }

func mustAcquire(t *testing.T, s *slots, st session.Stake) {
	t.Helper()
	if err := s.acquire(t.Context(), st, func(int) {}); err != nil {
		t.Fatal(err)
	}
}

func mustRelease(t *testing.T, s *slots, id session.ID) {
	t.Helper()
	if err := s.release(t.Context(), id, 1); err != nil {
		t.Fatal(err)
	}
}

// begin acquires in the background, and has the session in the line when it
// returns.
func begin(t *testing.T, s *slots, st session.Stake, tell func(int)) <-chan error {
	got := make(chan error, 1)
	go func() { got <- s.acquire(t.Context(), st, tell) }()
	synctest.Wait()
	return got
}

func has(got <-chan error) bool {
	synctest.Wait()
	return len(got) == 1
}

func TestSlotsServeInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := alone(1, 0)
		mustAcquire(t, s, s.some("a"))
		places := map[session.ID][]int{}
		got := map[session.ID]<-chan error{}
		for _, id := range []session.ID{"b", "c"} {
			got[id] = begin(t, s, s.some(id), func(n int) { places[id] = append(places[id], n) })
		}
		mustAcquire(t, s, s.some("a")) // held: at once
		mustRelease(t, s, "a")
		if !has(got["b"]) || has(got["c"]) {
			t.Error("the second is not served alone")
		}
		mustRelease(t, s, "a") // twice is fine
		time.Sleep(time.Minute)
		mustRelease(t, s, "b")
		if !has(got["c"]) {
			t.Error("the third is not served")
		}
		if !slices.Equal(places["c"], []int{2, 1}) {
			t.Errorf("c was told %v", places["c"])
		}
	})
}

func TestSlotsLetOthersPassWhoHasEnough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := alone(3, 1)
		first := begin(t, s, s.of("1", "alice", time.Hour), func(int) {})
		second := begin(t, s, s.of("2", "alice", time.Hour), func(int) {})
		bobs := begin(t, s, s.of("3", "bob", time.Hour), func(int) {})
		if !has(first) || has(second) || !has(bobs) {
			t.Fatal("the wrong ones have places")
		}
		if taken, waiting := s.count(); taken != 2 || waiting[session.FullPerson] != 1 || len(waiting) != 1 {
			t.Errorf("%d are taken, %v wait", taken, waiting)
		}
		mustRelease(t, s, "1")
		if !has(second) {
			t.Error("then the second has none")
		}
	})
}

// TestSlotsOfAllWorkers: what one worker's turns take, another's wait for, and
// hear of when a hint comes, or later by the clock.
func TestSlotsOfAllWorkers(t *testing.T) {
	t.Parallel()
	for _, hinted := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			shared := &memory.Places{}
			a, b := slotsOf(shared, session.Most{Worker: 2, Person: 1, All: 2}), slotsOf(shared, session.Most{Worker: 2, Person: 1, All: 2})
			mustAcquire(t, a, a.of("1", "alice", time.Hour))
			alices := begin(t, b, b.of("2", "alice", time.Hour), func(int) {})
			mustAcquire(t, b, b.of("3", "bob", time.Hour))
			cids := begin(t, b, b.of("4", "cid", time.Hour), func(int) {})
			if has(alices) || has(cids) {
				t.Fatal("too many have places")
			}
			mustRelease(t, a, "1")
			if hinted {
				w := Worker{slots: b}
				woken := make(chan session.ID, 2)
				woken <- "2"
				woken <- "stranger"
				close(woken)
				if err := w.Heed(t.Context(), woken); err != nil {
					t.Error(err)
				}
			} else {
				time.Sleep(5 * time.Second)
			}
			if !has(alices) || has(cids) {
				t.Error("the first in line is not served alone")
			}
			mustRelease(t, b, "3")
			if !has(cids) {
				t.Error("the last is not served")
			}
		})
	}
}

func TestSlotsLetGoOfWhoLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := alone(1, 0)
		mustAcquire(t, s, s.of("a", "alice", time.Minute))
		ctx, cancel := context.WithCancelCause(t.Context())
		left := make(chan error)
		go func() { left <- s.acquire(ctx, s.some("b"), func(int) {}) }()
		synctest.Wait()
		cancel(session.ErrStopRequested)
		if err := <-left; !errors.Is(err, session.ErrStopRequested) {
			t.Errorf("left with %v", err)
		}
		time.Sleep(2 * time.Minute) // a's owner vanished
		mustAcquire(t, s, s.some("c"))
	})
}

// TestSlotsPassOn: when the process ends, its sessions keep their places in the
// line, and those they work in, for whoever goes on with them.
func TestSlotsPassOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := &memory.Places{}
		a, b := slotsOf(shared, session.Most{All: 1}), slotsOf(shared, session.Most{All: 1})
		mustAcquire(t, a, a.some("1"))
		ctx, cancel := context.WithCancelCause(t.Context())
		left := make(chan error)
		go func() { left <- a.acquire(ctx, a.some("2"), func(int) {}) }()
		synctest.Wait()
		third := begin(t, b, b.some("3"), func(int) {})
		cancel(session.ErrShutdown)
		<-left
		a.letGo(ctx, a.some("1"))
		if taken, waiting := a.count(); taken != 0 || len(waiting) != 0 {
			t.Errorf("%d are taken, %v wait where nothing is done", taken, waiting)
		}
		again := func(id session.ID) session.Stake {
			st := b.some(id)
			st.Epoch = 2
			return st
		}
		second := begin(t, b, again("2"), func(int) {})
		mustAcquire(t, b, again("1"))
		if has(second) || has(third) {
			t.Fatal("the place was given away")
		}
		mustRelease(t, a, "1") // an owner that was frozen
		if has(second) || has(third) {
			t.Fatal("the place was given away by who has no lease")
		}
		if err := b.release(t.Context(), "1", 2); err != nil {
			t.Fatal(err)
		}
		if !has(second) || has(third) {
			t.Error("who waits for longer is not served first")
		}
		mustAcquire(t, b, again("2"))
		if err := b.release(t.Context(), "2", 2); err != nil || !has(third) {
			t.Error("then the third is not served", err)
		}
	})
}

// absent are places of a store that does not answer for a while.
type absent struct {
	session.Places
	gone atomic.Bool
}

func (a *absent) Take(ctx context.Context, s session.Stake) (session.Standing, error) {
	if a.gone.Load() {
		return session.Standing{}, errors.New("no answer")
	}
	return a.Places.Take(ctx, s)
}

func (a *absent) Release(ctx context.Context, id session.ID, epoch int64) ([]session.ID, error) {
	if a.gone.Load() {
		return nil, errors.New("no answer")
	}
	return a.Places.Release(ctx, id, epoch)
}

// TestSlotsBearAnOutage: who waits waits on and keeps the place in the line, and
// what could not be given back is free when its time is over.
func TestSlotsBearAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &absent{Places: &memory.Places{}}
		s := slotsOf(store, session.Most{Worker: 1})
		mustAcquire(t, s, s.some("a"))
		var told []int
		first := begin(t, s, s.some("b"), func(n int) { told = append(told, n) })
		second := begin(t, s, s.some("c"), func(int) {})
		store.gone.Store(true)
		if err := s.release(t.Context(), "a", 1); err == nil {
			t.Error("a place was given back without a store")
		}
		s.hold(t.Context(), s.some("b"))
		time.Sleep(5 * time.Minute)
		store.gone.Store(false)
		time.Sleep(54 * time.Minute)
		if has(first) || has(second) {
			t.Fatal("a place that is held was given away")
		}
		time.Sleep(2 * time.Minute)
		if !has(first) || has(second) {
			t.Error("the first in line is not served alone")
		}
		if !slices.Equal(told, []int{1}) {
			t.Errorf("it was told %v", told)
		}
		mustRelease(t, s, "b")
		if !has(second) {
			t.Error("then the second is not served")
		}
	})
}

func TestSlotsMakeRoomForWhatIsAtWorkAlready(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := alone(1, 0)
		mustAcquire(t, s, s.some("a"))
		s.hold(t.Context(), s.some("b")) // an earlier process began it
		got := begin(t, s, s.some("c"), func(int) {})
		mustRelease(t, s, "a")
		if has(got) {
			t.Error("a third has a place while there is one too many")
		}
		mustRelease(t, s, "b")
		if !has(got) {
			t.Error("the third has none")
		}
	})
}

func TestSlotsCountFromWhenAPlaceIsGiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := alone(1, 0)
		s.hold(t.Context(), s.some("a"))
		got := begin(t, s, s.of("b", "bob", time.Minute), func(int) {})
		time.Sleep(50 * time.Minute)
		mustRelease(t, s, "a")
		if !has(got) {
			t.Fatal("no place")
		}
		time.Sleep(50 * time.Second)
		if taken, _ := s.count(); taken != 1 || has(begin(t, s, s.some("c"), func(int) {})) {
			t.Error("who waited for long lost the place at once")
		}
		mustRelease(t, s, "b")
	})
}

func TestSlotsServeWhoWaitsWhenAPlaceLapses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := alone(1, 0)
		s.hold(t.Context(), s.some("a")) // its lease went elsewhere: nobody releases it
		began := time.Now()
		mustAcquire(t, s, s.some("b"))
		if waited := time.Since(began); waited < time.Hour || waited > time.Hour+time.Minute {
			t.Errorf("waited %s", waited)
		}
		if taken, _ := s.count(); taken != 1 {
			t.Errorf("%d are taken", taken)
		}
	})
}

func TestPlacesAreToldRoughly(t *testing.T) {
	t.Parallel()
	for place, want := range map[int]int{1: 1, 9: 9, 10: 10, 11: 20, 20: 20, 21: 30, 100: 100, 101: 200, 999: 1000, 1001: 2000} {
		if got := roundPlace(place); got != want {
			t.Errorf("place %d is told as %d, want %d", place, got, want)
		}
	}
}

// TestFewAreToldOfAMove: most of those who wait far behind hear nothing when the
// queue moves up by one.
func TestFewAreToldOfAMove(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := alone(1, 0)
		mustAcquire(t, s, s.some("first"))
		ctx, cancel := context.WithCancelCause(t.Context())
		var told atomic.Int64
		for i := range 500 {
			go func() { _ = s.acquire(ctx, s.some(session.ID(fmt.Sprint(i))), func(int) { told.Add(1) }) }()
		}
		synctest.Wait()
		told.Store(0)
		mustRelease(t, s, "first")
		time.Sleep(time.Minute)
		if n := told.Load(); n == 0 || n > 30 {
			t.Errorf("%d of 499 were told that the queue moved", n)
		}
		cancel(session.ErrShutdown)
		synctest.Wait()
	})
}

// TestPlacesAreOfAnAccount: nobody has more places by calling themselves
// otherwise, where that is all that is known of them.
func TestPlacesAreOfAnAccount(t *testing.T) {
	t.Parallel()
	of := func(by session.Person) string {
		state := session.State{Turn: &session.Turn{Requests: []session.Request{{By: by}}}}
		return alone(1, 1).stake(session.Job{State: state}, time.Minute).Person
	}
	if a, b := of(session.Person{Login: "Ada on Slack", Account: "U1"}), of(session.Person{Login: "The Boss on Slack", Account: "U1"}); a != b {
		t.Errorf("one account is %q and %q", a, b)
	}
	if a, b := of(session.Person{Login: "Ada on Slack", Account: "U1"}), of(session.Person{Login: "Ada on Slack", Account: "U2"}); a == b {
		t.Errorf("two accounts are both %q", a)
	}
	if got := of(session.Person{Login: "ada"}); got != "ada" {
		t.Errorf("who has a login is %q", got)
	}
}
