package turn

import (
	"context"
	"errors"
	"fmt"
	"testing"

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
		err := h.verdict(t.Context(), "box1", said)
		if errors.Is(err, sandbox.ErrGone) || !errors.Is(err, sandbox.ErrTransient) {
			t.Errorf("the box lives, and yet: %v", err)
		}
		if other := errors.New("broken"); h.verdict(t.Context(), "box1", other) != other {
			t.Error("another error is not passed on")
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(session.ErrStopRequested)
		if err := h.verdict(ctx, "box1", said); !errors.Is(err, sandbox.ErrGone) {
			t.Errorf("nobody was asked, and yet: %v", err)
		}
		delete(h.boxes, "box1")
		if err := h.verdict(t.Context(), "box1", said); !errors.Is(err, sandbox.ErrGone) {
			t.Errorf("the box is gone, and yet: %v", err)
		}
	})
}
