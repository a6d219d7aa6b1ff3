package session_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ship/session"
	"ship/session/memory"
)

// watched is a store that counts claims, and garbles an event on its way out.
type watched struct {
	*memory.Store
	mu     sync.Mutex
	claims map[session.ID]int
	garble string // delivery of the event
}

func watch(s *memory.Store) *watched { return &watched{Store: s, claims: map[session.ID]int{}} }

func (w *watched) Claim(ctx context.Context, id session.ID, token string, lease time.Duration) (session.Claim, error) {
	w.mu.Lock()
	w.claims[id]++
	w.mu.Unlock()
	c, err := w.Store.Claim(ctx, id, token, lease)
	for i, e := range c.Events {
		if w.garble != "" && e.Delivery == w.garble {
			c.Events[i] = session.Event{Kind: session.Garbled, Seq: e.Seq, Raw: []byte("{\xff"), Flaw: "not JSON"}
		}
	}
	return c, err
}

func (w *watched) claimed(id session.ID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.claims[id]
}

func put(t *testing.T, store session.Inbox, id session.ID, e session.Event) {
	t.Helper()
	if e.V == 0 {
		e.V = session.EventVersion
	}
	key := fmt.Sprint(id, e.Kind, e.Delivery, time.Now())
	if _, err := store.Append(t.Context(), session.Delivery{Session: id, Keys: []string{key}, Keep: time.Hour, Event: e}); err != nil {
		t.Fatal(err)
	}
}

func request(id, text string) *session.Request {
	return &session.Request{
		ID: id, Thread: session.Thread{Platform: "plat", Key: "t"}, By: session.Person{Login: "alice"}, Verb: session.Instruct, Text: text, Ref: id,
	}
}

func deadLetters(t *testing.T, store session.Graveyard) []session.DeadLetter {
	t.Helper()
	dead, err := store.DeadLetters(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	return dead
}

// TestWhatIsNoEventIsPutAside: it is kept, and what lies behind it is served.
func TestWhatIsNoEventIsPutAside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		put(t, store, "s.1", session.Event{Kind: session.Asked, Delivery: "garbled"})
		put(t, store, "s.1", session.Event{Kind: session.Asked, Delivery: "empty"})
		put(t, store, "s.1", session.Event{Kind: session.Done, Delivery: "foreign"})
		put(t, store, "s.1", session.Event{Kind: session.Replayed, Delivery: "nothing"})
		put(t, store, "s.1", session.Event{Kind: session.Asked, Request: request("c1", "fix it")})
		w := watch(store)
		w.garble = "garbled"
		s := newStage(store)
		s.open(t.Context(), w)
		time.Sleep(2 * time.Minute)
		s.close(t)
		dead := deadLetters(t, store)
		if len(dead) != 4 {
			t.Fatalf("%d dead letters: %+v", len(dead), dead)
		}
		if d := dead[3]; string(d.Raw) != "{\xff" || !strings.Contains(d.Cause, "not JSON") || d.Session != "s.1" {
			t.Errorf("the oldest is %+v", d)
		}
		for _, d := range dead[1:3] {
			if d.Event == nil || d.Obstacle(session.State{}) == "" {
				t.Errorf("%+v can be replayed", d)
			}
		}
		if got := s.state(t); got.Turns != 1 || got.Turn.Stage != session.Ended {
			t.Errorf("the request behind it was not served: %+v", got.Turn)
		}
	})
}

// TestNewerSessionsAreLeftAlone: a session of a newer release is tried once a
// minute, stays due for that release, and takes nobody's place.
func TestNewerSessionsAreLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		for n := range 150 {
			put(t, store, session.ID(fmt.Sprintf("new.%d", n)), session.Event{V: session.EventVersion + 1, Kind: session.Asked})
		}
		time.Sleep(time.Second)
		asks(t, store, "c1", session.Instruct, "fix it")
		w := watch(store)
		s := newStage(store)
		s.open(t.Context(), w)
		time.Sleep(10 * time.Second)
		if s.times(session.Prepare) == 0 {
			t.Error("the session that waited behind them is not served")
		}
		time.Sleep(170 * time.Second)
		for n := range 150 {
			if tries := w.claimed(session.ID(fmt.Sprintf("new.%d", n))); tries < 2 || tries > 4 {
				t.Errorf("session %d was tried %d times in three minutes", n, tries)
			}
		}
		if due, err := store.Due(t.Context(), 1000); err != nil || len(due) != 150 {
			t.Errorf("%d are due for a newer release, %v", len(due), err)
		}
		s.close(t)
	})
}

