package session_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/sandbox/lifecycle"
	"ship/session"
	"ship/session/memory"
)

// world is everything outside: a platform and a box, as far as their effects
// can be seen. It has no idea of effect ids but those that a real platform
// keeps: a marker in what was posted, a name of a prompt.
type world struct {
	mu sync.Mutex
	// limit that the work runs into; empty: none. When people were asked whether
	// to go on past it, it is paused.
	limit  session.Limit
	paused bool
	facts  []string       // what exists, in the order it came to be
	sticky map[string]int // updates of a status comment
	last   string         // what the status comment says
	// written is the message that it says that in, if it is none of its own.
	written string
	head    string
	runs    map[string]int // prompts by id that the agent heard
}

func newWorld() *world { return &world{sticky: map[string]int{}, runs: map[string]int{}} }

// make adds a fact. A performer that was told that it repeats looks first, one
// that was not told does not: a repeat that was not announced shows up twice.
func (w *world) make(repeat bool, fact string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if repeat {
		for _, f := range w.facts {
			if f == fact {
				return
			}
		}
	}
	w.facts = append(w.facts, fact)
}

func (w *world) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	facts := append([]string(nil), w.facts...)
	for id, n := range w.runs {
		facts = append(facts, fmt.Sprintf("prompt %s heard %d times", id, n))
	}
	sort.Strings(facts)
	return strings.Join(append(facts, "status: "+w.last+" "+w.written), "\n")
}

// process is one worker that can be killed: from then on nothing that it does
// reaches the store or the world.
type process struct {
	world  *world
	store  *memory.Store
	dead   atomic.Bool
	points atomic.Int64
	// killAt is the point at which it dies; zero: never.
	killAt int64
	died   chan struct{}
	cancel context.CancelCauseFunc
	trace  []string
	mu     sync.Mutex
}

var errDead = errors.New("process is dead")

func (p *process) point(name string) {
	if p.dead.Load() {
		runtime.Goexit()
	}
	n := p.points.Add(1)
	p.mu.Lock()
	p.trace = append(p.trace, name)
	p.mu.Unlock()
	if n == p.killAt {
		p.kill()
		runtime.Goexit()
	}
}

func (p *process) kill() {
	if p.dead.CompareAndSwap(false, true) {
		close(p.died)
		p.cancel(errDead)
	}
}

func (p *process) Perform(ctx context.Context, job session.Job) (session.Performed, error) {
	e := job.Effect
	var out session.Performed
	switch e.Kind {
	case session.Admit:
		out.Admission = admission(*e.Request, job.State)
		out.Admission.Today = p.today(job)
	case session.Acknowledge:
		p.world.make(true, "eyes on "+e.Ref) // a platform's reaction is idempotent
		out.Voice = p.greet(job)
	case session.Say, session.Reply, session.Ask:
		p.world.make(job.Repeat, string(e.Kind)+" "+e.Text)
	case session.Begin:
		p.world.make(true, "begun") // an issue that is in progress is left alone
		out.Voice = p.adopt(job)
	case session.Answer:
		p.world.make(job.Repeat, "answer "+job.State.Turn.Outcome.Answer)
	case session.Report:
		v := session.ViewOf(job.State)
		p.world.show(v)
		out.Shown, out.Ref = v.Digest(), "sticky"
		if e.By == "chat" {
			p.world.write(shownIn(job))
			out.Ref = ""
		}
	case session.Check:
		p.world.make(job.Repeat, fmt.Sprintf("check %s %s %s", e.Check.SHA, e.Check.Conclusion, e.Check.Title))
	case session.Prepare:
		out.Prepared = &session.Prepared{Box: "box", Head: "base"}
	case session.Run:
		return p.runAgent(ctx, job)
	case session.Publish:
		p.world.push("head1")
		out.Published = &session.Published{Head: "head1", Changed: true, Files: 1}
	case session.Open:
		out.PR = p.world.open(job.Repeat)
	case session.Tend:
		return p.tend(job)
	case session.Close:
		if e.Stay != nil { // how long it was depends on who died when
			p.world.make(true, "booked for "+e.Stay.Payer)
		}
	case session.Discard, session.Sweep, session.MarkReady:
	}
	return out, nil
}

// tend looks whether a turn has begun, and then does what is due with the box.
func (p *process) tend(job session.Job) (session.Performed, error) {
	if job.Latest().Busy() {
		return session.Performed{}, nil
	}
	done := session.Tending(job.State, hasty().Boxes, job.Now(), false)
	p.world.make(true, "box "+string(done.Life.State))
	return session.Performed{Tended: done}, nil
}

