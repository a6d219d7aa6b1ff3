package turn

import (
	"context"
	"errors"
	"testing"
	"time"

	"ship/sandbox"
	"ship/session"
)

func (c *cloud) List(_ context.Context, labels map[string]string) (all []sandbox.Info, err error) {
	for id, m := range c.boxes {
		own := map[string]string{sandbox.LabelSession: m.info.Key}
		if _, err := c.find(id); err == nil && !c.hides && sandbox.Carries(own, labels) {
			all = append(all, m.info)
		}
	}
	return all, c.unlisted
}

// Spawn starts nothing, until nobody waits for it any more.
func (m *machine) Spawn(ctx context.Context, _ sandbox.Command) (sandbox.Process, error) {
	<-ctx.Done()
	return sandbox.Process{}, context.Cause(ctx)
}

// takes so long, unless its context ends before.
func takes(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// prepareUntil begins a turn that ends for a cause after a second, and returns
// how long that took.
func (h *host) prepareUntil(cause error, change func(*session.Job)) time.Duration {
	h.t.Helper()
	ctx, cancel := context.WithCancelCause(h.t.Context())
	defer cancel(nil)
	time.AfterFunc(time.Second, func() { cancel(cause) })
	job := h.job(session.Prepare)
	if change != nil {
		change(&job)
	}
	began := time.Now()
	if _, err := h.Perform(ctx, job); !errors.Is(err, cause) {
		h.t.Errorf("the turn began: %v", err)
	}
	return time.Since(began)
}

// TestStopWhileABoxIsMade leaves none: neither one that is made in spite of it,
// nor one whose making is cut, nor one that was just going to be used.
func TestStopWhileABoxIsMade(t *testing.T) {
	for name, c := range map[string]struct {
		making, attaching time.Duration
		within            time.Duration
	}{
		"made after the stop":   {making: 5 * time.Second, within: 5 * time.Second},
		"made at that moment":   {making: time.Second, within: time.Second},
		"never made, as it was": {making: time.Hour, within: time.Second + stillMaking},
		"made before it":        {attaching: time.Minute, within: time.Second},
		"begun in before it":    {within: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, h *host) {
				h.making, h.attaching = takes(c.making), takes(c.attaching)
				if took := h.prepareUntil(session.ErrStopRequested, nil); took > c.within {
					t.Errorf("it stopped after %s", took)
				}
				h.wants("made box1", "destroyed box1")
				h.making, h.attaching = nil, nil
				h.turn(true)
				h.wants("made box1", "destroyed box1", "made box2")
			})
		})
	}
}

// TestStopAfterATryThatFailed: what that try has made is on no record.
func TestStopAfterATryThatFailed(t *testing.T) {
	inTime(t, func(_ *testing.T, h *host) {
		away := errors.New("away")
		h.attaching = func(context.Context) error { return away }
		_ = h.prepareUntil(away, nil)
		h.wants("made box1")
		ctx, cancel := context.WithCancelCause(h.t.Context())
		cancel(session.ErrStopRequested)
		job := h.job(session.Prepare)
		job.Repeat = true
		if _, err := h.Perform(ctx, job); !errors.Is(err, session.ErrStopRequested) {
			h.t.Errorf("it was stopped: %v", err)
		}
		h.wants("made box1", "destroyed box1")
	})
}

// TestOtherEndsLeaveTheBox to whoever goes on with the turn.
func TestOtherEndsLeaveTheBox(t *testing.T) {
	for _, cause := range []error{session.ErrShutdown, session.ErrLeaseLost} {
		inTimeOf(t, cause.Error(), func(t *testing.T, h *host) {
			h.making = takes(time.Minute)
			if took := h.prepareUntil(cause, nil); took > time.Second {
				t.Errorf("it ended after %s", took)
			}
			h.wants("made box1")
		})
	}
}

// TestAStopLeavesWhatIsKnown: the box on record, and that of a later owner.
func TestAStopLeavesWhatIsKnown(t *testing.T) {
	inTimeOf(t, "on record", func(_ *testing.T, h *host) {
		h.turn(true)
		h.state.Turn.Stage, h.attaching = session.Preparing, takes(time.Minute)
		h.prepareUntil(session.ErrStopRequested, nil)
		h.wants("made box1")
	})
	inTimeOf(t, "a later owner's", func(_ *testing.T, h *host) {
		h.making = takes(5 * time.Second)
		h.prepareUntil(session.ErrStopRequested, func(j *session.Job) { j.Lease.Epoch-- })
		h.wants("made box1", "destroyed box1")
		h.making, h.attaching = nil, func(ctx context.Context) error {
			h.boxes["box2"].info.Generation++
			return takes(time.Minute)(ctx)
		}
		h.prepareUntil(session.ErrStopRequested, nil)
		h.wants("made box1", "destroyed box1", "made box2")
	})
}

func inTimeOf(t *testing.T, name string, story func(*testing.T, *host)) {
	t.Run(name, func(t *testing.T) { inTime(t, story) })
}
