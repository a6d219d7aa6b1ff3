package session

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"
)

// performs tells of every effect that it is asked for.
type performs chan EffectKind

func (p performs) Perform(_ context.Context, job Job) (Performed, error) {
	p <- job.Effect.Kind
	return Performed{}, nil
}

// TestWhoWasFrozenBeginsNothing: what became due while this process stood still
// is the next owner's.
func TestWhoWasFrozenBeginsNothing(t *testing.T) {
	t.Parallel()
	s := State{ID: "s.1", Pending: []Effect{{ID: "1", Kind: Say, By: "plat", Epoch: 1}}}
	state, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	begun := make(performs, 1)
	claim := Claim{Lease: Lease{ID: "s.1", Token: "t", Epoch: 1}, State: state}
	c, err := newCoordinator(&Engine{Log: slog.New(slog.DiscardHandler), Performers: map[string]Performer{"plat": begun}}, claim, time.Now().Add(-leaseTime))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.run(t.Context(), claim); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("it ended with %v", err)
	}
	if len(begun) > 0 {
		t.Errorf("%s was begun", <-begun)
	}
}
