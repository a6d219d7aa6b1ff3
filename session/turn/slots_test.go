package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ship/session"
)

func TestSlotsServeInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, 0)
		if err := s.acquire(t.Context(), claim{id: "a", keep: time.Hour}, nil); err != nil {
			t.Fatal(err)
		}
		var order []session.ID
		places := map[session.ID][]int{}
		for _, id := range []session.ID{"b", "c"} {
			go func() {
				if err := s.acquire(t.Context(), claim{id: id, keep: time.Hour}, func(n int) { places[id] = append(places[id], n) }); err != nil {
					t.Error(err)
				}
				order = append(order, id)
			}()
			synctest.Wait()
		}
		if err := s.acquire(t.Context(), claim{id: "a", keep: time.Hour}, nil); err != nil { // held: at once
			t.Fatal(err)
		}
		s.release("a")
		synctest.Wait()
		s.release("a") // twice is fine
		s.release("b")
		synctest.Wait()
		if !slices.Equal(order, []session.ID{"b", "c"}) {
			t.Errorf("order %v", order)
		}
		if !slices.Equal(places["c"], []int{2, 1}) {
			t.Errorf("c was told %v", places["c"])
		}
	})
}

func TestSlotsLetOthersPassWhoHasEnough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(3, 1)
		got := make(chan session.ID, 4)
		for _, c := range []claim{{"1", "alice", time.Hour}, {"2", "alice", time.Hour}, {"3", "bob", time.Hour}} {
			go func() {
				if err := s.acquire(t.Context(), c, func(int) {}); err != nil {
					t.Error(err)
				}
				got <- c.id
			}()
			synctest.Wait()
		}
		if a, b := <-got, <-got; a != "1" || b != "3" {
			t.Errorf("%s and %s have places", a, b)
		}
		s.release("1")
		if id := <-got; id != "2" {
			t.Errorf("then %s", id)
		}
	})
}

func TestSlotsLetGoOfWhoLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, 0)
		if err := s.acquire(t.Context(), claim{id: "a", keep: time.Minute}, nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		left := make(chan error)
		go func() { left <- s.acquire(ctx, claim{id: "b", keep: time.Hour}, func(int) {}) }()
		synctest.Wait()
		cancel(session.ErrStopRequested)
		if err := <-left; !errors.Is(err, session.ErrStopRequested) {
			t.Errorf("left with %v", err)
		}
		time.Sleep(2 * time.Minute) // a's owner vanished
		if err := s.acquire(t.Context(), claim{id: "c", keep: time.Hour}, nil); err != nil {
			t.Error(err)
		}
	})
}

func TestSlotsMakeRoomForWhatIsAtWorkAlready(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, 0)
		if err := s.acquire(t.Context(), claim{id: "a", keep: time.Hour}, nil); err != nil {
			t.Fatal(err)
		}
		s.hold(claim{id: "b", keep: time.Hour}) // an earlier process began it
		got := make(chan error, 1)
		go func() { got <- s.acquire(t.Context(), claim{id: "c", keep: time.Hour}, func(int) {}) }()
		synctest.Wait()
		s.release("a")
		synctest.Wait()
		select {
		case <-got:
			t.Error("a third has a place while there is one too many")
		default:
		}
		s.release("b")
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}

func TestSlotsCountFromWhenAPlaceIsGiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, 0)
		s.hold(claim{id: "a", keep: time.Hour})
		got := make(chan error, 1)
		go func() { got <- s.acquire(t.Context(), claim{id: "b", keep: time.Minute}, func(int) {}) }()
		time.Sleep(50 * time.Minute)
		s.release("a")
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		if s.expire(); len(s.held) != 1 {
			t.Error("who waited for long lost the place at once")
		}
	})
}

func TestSlotsServeWhoWaitsWhenAPlaceLapses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, 0)
		s.hold(claim{id: "a", keep: time.Hour}) // its lease went elsewhere: nobody releases it
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
		defer cancel()
		if err := s.acquire(ctx, claim{id: "b", keep: time.Hour}, func(int) {}); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited > time.Hour+2*time.Minute {
			t.Errorf("waited %s", waited)
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
		s := newSlots(1, 0)
		if err := s.acquire(t.Context(), claim{id: "first", keep: time.Hour}, nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		var told atomic.Int64
		for i := range 500 {
			go func() {
				_ = s.acquire(ctx, claim{id: session.ID(fmt.Sprint(i)), keep: time.Hour}, func(int) { told.Add(1) })
			}()
		}
		synctest.Wait()
		told.Store(0)
		s.release("first")
		synctest.Wait()
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
		return place(session.State{Turn: &session.Turn{Requests: []session.Request{{By: by}}}}, time.Minute).person
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
