package turn

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/sandbox"
	"ship/session"
)

// TestABoxPausedUnnoticedIsLookedAt: a box was paused, and the turn that begins
// knows nothing of it. It is as if it knew.
func TestABoxPausedUnnoticedIsLookedAt(t *testing.T) {
	inTime(t, func(_ *testing.T, h *host) {
		h.turn(true)
		h.boxes["box1"].info.State = sandbox.Paused
		h.turn(true)
		h.wants("made box1", "woke box1")
		h.boxes["box1"].info.State = sandbox.Paused
		h.boxes["box1"].files[markerPath] = "1\n"
		h.turn(true)
		h.wants("made box1", "woke box1", "woke box1", "destroyed box1", "made box2")
	})
}

// TestAStaleHandleIsNoLostBox: what a handle says of its box counts only if the
// provider says the same.
func TestAStaleHandleIsNoLostBox(t *testing.T) {
	inTime(t, func(t *testing.T, h *host) {
		h.turn(false)
		said := fmt.Errorf("box1: %w", sandbox.ErrGone)
		err := h.confirmGone(t.Context(), "box1", said)
		if errors.Is(err, sandbox.ErrGone) || !errors.Is(err, sandbox.ErrTransient) {
			t.Errorf("the box lives, and yet: %v", err)
		}
		if other := errors.New("broken"); h.confirmGone(t.Context(), "box1", other) != other {
			t.Error("another error is not passed on")
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(session.ErrStopRequested)
		if err := h.confirmGone(ctx, "box1", said); !errors.Is(err, sandbox.ErrGone) {
			t.Errorf("nobody was asked, and yet: %v", err)
		}
		delete(h.boxes, "box1")
		if err := h.confirmGone(t.Context(), "box1", said); !errors.Is(err, sandbox.ErrGone) {
			t.Errorf("the box is gone, and yet: %v", err)
		}
	})
}

// TestAnInterruptedBeginningIsBegunAgain: a box whose repository was being made
// ready when something failed is no box that a turn has begun in. What was saved
// of the work is brought back all the same.
func TestAnInterruptedBeginningIsBegunAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.agent(someWork)
	d.mustSave(snapshot{})
	next := d.another()
	next.agent("git config " + making + " true && echo half > b && mkdir new && echo half > new/d")
	if fresh, err := next.init(t.Context()); err != nil || !fresh {
		t.Fatalf("half a repository is fresh: %t, %v", fresh, err)
	}
	next.agent("git config remote.origin.url 'ext::git %s " + d.remote + "'")
	there, err := next.fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := next.enter(t.Context(), true, there); err != nil {
		t.Fatal(err)
	}
	if saved, err := next.recover(t.Context(), wip); err != nil || saved.IsZero() {
		t.Fatalf("saved at %s, %v", saved, err)
	}
	const look = "cat b e new/d .gitignore && git log --format=%s && git symbolic-ref HEAD"
	if diff := cmp.Diff(d.agent(look), next.agent(look)); diff != "" {
		t.Errorf("what was there, and is now (-was +is):\n%s", diff)
	}
	for range 2 {
		if err := next.markWhole(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if fresh, err := next.init(t.Context()); err != nil || fresh {
		t.Errorf("a whole repository is fresh: %t, %v", fresh, err)
	}
}