// hasty is a policy by which a box is paused and destroyed within the few
// minutes of a play.
func hasty() session.Policy {
	p := policy()
	p.Extend = true
	p.Boxes.IdlePause, p.Boxes.IdleDestroy = 2*time.Minute, 6*time.Minute
	return p
}

// admission: in a conversation nobody knows the repository before it is named.
func admission(r session.Request, s session.State) *session.Admission {
	a := &session.Admission{By: r.By, Repo: session.Repo{Platform: "git", Name: "o/r", Key: "k"}, Base: "main", Title: "T", Talks: r.Early}
	if r.Early && r.Repo == "" && s.Repo.Key == "" {
		a.Repo, a.Question = session.Repo{}, &session.Question{Text: "which?", Choices: []session.Choice{{Value: "o/r"}, {Value: "o/s"}}}
	}
	return a
}

func (p *process) runAgent(ctx context.Context, job session.Job) (session.Performed, error) {
	for _, r := range job.State.Turn.Requests {
		p.world.hear(r.ID)
	}
	select {
	case <-time.After(30 * time.Second):
	case <-ctx.Done():
		return session.Performed{}, context.Cause(ctx)
	}
	if o, err := p.runOut(ctx, job); o != nil || err != nil {
		return session.Performed{Turn: o}, err
	}
	for _, r := range job.Latest().Turn.Requests { // what steered it
		p.world.hear(r.ID)
	}
	return session.Performed{Turn: &session.Outcome{
		Ending: session.Completed, Answer: "done", Served: len(job.Latest().Turn.Requests), Usage: session.Usage{Calls: 2},
	}}, nil
}

// hear runs a prompt once per id, as the agent does.
func (w *world) hear(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[id] = 1
}

func (w *world) show(v session.View) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused = w.paused || w.limit != "" && v.Phase == session.PhaseEnded && v.Turn == 1
	w.last = fmt.Sprintf("%s turn %d pr %v", v.Phase, v.Turn, v.PR != nil)
}

func (w *world) push(head string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.head = head
}

func (w *world) open(repeat bool) *session.PullRequest {
	w.make(repeat, "pull request")
	return &session.PullRequest{Number: 8, Draft: true}
}

// mortal is the store as a process sees it that may be dead.
type mortal struct {
	*memory.Store
	p *process
}

func (m mortal) Claim(ctx context.Context, id session.ID, token string, d time.Duration) (session.Claim, error) {
	m.p.point("claim.before")
	c, err := m.Store.Claim(ctx, id, token, d)
	if err == nil {
		m.p.point("claim.after")
	}
	return c, err
}

func (m mortal) Commit(ctx context.Context, l session.Lease, c session.Commit) error {
	m.p.point("commit.before")
	err := m.Store.Commit(ctx, l, c)
	m.p.point("commit.after")
	return err
}

func (m mortal) Renew(ctx context.Context, l session.Lease, d time.Duration) (int64, error) {
	if m.p.dead.Load() {
		return 0, errDead
	}
	return m.Store.Renew(ctx, l, d)
}

func (m mortal) Due(ctx context.Context, n int) ([]session.ID, error) {
	if m.p.dead.Load() {
		return nil, errDead
	}
	return m.Store.Due(ctx, n)
}

func policy() session.Policy {
	return session.Policy{
		Model: "m/x", Models: []string{"m/x"}, BudgetUSD: 1, TurnTimeout: time.Hour, Boxes: lifecycle.Default(),
		Pace:   func(string, time.Duration) session.Pace { return session.Pace{Every: 10 * time.Second} },
		Help:   func(string) string { return "help" },
		Status: func(_ string, v session.View) string { return string(v.Phase) },
	}
}

// start runs a dispatcher in the process until it ends or dies.
func (p *process) start(ctx context.Context) (ended chan error) {
	ctx, p.cancel = context.WithCancelCause(ctx)
	d := &session.Dispatcher{Max: 10, Engine: &session.Engine{
		Store: mortal{p.store, p}, Inbox: p.store, Policy: hasty(), Log: slog.New(slog.DiscardHandler),
		Performers: map[string]session.Performer{"plat": p, "talk": p, "chat": p, "git": p, session.Worker: p},
		Hook:       p.point,
	}}
	ended = make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	return ended
}

// scene is one kind of session: with a status comment, or a conversation, in
// which the repository is asked for, and in "chat" a message is there at once
// that then is the turn's.
type scene struct {
	platform string
	talks    bool
	// message that the state is to be shown in at the end, if it has one.
	message string
	// limit that the first turn runs into, and that the second goes on past.
	limit session.Limit
}

