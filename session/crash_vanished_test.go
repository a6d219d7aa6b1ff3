package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/session"
	"ship/session/memory"
)

// reconcile is what two workers do who both hold the boxes against the sessions
// and miss this one's, until it is told. A box that nobody counts on just now is
// told of later.
func reconcile(t *testing.T, store *memory.Store, mustBe session.Stage) {
	t.Helper()
	for range 600 {
		s := read(t, store)
		if box := s.OnRecord(); box != nil && s.Turn != nil && s.Turn.Stage == mustBe {
			vanish(t, store, *box, "one")
			vanish(t, store, *box, "two")
			return
		}
		time.Sleep(time.Second)
	}
	t.Errorf("no box was ever on record while the turn was %s", mustBe)
}

// read returns the state of the one session.
func read(t *testing.T, store *memory.Store) session.State {
	t.Helper()
	c, err := store.Peek(t.Context(), "s.1")
	if err != nil {
		t.Error(err)
	}
	s, err := session.DecodeState("s.1", c.State)
	if err != nil {
		t.Error(err)
	}
	return s
}

func vanish(t *testing.T, store *memory.Store, box session.LostBox, by string) {
	t.Helper()
	_, err := store.Append(t.Context(), session.Delivery{
		Session: "s.1", Keys: []string{fmt.Sprint(by, box.Box, box.Since.UnixMilli())}, Known: true,
		Event: session.Event{V: session.EventVersion, Kind: session.Vanished, Lost: &box},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// lose plays a turn whose box is lost in the middle, and once more when it is
// at rest, in processes of which the first dies at a point.
func lose(t *testing.T, killAt int64) (left string, trace []string) {
	store, w := memory.New(), newWorld()
	sc := scene{platform: "plat"}
	first := &process{world: w, store: store, killAt: killAt, died: make(chan struct{})}
	ended := first.start(t.Context())
	sc.ask(t, store, "c1", "fix it")
	second := &process{world: w, store: store, died: make(chan struct{})}
	over := make(chan error, 1)
	go func() {
		select {
		case <-first.died:
			over <- <-second.start(t.Context())
		case <-t.Context().Done():
		}
	}()
	reconcile(t, store, session.Running)
	time.Sleep(90 * time.Second) // the box is paused half a minute later
	reconcile(t, store, session.Ended)
	time.Sleep(10 * time.Minute)
	scheduled, err := store.Scheduled(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if first.dead.Load() {
		second.cancel(session.ErrShutdown)
		<-over
	} else {
		first.cancel(session.ErrShutdown)
	}
	<-ended
	return fmt.Sprintf("%s\nscheduled: %d", w, len(scheduled)), first.trace
}

// TestCrashWhileABoxIsLost: wherever a process dies, the work is done once, in
// another box, and the one that was lost at rest is let go of without a word.
func TestCrashWhileABoxIsLost(t *testing.T) {
	t.Parallel()
	var want string
	var points []string
	synctest.Test(t, func(t *testing.T) { want, points = lose(t, 0) })
	if !strings.Contains(want, "box destroyed") || strings.Contains(want, "box paused") || !strings.HasSuffix(want, "scheduled: 0") ||
		!slices.Contains(points, "effect.tend.after") || strings.Count(strings.Join(points, " "), "effect.prepare.after") != 2 {
		t.Fatalf("the clean run passed %v and left:\n%s", points, want)
	}
	for n := range points {
		t.Run(fmt.Sprintf("%d %s", n+1, points[n]), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got, _ := lose(t, int64(n+1))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("killed at %s (-clean +killed):\n%s", points[n], diff)
				}
			})
		})
	}
}
