package session_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ship/sandbox/lifecycle"
	"ship/session"
	"ship/session/memory"
)

// stage is a dispatcher on a memory store, and a performer made of functions.
type stage struct {
	store   *memory.Store
	ended   chan error
	cancel  context.CancelCauseFunc
	mu      sync.Mutex
	count   map[session.EffectKind]int
	perform map[session.EffectKind]func(context.Context, session.Job) (session.Performed, error)
	world   *world
}

func newStage(store *memory.Store) *stage {
	return &stage{
		store: store, world: newWorld(), count: map[session.EffectKind]int{}, ended: make(chan error, 1),
		perform: map[session.EffectKind]func(context.Context, session.Job) (session.Performed, error){},
	}
}

func (s *stage) Perform(ctx context.Context, job session.Job) (session.Performed, error) {
	s.mu.Lock()
	s.count[job.Effect.Kind]++
	f := s.perform[job.Effect.Kind]
	s.mu.Unlock()
	if f != nil {
		return f(ctx, job)
	}
	p := &process{world: s.world}
	return p.Perform(ctx, job)
}

func (s *stage) times(k session.EffectKind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[k]
}

func (s *stage) open(ctx context.Context, store session.Store) {
	ctx, s.cancel = context.WithCancelCause(ctx)
	d := &session.Dispatcher{Max: 10, Engine: &session.Engine{
		Store: store, Inbox: s.store, Policy: policy(), Log: slog.New(slog.DiscardHandler),
		Performers: map[string]session.Performer{"plat": s, "git": s, session.Worker: s},
	}}
	go func() { s.ended <- d.Run(ctx) }()
}

func (s *stage) close(t *testing.T) {
	t.Helper()
	s.cancel(session.ErrShutdown)
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

func (s *stage) state(t *testing.T) session.State {
	t.Helper()
	c, err := s.store.Peek(t.Context(), "s.1")
	if err != nil {
		t.Fatal(err)
	}
	state, err := session.DecodeState("s.1", c.State)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func asks(t *testing.T, store *memory.Store, id string, verb session.Verb, text string) {
	t.Helper()
	_, err := store.Append(t.Context(), session.Delivery{
		Session: "s.1", Keys: []string{"plat:" + id}, Keep: time.Hour,
		Event: session.Event{V: session.EventVersion, Kind: session.Asked, Request: &session.Request{
			ID: id, Thread: session.Thread{Platform: "plat", Key: "t"}, By: session.Person{Login: "alice"}, Verb: verb, Text: text, Ref: id,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestStopReachesTheRunningTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(memory.New())
		s.perform[session.Run] = func(ctx context.Context, _ session.Job) (session.Performed, error) {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), session.ErrStopRequested) {
				return session.Performed{}, context.Cause(ctx)
			}
			return session.Performed{Turn: &session.Outcome{Ending: session.Stopped, Served: 1}}, nil
		}
		s.open(t.Context(), s.store)
		asks(t, s.store, "c1", session.Instruct, "fix it")
		time.Sleep(time.Minute)
		asks(t, s.store, "c2", session.Stop, "")
		time.Sleep(time.Minute)
		if got := s.state(t).Turn; got.Stage != session.Ended || got.Outcome.Ending != session.Stopped {
			t.Errorf("the turn is %s, %+v", got.Stage, got.Outcome)
		}
		s.close(t)
	})
}

// TestStopThatACrashCutShort: the next process stops the agent, which it did not
// start, before it says so.
func TestStopThatACrashCutShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(memory.New())
		s.perform[session.Run] = func(ctx context.Context, job session.Job) (session.Performed, error) {
			<-ctx.Done()
			if job.Repeat && errors.Is(context.Cause(ctx), session.ErrStopRequested) {
				return session.Performed{Turn: &session.Outcome{Ending: session.Stopped, Served: 1}}, nil
			}
			time.Sleep(time.Second) // in the middle of it the process ends
			return session.Performed{}, session.ErrShutdown
		}
		s.open(t.Context(), s.store)
		asks(t, s.store, "c1", session.Instruct, "fix it")
		time.Sleep(time.Minute)
		asks(t, s.store, "c2", session.Stop, "")
		time.Sleep(500 * time.Millisecond)
		s.close(t)
		if got := s.state(t).Turn; got.Stopping == "" || got.Stage != session.Running {
			t.Fatalf("the turn is %s, stopping %q", got.Stage, got.Stopping)
		}
		s.open(t.Context(), s.store)
		time.Sleep(time.Minute)
		if s.times(session.Run) != 2 {
			t.Errorf("the agent was reached for %d times", s.times(session.Run))
		}
		if got := s.state(t).Turn; got.Stage != session.Ended || got.Outcome.Ending != session.Stopped {
			t.Errorf("the turn is %s, %+v", got.Stage, got.Outcome)
		}
		s.close(t)
	})
}

