package session

import (
	"context"
	"errors"
	"testing"
	"time"
)

// full is a quota that gives, but to one account.
type full struct{ Quota }

func (full) Take(_ context.Context, account string, _ Allowance) (time.Duration, error) {
	if account == "full" {
		return time.Hour, nil
	}
	return 0, nil
}

// TestQueueForgetsLines: when nobody stands in them, whichever way they left.
func TestQueueForgetsLines(t *testing.T) {
	t.Parallel()
	q := NewQueue(full{})
	left := errors.New("left")
	ctx, cancel := context.WithCancelCause(t.Context())
	waited := make(chan error)
	for range 3 {
		go func() { waited <- q.Wait(ctx, Demand{Account: "free"}, Demand{Account: "full"}) }()
	}
	if err := q.Wait(t.Context(), Demand{Account: "another"}); err != nil {
		t.Error(err)
	}
	cancel(left)
	for range 3 {
		if err := <-waited; !errors.Is(err, left) {
			t.Errorf("got %v", err)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.lines) != 0 {
		t.Errorf("%d lines are left", len(q.lines))
	}
}
