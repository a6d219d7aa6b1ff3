package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ship/session"
	"ship/session/memory"
)

// witness is an observer that remembers.
type witness struct {
	mu      sync.Mutex
	holds   []session.LeaseOutcome
	begun   []session.Effect
	ended   int
	changes []session.Change
}

func (w *witness) LeaseChanged(h session.LeaseChange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds = append(w.holds, h.Outcome)
}

type witnessed struct{}

func (w *witness) Performing(ctx context.Context, job session.Job) (context.Context, func(error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = append(w.begun, job.Effect)
	return context.WithValue(ctx, witnessed{}, true), func(error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended++
	}
}

func (w *witness) Committed(_ context.Context, c session.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes = append(w.changes, c)
}

// gather joins what all commits told.
func (w *witness) gather() (all session.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.changes {
		all.Read = append(all.Read, c.Read...)
		all.Answered = append(all.Answered, c.Answered...)
		all.Failures = append(all.Failures, c.Failures...)
		all.Ended = append(all.Ended, c.Ended...)
		all.Dead = append(all.Dead, c.Dead...)
	}
	return all
}

// watch runs a dispatcher that is observed and whose log goes to log, until the
// function that it returns is called.
func (s *stage) watch(t *testing.T, w *witness, log *bytes.Buffer) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	handler := session.LogHandler(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d := &session.Dispatcher{Max: 10, Engine: &session.Engine{
		Store: s.store, Inbox: s.store, Policy: policy(), Log: slog.New(handler), Observer: w,
		Performers: map[string]session.Performer{"plat": s, "git": s, session.Worker: s},
	}}
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	return func() {
		cancel(session.ErrShutdown)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// sends is asks with a trail.
func sends(t *testing.T, store *memory.Store, id string) {
	t.Helper()
	_, err := store.Append(t.Context(), session.Delivery{
		Session: "s.1", Keys: []string{"plat:" + id}, Keep: time.Hour,
		Event: session.Event{V: session.EventVersion, Kind: session.Asked, Delivery: "delivery-" + id, Request: &session.Request{
			ID: id, Thread: session.Thread{Platform: "plat", Key: "t"}, By: session.Person{Login: "alice"}, Verb: session.Instruct,
			Text: "fix it", Ref: id, Trail: session.Trail{Trace: "trace-" + id},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEverythingHasItsTrail: from the delivery to the last effect, whoever
// looks on knows which request it goes back to, and its first answer is one.
func TestEverythingHasItsTrail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, w, log := newStage(memory.New()), &witness{}, &bytes.Buffer{}
		fails := true
		s.perform[session.Publish] = func(ctx context.Context, job session.Job) (session.Performed, error) {
			if ctx.Value(witnessed{}) == nil {
				t.Error("an effect is not performed with the observer's context")
			}
			if fails {
				fails = false
				return session.Performed{}, &session.Problem{Say: "Away.", Err: errors.New("away"), Again: true}
			}
			return (&process{world: s.world}).Perform(ctx, job)
		}
		stop := s.watch(t, w, log)
		sends(t, s.store, "c1")
		time.Sleep(10 * time.Minute)
		stop()
		checkTrails(t, w)
		checkChange(t, w.gather())
		checkLines(t, log.String())
		if !slices.Equal(w.holds[:1], []session.LeaseOutcome{session.Claimed}) || w.holds[len(w.holds)-1] != session.Released {
			t.Errorf("leases: %v", w.holds)
		}
	})
}

func checkTrails(t *testing.T, w *witness) {
	t.Helper()
	if len(w.begun) < 8 || w.ended != len(w.begun) {
		t.Errorf("%d effects began, %d ended", len(w.begun), w.ended)
	}
	for _, e := range w.begun {
		if e.Kind == session.Tend || e.Kind == session.Discard { // long after
			continue
		}
		if e.Trail.Delivery != "delivery-c1" || e.Trail.Trace != "trace-c1" {
			t.Errorf("%s has the trail %+v", e.Kind, e.Trail)
		}
	}
}

func checkChange(t *testing.T, c session.Change) {
	t.Helper()
	if len(c.Read) != 1 || c.Read[0].Kind != session.Asked || c.Read[0].Read.Before(c.Read[0].At) {
		t.Errorf("heard: %+v", c.Read)
	}
	if len(c.Answered) != 1 || c.Answered[0].Platform != "plat" || c.Answered[0].After > time.Minute {
		t.Errorf("answered: %+v", c.Answered)
	}
	if len(c.Failures) != 1 || c.Failures[0].Kind != session.Publish || c.Failures[0].Then != session.TryAgain {
		t.Errorf("setbacks: %+v", c.Failures)
	}
	if len(c.Ended) != 1 || c.Ended[0].Ending != session.Completed || c.Ended[0].Trail.Trace != "trace-c1" || !c.Ended[0].At.After(c.Ended[0].Started) {
		t.Errorf("ended: %+v", c.Ended)
	}
	if len(c.Dead) != 0 {
		t.Errorf("dead letters: %+v", c.Dead)
	}
}

// checkLines: each line says whose it is, and says nothing twice.
func checkLines(t *testing.T, log string) {
	t.Helper()
	effects := 0
	for line := range strings.Lines(log) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		want := []string{"session", "generation"}
		if _, ok := fields["effect"]; ok {
			effects++
			want = append(want, "kind")
			if fields["kind"] != "tend" && fields["kind"] != "discard" {
				want = append(want, "delivery")
			}
		}
		for _, key := range want {
			if strings.Count(line, `"`+key+`":`) != 1 {
				t.Errorf("a line does not name its %s once: %s", key, line)
			}
		}
	}
	if effects < 8 {
		t.Errorf("%d lines are about effects:\n%s", effects, log)
	}
}

// TestAnsweredOnce: a process that takes over does not take the first report of
// its own for the first answer.
func TestAnsweredOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, first, second := newStage(memory.New()), &witness{}, &witness{}
		s.perform[session.Run] = func(ctx context.Context, job session.Job) (session.Performed, error) {
			if job.Repeat {
				return (&process{world: s.world}).Perform(ctx, job)
			}
			<-ctx.Done()
			return session.Performed{}, context.Cause(ctx)
		}
		stop := s.watch(t, first, &bytes.Buffer{})
		sends(t, s.store, "c1")
		time.Sleep(time.Minute)
		stop()
		stop = s.watch(t, second, &bytes.Buffer{})
		time.Sleep(10 * time.Minute)
		stop()
		if a, b := first.gather(), second.gather(); len(a.Answered) != 1 || len(b.Answered) != 0 || len(a.Ended) != 0 || len(b.Ended) != 1 {
			t.Errorf("first: %+v, %+v; second: %+v, %+v", a.Answered, a.Ended, b.Answered, b.Ended)
		}
	})
}

// TestTakeoverIsSeen: whoever goes on after an owner that vanished says so, with
// the trail of what was under way.
func TestTakeoverIsSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, w := newStage(memory.New()), &witness{}
		sends(t, s.store, "c1")
		if _, err := s.store.Claim(t.Context(), "s.1", "vanishes", time.Second); err != nil {
			t.Fatal(err)
		}
		stop := s.watch(t, w, &bytes.Buffer{})
		time.Sleep(10 * time.Minute)
		stop()
		if w.holds[0] != session.TakenOver || w.changes[0].Taken == nil {
			t.Errorf("leases: %v, first change: %+v", w.holds, w.changes[0])
		}
	})
}

