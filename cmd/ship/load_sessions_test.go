package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ship/sandbox"
	"ship/session"
	"ship/session/redis"
	"ship/session/redis/redistest"
	"ship/session/turn"
)

// crowdPlatform is where the crowd's sessions live. It hosts their code too.
const crowdPlatform = "crowd"

// crowd is one worker with many sessions: a real dispatcher on a real Redis, and
// the real queue for boxes. The platform is fast, and the only box never comes
// to be, so that everybody waits for it.
type crowd struct {
	t     *testing.T
	store *redis.Store
	redis *redistest.Server
	n     int
	stop  func()

	lost *leases

	mu sync.Mutex
	// heard says which requests the platform was asked to admit, and how often.
	heard map[string]int
	// hears gets the id of each; nil: nobody listens.
	hears chan string
	// wanted gets who has the only place for a box.
	wanted chan session.ID
	// reports is how often threads were reported to.
	reports int
}

// leases is a log in which only lost leases count.
type leases struct {
	slog.Handler
	n atomic.Int64
}

func (l *leases) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (l *leases) WithAttrs([]slog.Attr) slog.Handler               { return l }

func (l *leases) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "lease lost") {
		l.n.Add(1)
	}
	return nil
}

// noBox never makes a box, as a provider that is out of them. It tells for whom
// it should.
type noBox struct {
	sandbox.Provider
	wanted chan session.ID
}

func (b noBox) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Info, error) {
	b.wanted <- session.ID(spec.Key)
	<-ctx.Done()
	return sandbox.Info{}, context.Cause(ctx)
}

