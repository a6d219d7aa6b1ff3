package session_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"ship/session"
	"ship/session/memory"
)

// TestABoxThatIsKeptForGood keeps its session on the schedule, where whoever
// holds boxes against sessions finds it, and nothing is done with either.
func TestABoxThatIsKeptForGood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, w := memory.New(), newWorld()
		p := &process{world: w, store: store, died: make(chan struct{})}
		forever := policy()
		forever.Boxes.IdlePause, forever.Boxes.IdleDestroy = 0, 0
		ctx, cancel := context.WithCancelCause(t.Context())
		d := &session.Dispatcher{Max: 10, Engine: &session.Engine{
			Store: store, Inbox: store, Policy: forever, Log: slog.New(slog.DiscardHandler),
			Performers: map[string]session.Performer{"plat": p, "git": p, session.Worker: p},
		}}
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		scene{platform: "plat"}.ask(t, store, "c1", "fix it")
		for _, d := range []time.Duration{time.Hour, 24 * time.Hour} {
			time.Sleep(d)
			ids, err := store.Scheduled(t.Context())
			if err != nil || len(ids) != 1 {
				t.Errorf("on the schedule are %v, %v", ids, err)
			}
		}
		if s := read(t, store); s.OnRecord() == nil || len(s.Pending) > 0 {
			t.Errorf("the box is %+v, and %v waits", s.OnRecord(), s.Pending)
		}
		cancel(session.ErrShutdown)
		<-ended
	})
}
