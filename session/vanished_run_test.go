package session_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"ship/session"
	"ship/session/memory"
)

// office is a process whose own hands do some effects, in the place of the
// world's.
type office struct {
	*process
	does func(context.Context, session.Job) (session.Performed, error)
}

func (o office) Perform(ctx context.Context, job session.Job) (session.Performed, error) {
	if out, err := o.does(ctx, job); err != nil || out.Effect != "" {
		return out, err
	}
	return o.process.Perform(ctx, job)
}

// open runs a dispatcher with these hands.
func (o office) open(t *testing.T) (*memory.Store, func()) {
	t.Helper()
	store := memory.New()
	o.process.store = store
	ctx, cancel := context.WithCancelCause(t.Context())
	d := &session.Dispatcher{Max: 10, Engine: &session.Engine{
		Store: store, Inbox: store, Policy: policy(), Log: slog.New(slog.DiscardHandler),
		Performers: map[string]session.Performer{"plat": o, "git": o, session.Worker: o},
	}}
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	scene{platform: "plat"}.ask(t, store, "c1", "fix it")
	return store, func() { cancel(session.ErrShutdown); <-ended }
}

var errBroken = errors.New("broken")

// TestARunWhoseBoxVanished is cut off, and what it says after that counts for
// nothing: neither how far it was, nor that it failed.
func TestARunWhoseBoxVanished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var causes []error
		o := office{process: &process{world: newWorld(), died: make(chan struct{})}}
		o.does = func(ctx context.Context, job session.Job) (session.Performed, error) {
			if job.Effect.Kind != session.Run || len(causes) > 0 {
				return session.Performed{}, nil
			}
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx))
			job.Progress(session.Progress{Conversation: "of the box that is gone"})
			time.Sleep(5 * time.Second)
			if s := read(t, o.process.store); s.Turn.Stage != session.Preparing || s.Conversation != "" {
				t.Errorf("while the turn is %s, it goes on %q", s.Turn.Stage, s.Conversation)
			}
			return session.Performed{}, errBroken
		}
		store, done := o.open(t)
		time.Sleep(20 * time.Second)
		reconcile(t, store, session.Running)
		time.Sleep(5 * time.Minute)
		done()
		if len(causes) != 1 || !errors.Is(causes[0], session.ErrBoxLost) {
			t.Errorf("the run was cut off because of %v", causes)
		}
		if s := read(t, store); s.Turn.Outcome.Ending != session.Completed || s.Conversation != "" {
			t.Errorf("the turn ended as %+v in %q", s.Turn.Outcome, s.Conversation)
		}
		if dead, err := store.DeadLetters(t.Context(), 9); err != nil || len(dead) > 0 {
			t.Errorf("put aside is %+v, %v", dead, err)
		}
	})
}

// TestStopReachesAPreparationThatFailed before: it may have left a box.
func TestStopReachesAPreparationThatFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var repeats []bool
		var cause error
		o := office{process: &process{world: newWorld(), died: make(chan struct{})}}
		o.does = func(ctx context.Context, job session.Job) (session.Performed, error) {
			if job.Effect.Kind != session.Prepare {
				return session.Performed{}, nil
			}
			repeats = append(repeats, job.Repeat)
			cause = context.Cause(ctx)
			return session.Performed{}, &session.Problem{Err: errBroken, Say: "It broke.", Again: true, After: time.Hour}
		}
		store, done := o.open(t)
		time.Sleep(time.Minute)
		_, err := store.Append(t.Context(), session.Delivery{
			Session: "s.1", Keys: []string{"stop"}, Event: session.Event{V: session.EventVersion, Kind: session.Asked, Request: &session.Request{
				ID: "c2", Thread: session.Thread{Platform: "plat", Key: "t"}, By: session.Person{Login: "alice"}, Verb: session.Stop, Ref: "c2",
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		done()
		if len(repeats) != 2 || repeats[0] || !repeats[1] || !errors.Is(cause, session.ErrStopRequested) {
			t.Errorf("it was tried, and told to be a repeat: %v, the last time because of %v", repeats, cause)
		}
	})
}