// TestBrokenStateIsTriedOnceAMinute: nobody can do anything about it here.
func TestBrokenStateIsTriedOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		asks(t, store, "c1", session.Instruct, "fix it")
		c, err := store.Claim(t.Context(), "s.1", "t", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		err = store.Commit(t.Context(), c.Lease, session.Commit{State: []byte("{"), StateVersion: 1, Release: true})
		if err != nil {
			t.Fatal(err)
		}
		w := watch(store)
		s := newStage(store)
		s.open(t.Context(), w)
		time.Sleep(5 * time.Minute)
		if n := w.claimed("s.1"); n < 3 || n > 6 {
			t.Errorf("tried %d times in five minutes", n)
		}
		s.close(t)
	})
}

// TestNewerMailIsHandedOver: an owner that gets mail it cannot read gives the
// session back in order, with its agent at work.
func TestNewerMailIsHandedOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		s := newStage(store)
		s.open(t.Context(), store)
		asks(t, store, "c1", session.Instruct, "fix it")
		time.Sleep(5 * time.Second) // the agent works for 30
		put(t, store, "s.1", session.Event{V: session.EventVersion + 1, Kind: session.Asked})
		time.Sleep(time.Second)
		if due, err := store.Due(t.Context(), 10); err != nil || len(due) != 1 {
			t.Errorf("a newer release cannot go on at once: %v, %v", due, err)
		}
		if got := s.state(t).Turn.Stage; got != session.Running {
			t.Errorf("the turn is %s", got)
		}
		s.close(t)
	})
}

// replay does what the operator's command does.
func replay(t *testing.T, store *memory.Store, d session.DeadLetter) {
	t.Helper()
	if _, err := store.Append(t.Context(), d.Replay()); err != nil {
		t.Fatal(err)
	}
	if err := store.DropDeadLetter(t.Context(), d.ID); err != nil {
		t.Fatal(err)
	}
}

// TestReplayOfWords: what could not be said is said under its old id, by a
// performer that looks first.
func TestReplayOfWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		s := newStage(store)
		jobs := make(chan session.Job, 10)
		s.perform[session.Say] = func(_ context.Context, job session.Job) (session.Performed, error) {
			jobs <- job
			if len(jobs) == 1 {
				return session.Performed{}, &session.Problem{Say: "No.", Err: fmt.Errorf("refused")}
			}
			return session.Performed{}, nil
		}
		s.open(t.Context(), store)
		asks(t, store, "c1", session.Help, "")
		time.Sleep(time.Minute)
		dead := deadLetters(t, store)
		if len(dead) != 1 || dead[0].Effect.Kind != session.Say || dead[0].Obstacle(s.state(t)) != "" {
			t.Fatalf("dead letters %+v", dead)
		}
		replay(t, store, dead[0])
		replay(t, store, dead[0])
		time.Sleep(time.Minute)
		if len(jobs) != 2 {
			t.Fatalf("performed %d times", len(jobs))
		}
		first, second := <-jobs, <-jobs
		if !second.Repeat || second.Effect.ID != first.Effect.ID || second.Effect.Text != first.Effect.Text {
			t.Errorf("performed %+v, then %+v", first.Effect, second.Effect)
		}
		if left := deadLetters(t, store); len(left) != 0 {
			t.Errorf("left over: %+v", left)
		}
		s.close(t)
	})
}

// TestReplayOfATurn: the turn is run again, but not when the session has gone
// on meanwhile: then the dead letter is kept.
func TestReplayOfATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		s := newStage(store)
		var broken atomic.Bool
		broken.Store(true)
		s.perform[session.Publish] = func(context.Context, session.Job) (session.Performed, error) {
			if broken.Load() {
				return session.Performed{}, &session.Problem{Say: "No.", Err: fmt.Errorf("refused")}
			}
			return session.Performed{Published: &session.Published{}}, nil
		}
		s.open(t.Context(), store)
		asks(t, store, "c1", session.Instruct, "fix it")
		time.Sleep(2 * time.Minute)
		dead := deadLetters(t, store)
		if len(dead) != 1 || dead[0].Effect.Kind != session.Publish {
			t.Fatalf("dead letters %+v", dead)
		}
		broken.Store(false)
		replay(t, store, dead[0])
		time.Sleep(2 * time.Minute)
		got := s.state(t)
		if got.Turns != 2 || got.Turn.Outcome.Ending != session.Completed || len(deadLetters(t, store)) != 0 {
			t.Errorf("after the replay: turn %d, %+v", got.Turns, got.Turn)
		}
		stale := dead[0]
		stale.ID = "another"
		if stale.Obstacle(got) == "" {
			t.Error("nothing stands against a replay of a turn that is over")
		}
		replay(t, store, stale)
		time.Sleep(time.Minute)
		again := deadLetters(t, store)
		if len(again) != 1 || again[0].Effect.ID != stale.Effect.ID || !strings.Contains(again[0].Cause, "could not be replayed") {
			t.Errorf("a replay that came too late is lost: %+v", again)
		}
		if n := s.state(t).Turns; n != 2 {
			t.Errorf("turn %d", n)
		}
		s.close(t)
	})
}
