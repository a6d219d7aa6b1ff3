package turn

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ship/session"
)

func TestSlotsServeInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, 0)
		far := time.Now().Add(time.Hour)
		if err := s.acquire(t.Context(), claim{id: "a", until: far}, nil); err != nil {
			t.Fatal(err)
		}
		var order []session.ID
		places := map[session.ID][]int{}
		for _, id := range []session.ID{"b", "c"} {
			go func() {
				if err := s.acquire(t.Context(), claim{id: id, until: far}, func(n int) { places[id] = append(places[id], n) }); err != nil {
					t.Error(err)
				}
				order = append(order, id)
			}()
			synctest.Wait()
		}
		if err := s.acquire(t.Context(), claim{id: "a", until: far}, nil); err != nil { // held: at once
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
		far := time.Now().Add(time.Hour)
		got := make(chan session.ID, 4)
		for _, c := range []claim{{"1", "alice", far}, {"2", "alice", far}, {"3", "bob", far}} {
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
		if err := s.acquire(t.Context(), claim{id: "a", until: time.Now().Add(time.Minute)}, nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		left := make(chan error)
		go func() { left <- s.acquire(ctx, claim{id: "b", until: time.Now().Add(time.Hour)}, func(int) {}) }()
		synctest.Wait()
		cancel(session.ErrStopRequested)
		if err := <-left; !errors.Is(err, session.ErrStopRequested) {
			t.Errorf("left with %v", err)
		}
		time.Sleep(2 * time.Minute) // a's owner vanished
		if err := s.acquire(t.Context(), claim{id: "c", until: time.Now().Add(time.Hour)}, nil); err != nil {
			t.Error(err)
		}
	})
}
