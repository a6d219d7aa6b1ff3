package slack

import (
	"context"
	"time"

	"ship/session"
)

// Priority says what may wait for what.
type Priority int

// The priorities, the least urgent first.
const (
	// Moving is progress in the living message. What comes later says more.
	Moving Priority = iota
	// Thinking is what people see first, and what has to be read for it.
	Thinking
	// Asking is a question to a person.
	Asking
	// Settling is how it ended.
	Settling
	priorities
)

// governor shares out what Slack lets us do in each workspace.
type governor struct{ quota session.Quota }

// call is what Slack counts. channel matters for messages only.
type call struct{ team, method, channel string }

func newGovernor(q session.Quota) *governor { return &governor{quota: q} }

func (g *governor) acquire(ctx context.Context, p Priority, c call) error { panic("soon") }

func (g *governor) try(ctx context.Context, p Priority, c call) (wait time.Duration, err error) {
	panic("soon")
}

func (g *governor) refused(ctx context.Context, c call, after time.Duration) error { panic("soon") }