func TestLogHandler(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(session.LogHandler(slog.NewTextHandler(&out, nil)))
	ctx := session.WithLog(t.Context(), "session", "s.1", "effect", "a")
	ctx = session.WithLog(ctx, "effect", "b")
	for name, c := range map[string]struct {
		write func()
		want  string
	}{
		"context":    {func() { log.InfoContext(ctx, "x") }, "msg=x session=s.1 effect=b"},
		"own wins":   {func() { log.InfoContext(ctx, "x", "session", "s.2") }, "msg=x session=s.2 effect=b"},
		"with wins":  {func() { log.With("session", "s.3").InfoContext(ctx, "x") }, "session=s.3 msg=x effect=b"},
		"no context": {func() { log.Info("x") }, "msg=x"},
		"group":      {func() { log.WithGroup("g").InfoContext(ctx, "x", "k", 1) }, "msg=x g.k=1 g.session=s.1 g.effect=b"},
	} {
		out.Reset()
		c.write()
		_, got, _ := strings.Cut(strings.TrimSpace(out.String()), "level=INFO ")
		if fieldSet(got) != fieldSet(c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// fieldSet is a line without the order of its fields.
func fieldSet(line string) string {
	f := strings.Fields(line)
	slices.Sort(f)
	return strings.Join(f, " ")
}