func newCrowd(t *testing.T, n int) *crowd {
	t.Helper()
	server := redistest.Start(t)
	store, err := redis.Open(t.Context(), redis.Options{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	c := &crowd{t: t, store: store, redis: server, n: n, heard: map[string]int{}, wanted: make(chan session.ID, n)}
	settings, err := readSettings(os.DevNull, nil) // the defaults
	if err != nil {
		t.Fatal(err)
	}
	c.lost = &leases{Handler: slog.DiscardHandler}
	log := slog.New(c.lost)
	worker := turn.New(turn.Config{Boxes: noBox{wanted: c.wanted}, Slots: 1, PerPerson: n, Life: settings.boxPolicy(), Log: log})
	d := &session.Dispatcher{Max: 10_000, Engine: &session.Engine{
		Store: store, Inbox: store, Log: log, Policy: settings.policy(nil),
		Performers: map[string]session.Performer{crowdPlatform: c, session.Worker: worker},
	}}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	c.stop = sync.OnceFunc(func() {
		cancel(session.ErrShutdown)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(c.stop)
	return c
}

// Perform is the platform: it lets everybody do everything, at once.
func (c *crowd) Perform(_ context.Context, job session.Job) (session.Performed, error) {
	switch e := job.Effect; e.Kind {
	case session.Admit:
		c.hear(e.Request.ID)
		return session.Performed{Admission: &session.Admission{
			By: e.Request.By, Base: "main", Title: "Widgets",
			Repo: session.Repo{Platform: crowdPlatform, Name: "acme/widgets", Key: "1"},
		}}, nil
	case session.Report:
		c.mu.Lock()
		c.reports++
		c.mu.Unlock()
		return session.Performed{Ref: "1", Shown: session.ViewOf(job.State).Digest()}, nil
	default:
		return session.Performed{Ref: "1"}, nil
	}
}

func (c *crowd) hear(id string) {
	c.mu.Lock()
	c.heard[id]++
	to := c.hears
	c.mu.Unlock()
	if to != nil {
		to <- id
	}
}

// ask lets the n-th session be asked something under an id.
func (c *crowd) ask(n int, id string, verb session.Verb) {
	c.t.Helper()
	c.askIn(session.ID(fmt.Sprintf("crowd.%d", n)), id, verb)
}

func (c *crowd) askIn(name session.ID, id string, verb session.Verb) {
	c.t.Helper()
	_, err := c.store.Append(c.t.Context(), session.Delivery{
		Session: name, Keys: []string{crowdPlatform + ":" + id}, Keep: time.Hour,
		Event: session.Event{V: session.EventVersion, Kind: session.Asked, Delivery: id, Request: &session.Request{
			ID: id, Thread: session.Thread{Platform: crowdPlatform, Key: string(name)},
			By: session.Person{Login: "mona"}, Verb: verb, Text: "fix it", Ref: id,
		}},
	})
	if err != nil {
		c.t.Error(err)
	}
}

// askAll asks every session, with the callers that an intake has.
func (c *crowd) askAll(round string, verb session.Verb) {
	var wg sync.WaitGroup
	for k := range benchConnections {
		wg.Go(func() {
			for n := k; n < c.n; n += benchConnections {
				c.ask(n, fmt.Sprintf("%s-%d", round, n), verb)
			}
		})
	}
	wg.Wait()
}

// await polls for what only the crowd as a whole shows.
func (c *crowd) await(what string, done func() bool) {
	c.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if done() {
			return
		}
	}
	c.t.Fatalf("waited %s for %s", patience, what)
}

// requests is how many requests were heard, and whether each was heard once.
func (c *crowd) requests() (all int, once bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	once = true
	for _, n := range c.heard {
		once = once && n == 1
	}
	return len(c.heard), once
}

// wakes asks sessions at random, one after the other, and measures how long it
// takes until the platform hears of it: append, wake, claim or mail, commit.
func (c *crowd) wakes(round string, times int) *sample {
	c.t.Helper()
	heard := make(chan string, 1)
	c.mu.Lock()
	c.hears = heard
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.hears = nil
	}()
	var took sample
	for i := range times {
		id, began := fmt.Sprintf("%s-%d", round, i), time.Now()
		c.ask(rand.IntN(c.n), id, session.Status)
		select {
		case got := <-heard:
			if got != id {
				c.t.Errorf("heard %s, asked %s", got, id)
			}
		case <-time.After(patience):
			c.t.Fatalf("%s was not heard", id)
		}
		took.add(time.Since(began))
	}
	return &took
}

// queueMoves lets whoever has the only place for a box leave it, again and
// again, and measures what it costs that all others move up.
func (c *crowd) queueMoves(times int) {
	c.t.Helper()
	before, told := weigh(), c.told()
	began := time.Now()
	for i := range times {
		c.askIn(<-c.wanted, fmt.Sprintf("stop-%d", i), session.Stop)
	}
	<-c.wanted
	took := time.Since(began)
	mail := c.wakes("moving", size(50, 500))
	time.Sleep(5 * time.Second) // what was told of that is saved every two seconds
	after := weigh()
	report(c.t, "a queue of %d moved up %d times in %s: %s of processor time, %d reports; mail for one takes %s",
		c.n, times, took.Round(time.Millisecond), (after.cpu - before.cpu).Round(time.Millisecond), c.told()-told, mail)
}

// told is how often threads were reported to.
func (c *crowd) told() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reports
}

// weight is what this process has at the moment.
type weight struct {
	goroutines int
	bytes      uint64
	cpu        time.Duration
}

func weigh() weight {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	cpu := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	return weight{runtime.NumGoroutine(), m.HeapAlloc + m.StackInuse, cpu}
}

// since is what came on top of an earlier weight, for each of n sessions.
func (w weight) since(before weight, n int) string {
	return fmt.Sprintf("%.1f goroutines and %.1f KiB each", float64(w.goroutines-before.goroutines)/float64(n),
		(float64(w.bytes)-float64(before.bytes))/float64(n)/1024)
}

// maxLive is how many bytes a live session may take of a worker's memory.
const maxLive = 80 << 10

// TestLoadSessions: as many sessions as one worker takes are idle, are woken, and
// are live at the same time.
func TestLoadSessions(t *testing.T) {
	loaded(t)
	n := size(100, 10_000)
	c := newCrowd(t, n)
	empty := weigh()
	began := time.Now()
	c.askAll("first", session.Status)
	c.await("all to be answered", func() bool { all, _ := c.requests(); return all == n })
	first := time.Since(began)
	c.await("all to be idle", func() bool { return runtime.NumGoroutine() < empty.goroutines+n/2 })
	idle := weigh()
	waking := c.wakes("idle", size(50, 500))
	report(t, "%d sessions began and were answered in %s (%.0f/s); idle they are %s; waking one takes %s",
		n, first.Round(time.Millisecond), float64(n)/first.Seconds(), idle.since(empty, n), waking)

	began = time.Now()
	c.askAll("live", session.Instruct)
	c.await("all to wait for a box", func() bool { return runtime.NumGoroutine() >= empty.goroutines+n })
	woken := time.Since(began)
	time.Sleep(time.Duration(size(2, 10)) * time.Second) // a while in which nothing happens is what is measured
	live := weigh()
	time.Sleep(time.Duration(size(2, 20)) * time.Second)
	later := weigh()
	mail := c.wakes("mail", size(50, 500))
	report(t, "%d sessions live at once after %s: %s, %.0f%% of a core to keep them; mail for one takes %s",
		n, woken.Round(time.Millisecond), live.since(empty, n), 100*(later.cpu-live.cpu).Seconds()/float64(size(2, 20)), mail)
	if each := (live.bytes - min(live.bytes, empty.bytes)) / uint64(n); each > maxLive && alone() {
		t.Errorf("a live session takes %d bytes", each)
	}
	c.queueMoves(size(3, 10))
	began = time.Now()
	c.stop()
	report(t, "%d live sessions are let go of in %s; %d leases were lost before", n, time.Since(began).Round(time.Millisecond), c.lost.n.Load())
	if all, once := c.requests(); all != 2*n+3*size(50, 500)+size(3, 10) || !once {
		t.Errorf("%d requests were heard, each once: %t", all, once)
	}
}