func TestShutdownLeavesTheTurnRunning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(memory.New())
		s.open(t.Context(), s.store)
		asks(t, s.store, "c1", session.Instruct, "fix it")
		time.Sleep(5 * time.Second) // the agent works for 30
		began := time.Now()
		s.close(t)
		if d := time.Since(began); d > time.Second {
			t.Errorf("shutdown took %s", d)
		}
		if got := s.state(t).Turn.Stage; got != session.Running {
			t.Fatalf("the turn is %s", got)
		}
		s.open(t.Context(), s.store) // a new process: due at once, not after a lease
		time.Sleep(time.Second)
		if s.times(session.Run) != 2 {
			t.Errorf("the turn was attached to %d times", s.times(session.Run))
		}
		time.Sleep(time.Minute)
		if got := s.state(t).Turn.Stage; got != session.Ended {
			t.Errorf("the turn is %s", got)
		}
		s.close(t)
	})
}

// TestShutdownKeepsWhatIsSaidMeanwhile: the lease lasts as long as the process
// waits for what is under way, so that what came of it is known.
func TestShutdownKeepsWhatIsSaidMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(memory.New())
		s.perform[session.Acknowledge] = func(context.Context, session.Job) (session.Performed, error) {
			time.Sleep(12 * time.Second)
			return session.Performed{}, nil
		}
		s.open(t.Context(), s.store)
		asks(t, s.store, "c1", session.Help, "")
		time.Sleep(4900 * time.Millisecond)
		s.close(t)
		if due, err := s.store.Due(t.Context(), 10); err != nil || len(due) != 1 {
			t.Errorf("nobody can go on at once: %v, %v", due, err)
		}
		for _, e := range s.state(t).Pending {
			if e.Kind == session.Acknowledge {
				t.Error("it was acknowledged, and nobody knows")
			}
		}
	})
}

// frozen is a store that does not answer one process for a while.
type frozen struct {
	*memory.Store
	mu    sync.Mutex
	until time.Time
}

func (f *frozen) freeze(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until = time.Now().Add(d)
}

func (f *frozen) thaw(ctx context.Context) error {
	f.mu.Lock()
	d := time.Until(f.until)
	f.mu.Unlock()
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *frozen) Due(ctx context.Context, n int) ([]session.ID, error) {
	if err := f.thaw(ctx); err != nil {
		return nil, err
	}
	return f.Store.Due(ctx, n)
}

func (f *frozen) Renew(ctx context.Context, l session.Lease, d time.Duration) (int64, error) {
	if err := f.thaw(ctx); err != nil {
		return 0, err
	}
	return f.Store.Renew(ctx, l, d)
}

func (f *frozen) Commit(ctx context.Context, l session.Lease, c session.Commit) error {
	if err := f.thaw(ctx); err != nil {
		return err
	}
	return f.Store.Commit(ctx, l, c)
}

func TestOwnerThatCannotRenewStopsBeforeItsLeaseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(memory.New())
		cut := &frozen{Store: s.store}
		left := make(chan time.Time, 1)
		s.perform[session.Run] = func(ctx context.Context, _ session.Job) (session.Performed, error) {
			<-ctx.Done()
			left <- time.Now()
			return session.Performed{}, context.Cause(ctx)
		}
		s.open(t.Context(), cut)
		asks(t, s.store, "c1", session.Instruct, "fix it")
		time.Sleep(20 * time.Second)
		cut.freeze(time.Minute)
		began := time.Now()
		time.Sleep(30 * time.Second)
		select {
		case at := <-left:
			if at.Sub(began) > 11*time.Second {
				t.Errorf("the owner let go after %s", at.Sub(began))
			}
		default:
			t.Error("the owner did not let go")
		}
		if _, err := s.store.Claim(t.Context(), "s.1", "other", time.Minute); err != nil {
			t.Errorf("nobody else can claim: %v", err)
		}
		s.close(t)
	})
}

func TestPoisonIsPutAsideAndTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		asks(t, store, "c1", session.Instruct, "poison")
		for n := range 5 { // five owners claim it and die
			if _, err := store.Claim(t.Context(), "s.1", fmt.Sprint(n), time.Second); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		asks(t, store, "c2", session.Instruct, "harmless")
		s := newStage(store)
		s.open(t.Context(), store)
		time.Sleep(2 * time.Minute)
		dead, err := store.DeadLetters(t.Context(), 10)
		if err != nil || len(dead) != 1 || dead[0].Event.Request.ID != "c1" {
			t.Errorf("dead letters %+v, %v", dead, err)
		}
		if s.times(session.Say) != 1 {
			t.Errorf("the person was told %d times", s.times(session.Say))
		}
		if got := s.state(t); got.Turns != 1 || got.Turn.Stage != session.Ended {
			t.Errorf("the request behind it was not served: %+v", got.Turn)
		}
		s.close(t)
	})
}

func TestPanicInAPerformerEndsTheTurnOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(memory.New())
		s.perform[session.Run] = func(context.Context, session.Job) (session.Performed, error) { panic("a bug") }
		s.open(t.Context(), s.store)
		asks(t, s.store, "c1", session.Instruct, "fix it")
		time.Sleep(time.Minute)
		if got := s.state(t).Turn; got.Stage != session.Ended || got.Outcome.Ending != session.Crashed {
			t.Errorf("the turn is %s, %+v", got.Stage, got.Outcome)
		}
		s.close(t)
	})
}