func (sc scene) ask(t *testing.T, store *memory.Store, id, text string) {
	t.Helper()
	_, err := store.Append(t.Context(), session.Delivery{
		Session: "s.1", Keys: []string{sc.platform + ":" + id}, Keep: time.Hour,
		Event: session.Event{V: session.EventVersion, Kind: session.Asked, Request: &session.Request{
			ID: id, Thread: session.Thread{Platform: sc.platform, Key: "t"}, Early: sc.talks, By: session.Person{Login: "alice"},
			Verb: session.Instruct, Text: text, Ref: id,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// answer names the repository once it is asked for, which a process lives to
// see.
func (sc scene) answer(t *testing.T, store *memory.Store, w *world, p *process) {
	for !w.has("ask which?") && !p.dead.Load() {
		time.Sleep(time.Second)
	}
	if !p.dead.Load() {
		sc.ask(t, store, "c1a", "o/r")
		time.Sleep(5 * time.Second)
	}
}

func (w *world) has(fact string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.facts, fact)
}

// play runs the story of one turn, with a second request in the middle, in
// processes of which the first dies at a point. It returns what the world is
// like an hour later, and how many points the first process passed.
func (sc scene) play(t *testing.T, killAt int64) (w *world, trace []string) {
	store, w := memory.New(), newWorld()
	w.limit = sc.limit
	first := &process{world: w, store: store, killAt: killAt, died: make(chan struct{})}
	ended := first.start(t.Context())
	sc.ask(t, store, "c1", "fix it")
	time.Sleep(5 * time.Second)
	if sc.talks && (killAt == 0 || !first.dead.Load()) {
		sc.answer(t, store, w, first)
	}
	sc.awaitPause(w, first)
	if killAt == 0 || !first.dead.Load() {
		sc.ask(t, store, "c2", sc.second())
	}
	select {
	case <-first.died:
	case <-time.After(10 * time.Minute):
	}
	if first.dead.Load() {
		second := &process{world: w, store: store, died: make(chan struct{})}
		secondEnded := second.start(t.Context())
		if sc.talks { // redelivered: the same keys
			sc.answer(t, store, w, second)
		}
		sc.awaitPause(w, second)
		sc.ask(t, store, "c2", sc.second())
		time.Sleep(10 * time.Minute)
		second.cancel(session.ErrShutdown)
		<-secondEnded
	} else {
		first.cancel(session.ErrShutdown)
	}
	<-ended
	return w, first.trace
}

func TestCrashAnywhere(t *testing.T) {
	t.Parallel()
	t.Run("status comment", func(t *testing.T) { t.Parallel(); scene{platform: "plat"}.sweep(t) })
	t.Run("conversation", func(t *testing.T) { t.Parallel(); scene{platform: "talk", talks: true}.sweep(t) })
	t.Run("a turn's money", func(t *testing.T) {
		t.Parallel()
		scene{platform: "plat", limit: session.TurnLimit}.sweep(t)
	})
	t.Run("the day's money", func(t *testing.T) {
		t.Parallel()
		scene{platform: "plat", limit: session.DayLimit}.sweep(t)
	})
	t.Run("a person's money, in a conversation", func(t *testing.T) {
		t.Parallel()
		scene{platform: "talk", talks: true, limit: session.PersonLimit}.sweep(t)
	})
	t.Run("living message", func(t *testing.T) {
		t.Parallel()
		scene{platform: "chat", talks: true, message: "1.living message"}.sweep(t)
	})
}

func (sc scene) sweep(t *testing.T) {
	var want string
	var points []string
	synctest.Test(t, func(t *testing.T) {
		w, trace := sc.play(t, 0)
		want, points = w.String(), trace
	})
	if !strings.HasSuffix(want, "status: ended turn "+sc.turns()+" pr true "+sc.message) || !sc.heard(want) || len(points) < 20 || !strings.Contains(want, "box paused\nbox destroyed") && !strings.Contains(want, "box destroyed\nbox paused") {
		t.Fatalf("the clean run passed %d points and left:\n%s", len(points), want)
	}
	for n := range points {
		t.Run(fmt.Sprintf("%d %s", n+1, points[n]), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, _ := sc.play(t, int64(n+1))
				if diff := cmp.Diff(want, w.String()); diff != "" {
					t.Errorf("killed at %s (-clean +killed):\n%s", points[n], diff)
				}
			})
		})
	}
}