func TestRateLimitHoldsOnlyThatPlatformUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(memory.New())
		began := time.Now()
		acked := make(chan time.Time, 1)
		s.perform[session.Acknowledge] = func(context.Context, session.Job) (session.Performed, error) {
			if time.Since(began) < 20*time.Second {
				return session.Performed{}, &session.Problem{Err: errors.New("429"), Again: true, After: 20 * time.Second}
			}
			acked <- time.Now()
			return session.Performed{}, nil
		}
		s.open(t.Context(), s.store)
		asks(t, s.store, "c1", session.Instruct, "fix it")
		time.Sleep(10 * time.Second)
		if s.times(session.Run) != 1 || s.times(session.Acknowledge) != 1 {
			t.Errorf("run %d, acknowledge %d", s.times(session.Run), s.times(session.Acknowledge))
		}
		time.Sleep(time.Hour / 2)
		if d := (<-acked).Sub(began); d < 20*time.Second || d > 24*time.Second {
			t.Errorf("acknowledged after %s", d)
		}
		s.close(t)
	})
}

func TestIdleSessionCostsNothingAndItsBoxIsDestroyed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(memory.New())
		s.open(t.Context(), s.store)
		asks(t, s.store, "c1", session.Instruct, "fix it")
		time.Sleep(30 * time.Minute)
		state := s.state(t)
		if b, err := state.Encode(); err != nil || len(b) > 500 {
			t.Errorf("an idle state takes %d bytes, %v: %s", len(b), err, b)
		}
		if s.times(session.Tend) != 1 || state.Life.State != lifecycle.Paused {
			t.Errorf("it was tended %d times, the box is %s", s.times(session.Tend), state.Life.State)
		}
		time.Sleep(time.Hour)
		if s.times(session.Tend) != 2 || s.state(t).Box != "" {
			t.Errorf("it was tended %d times", s.times(session.Tend))
		}
		if due, err := s.store.Due(t.Context(), 10); err != nil || len(due) > 0 {
			t.Errorf("still due: %v, %v", due, err)
		}
		s.close(t)
	})
}

// skewed is a store whose clock goes before that of the process.
type skewed struct {
	*memory.Store
	by time.Duration
}

func (s skewed) Claim(ctx context.Context, id session.ID, token string, d time.Duration) (session.Claim, error) {
	c, err := s.Store.Claim(ctx, id, token, d)
	c.Now = c.Now.Add(s.by)
	return c, err
}

// TestJobsGoByTheStoresClock: the state's times mean nothing by another.
func TestJobsGoByTheStoresClock(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{3 * time.Hour, -3 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(memory.New())
			left := make(chan time.Duration, 1)
			s.perform[session.Run] = func(_ context.Context, job session.Job) (session.Performed, error) {
				if d := time.Until(job.Now()) - by; d.Abs() > time.Second {
					t.Errorf("the clock is off by %s", d)
				}
				left <- job.State.Turn.Deadline.Sub(job.Now())
				return session.Performed{Turn: &session.Outcome{Ending: session.Completed, Served: 1}}, nil
			}
			s.open(t.Context(), skewed{s.store, by})
			asks(t, s.store, "c1", session.Instruct, "fix it")
			if d := <-left - policy().TurnTimeout; d.Abs() > time.Minute {
				t.Errorf("the turn is longer by %s", d)
			}
			s.close(t)
		})
	}
}

// slow is a store that takes its time to commit.
type slow struct{ *memory.Store }

func (s slow) Commit(ctx context.Context, l session.Lease, c session.Commit) error {
	time.Sleep(100 * time.Millisecond)
	return s.Store.Commit(ctx, l, c)
}

// TestTheLastProgressStays: what an effect tells just before it ends is not
// lost, however the two arrive.
func TestTheLastProgressStays(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(memory.New())
			s.perform[session.Run] = func(_ context.Context, job session.Job) (session.Performed, error) {
				time.Sleep(50 * time.Millisecond) // until the owner is busy with a report's commit
				job.Progress(session.Progress{Todos: []session.Todo{{Text: "Oil them", Status: "completed"}}})
				return session.Performed{Turn: &session.Outcome{Ending: session.Completed, Answer: "done", Served: 1}}, nil
			}
			ended := make(chan []session.Todo, 1)
			s.perform[session.Close] = func(_ context.Context, job session.Job) (session.Performed, error) {
				ended <- job.State.Turn.Progress.Todos
				return session.Performed{}, nil
			}
			s.open(t.Context(), slow{s.store})
			asks(t, s.store, "c1", session.Instruct, "fix it")
			if todos := <-ended; len(todos) != 1 || todos[0].Status != "completed" {
				t.Errorf("the plan ended as %+v", todos)
			}
			s.close(t)
		})
	}
}
