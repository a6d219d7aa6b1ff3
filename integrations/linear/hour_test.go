package linear

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ql "ship/graphql/linear"
	"ship/integrations/linear/lineartest"
	"ship/sandbox/lifecycle"
	"ship/session"
	"ship/session/memory"
)

// wire carries requests out of a bubble of virtual time. The stand-in's clock
// follows the bubble's.
type wire struct {
	server *lineartest.Server
	begun  time.Time
	next   http.RoundTripper

	mu sync.Mutex
	// set is how far the stand-in's clock was turned; guarded by mu, as the rest.
	set time.Duration
	// done and over count requests, and those that were refused for the rate.
	done, over int
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	if since := time.Since(w.begun); since > w.set {
		w.server.Advance(since - w.set)
		w.set = since
	}
	w.mu.Unlock()
	resp, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done++
	if StatusOf(resp.StatusCode, body) == http.StatusTooManyRequests {
		w.over++
	}
	return resp, err
}

// inBubble puts a stage into virtual time. The stand-in itself stays outside.
func (s *stage) inBubble(t *testing.T) *wire {
	w := &wire{server: s.Server, begun: time.Now(), next: &http.Transport{DisableKeepAlives: true}}
	s.quota = &memory.Quota{}
	s.performer = s.gateway(w)
	s.t = t
	return w
}

// actor plays one session with a busy agent: what goes to Linear is performed,
// what happens in boxes and on the code host is made up.
type actor struct {
	*stage
	thread thread
	state  session.State
	policy session.Policy
	// life is how long the agent works, and how it ends.
	life time.Duration
	end  session.Outcome
	// every is how long a step takes, if more than three seconds.
	every time.Duration
	// over is when the agent's work ends; zero until it begins.
	over time.Time
	// steps that it took; silent: it takes none.
	steps  int
	silent bool
	// begun is when it was asked; noticed and told how long after that, and after
	// the agent's end, people saw it.
	begun         time.Time
	noticed, told time.Duration
}

func (s *stage) actor(t thread, life time.Duration, end session.Outcome) *actor {
	return &actor{
		stage: s, thread: t, life: life, end: end, state: session.State{ID: t.id()},
		policy: session.Policy{
			Model: "acme/large", Models: []string{"acme/large"}, BudgetUSD: 5, TurnTimeout: 5 * time.Hour, Boxes: lifecycle.Policy{IdleDestroy: 24 * time.Hour},
			Pace:   func(_ string, running time.Duration) session.Pace { return Pace(running) },
			Help:   func(string) string { return "Help." },
			Status: func(string, session.View) string { return "Status." },
		},
	}
}

func (a *actor) fold(e session.Event) {
	e.At = time.Now()
	a.state = session.Step(a.state, e, a.policy)
}

// live plays the session from the request until everything is told.
func (a *actor) live() {
	a.begun = time.Now()
	a.fold(session.Event{Kind: session.Asked, Request: &session.Request{
		ID: "r1", Thread: a.thread.session(), By: session.Person{Login: "ada"}, Verb: session.Instruct, Early: true, At: time.Now(),
	}})
	var waited time.Duration
	for a.state.Turn == nil || !a.state.Turn.Told {
		if e, ok := a.due(); ok {
			a.perform(e)
			continue
		}
		time.Sleep(3 * time.Second)
		if waited += 3 * time.Second; waited >= a.every {
			waited = 0
			a.work()
		}
	}
}

// due is the first effect of those whose time has come. What waits for its time
// holds up those behind it, but for reports.
func (a *actor) due() (session.Effect, bool) {
	for _, e := range a.state.Pending {
		ready := !e.Due.After(time.Now())
		if ready && e.Kind != session.Run {
			return e, true
		}
		if ready && a.over.IsZero() {
			a.over = time.Now().Add(a.life)
		}
		if !ready && e.By == Platform && e.Kind != session.Report {
			return e, false
		}
	}
	return session.Effect{}, false
}

// work is what the agent does at a time: one step, of many to see.
func (a *actor) work() {
	switch {
	case a.over.IsZero():
	case time.Now().Before(a.over):
		if a.silent && a.steps > 0 {
			return
		}
		a.steps++
		a.fold(session.Event{Kind: session.Moved, Progress: &session.Progress{
			Doing: "bash", Steps: []string{fmt.Sprintf("bash: go test ./%d", a.steps)},
			Todos: []session.Todo{{Text: fmt.Sprintf("Step %d", a.steps/10), Status: "in_progress"}}, Usage: session.Usage{Calls: a.steps},
		}})
	default:
		end := a.end
		end.Served = 1
		for _, e := range a.state.Pending {
			if e.Kind == session.Run {
				a.fold(session.Event{Kind: session.Done, Performed: &session.Performed{Effect: e.ID, Turn: &end}})
			}
		}
	}
}

func (a *actor) perform(e session.Effect) {
	if e.By != Platform || e.Kind == session.Admit || e.Kind == session.Begin {
		a.fold(session.Event{Kind: session.Done, Performed: a.madeUp(e)})
		return
	}
	done, err := a.performer.Perform(a.t.Context(), session.Job{Effect: e, State: a.state, Repeat: e.Attempts > 0})
	if err == nil {
		a.seen(e.Kind)
		a.fold(session.Event{Kind: session.Done, Performed: &done})
		return
	}
	var p *session.Problem
	if !errors.As(err, &p) || !p.Again {
		a.t.Errorf("%s: %v", e.Kind, err)
		p = &session.Problem{Err: err}
	}
	a.fold(session.Event{Kind: session.Broke, Failed: &session.Failed{Effect: e.ID, Say: p.Say, Again: p.Again, After: p.After, Err: err.Error()}})
}

func (a *actor) seen(k session.EffectKind) {
	switch k {
	case session.Acknowledge:
		a.noticed = time.Since(a.begun)
	case session.Answer:
		a.told = time.Since(a.over)
	}
}

func (a *actor) madeUp(e session.Effect) *session.Performed {
	p := &session.Performed{Effect: e.ID}
	switch e.Kind {
	case session.Admit:
		p.Admission = &session.Admission{
			By: e.Request.By, Repo: session.Repo{Platform: "github", Name: "acme/widgets", Key: "k"}, Base: "main", Title: "Flaky", Talks: true,
		}
	case session.Prepare:
		p.Prepared = &session.Prepared{Box: "box", Head: "base"}
	case session.Publish:
		p.Published = &session.Published{Head: "head", Changed: true, Files: 1}
	case session.Open:
		p.PR = &session.PullRequest{Number: 7, URL: "https://github.com/acme/widgets/pull/7", Draft: true}
	}
	return p
}

// admission is what admitting a request and taking care of its issue costs at
// most, in requests.
const admission = 10

// TestAnHour: how often a session with a busy agent asks anything of Linear.
func TestAnHour(t *testing.T) {
	t.Parallel()
	s := newStage(t, lineartest.Options{})
	synctest.Test(t, func(t *testing.T) {
		s.inBubble(t)
		a := s.actor(s.thread, time.Hour, completed())
		a.live()
		got := s.Session(s.thread.agentSession)
		n := s.requests()
		t.Logf("%d requests in %s: %d activities, %d plans, %d links; admission besides: %d", n, a.life,
			s.Calls("CreateActivity"), s.Calls("SetPlan"), s.Calls("SetURLs"), admission)
		if n+admission > 150 {
			t.Errorf("%d requests in an hour", n+admission)
		}
		if n < 60 {
			t.Errorf("%d requests: nobody could see what goes on", n)
		}
		last := got.Activities[len(got.Activities)-1]
		if got.Status != ql.AgentSessionStatusComplete || last.Content.Type != ql.TypeResponse || len(got.Links) != 2 {
			t.Errorf("status %s, last %+v, links %+v", got.Status, last, got.Links)
		}
	})
}

// TestAQuietHour: an agent that thinks for an hour is not taken for dead.
func TestAQuietHour(t *testing.T) {
	t.Parallel()
	s := newStage(t, lineartest.Options{})
	synctest.Test(t, func(t *testing.T) {
		s.inBubble(t)
		a := s.actor(s.thread, time.Hour, completed())
		a.silent = true
		a.live()
		got := s.Session(s.thread.agentSession)
		var longest time.Duration
		for i := 1; i < len(got.Activities); i++ {
			longest = max(longest, got.Activities[i].Created.Sub(got.Activities[i-1].Created))
		}
		t.Logf("%d requests, longest silence %s", s.requests(), longest)
		if longest > 10*time.Minute {
			t.Errorf("silent for %s", longest)
		}
	})
}

// TestFloodOfSessions: many at once, which want ten times what Linear allows.
// Each is noticed in time and hears its end; progress makes room.
func TestFloodOfSessions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sessions, allowed int
		life              time.Duration
		// spent: others use up the hour's allowance after half the time.
		spent bool
		// late is how long after its end the last session may hear of it, and over
		// how many requests may be refused. The stand-in gives nothing back before
		// the hour is over, where Linear does all the time: so each half minute some
		// are refused that Linear would have taken.
		late time.Duration
		over int
	}{
		"two hundred":         {sessions: 200, allowed: 1_600, life: 20 * time.Minute, late: 10 * time.Second, over: 60},
		"others spend it all": {sessions: 30, allowed: 600, life: 40 * time.Minute, spent: true, late: 30 * time.Minute, over: 450},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, lineartest.Options{Requests: tt.allowed})
			threads := make([]thread, tt.sessions)
			for i := range threads {
				_, threads[i] = s.delegated()
			}
			synctest.Test(t, func(t *testing.T) {
				w := s.inBubble(t)
				f := s.crowd(threads, tt.life)
				f.live(func() {
					if tt.spent {
						time.Sleep(tt.life / 2)
						s.Spend(tt.allowed, 0)
					}
				})
				t.Logf("%d requests, %d refused for the rate, in %s", w.done, w.over, time.Since(w.begun))
				if w.over > tt.over {
					t.Errorf("%d requests were more than Linear allows", w.over)
				}
				f.heard(t, tt.late)
			})
		})
	}
}

// crowd is many sessions at once.
type crowd []*actor

// crowd's turns end in one way after the other.
func (s *stage) crowd(threads []thread, life time.Duration) crowd {
	ends := []session.Outcome{completed(), {Ending: session.Stuck, Say: "The same call failed three times."}, {Ending: session.Stopped, Say: "Stopped by ada."}}
	var c crowd
	for i, thread := range threads {
		a := s.actor(thread, life, ends[i%len(ends)])
		a.every = 9 * time.Second // each time there may be something to tell
		c = append(c, a)
	}
	return c
}

// live plays all of them, while something else goes on.
func (c crowd) live(meanwhile func()) {
	var all sync.WaitGroup
	for _, a := range c {
		all.Go(a.live)
	}
	meanwhile()
	all.Wait()
}

// heard checks that each session was noticed in time, and hears its own end as
// the last.
func (c crowd) heard(t *testing.T, late time.Duration) {
	t.Helper()
	var noticed, told time.Duration
	var progress []int
	for i, a := range c {
		got := a.Session(a.thread.agentSession)
		want := ql.AgentSessionStatusComplete
		if a.end.Ending == session.Stuck {
			want = ql.AgentSessionStatusError
		}
		if got.Status != want || len(got.Links) != 2 {
			t.Errorf("session %d: status %s, want %s; links %v", i, got.Status, want, got.Links)
		}
		noticed, told = max(noticed, a.noticed), max(told, a.told)
		progress = append(progress, len(got.Activities)-2)
	}
	t.Logf("at the latest noticed after %s, and told %s after the end; activities between: %d to %d",
		noticed, told, slices.Min(progress), slices.Max(progress))
	if noticed > 5*time.Second || told > late {
		t.Errorf("noticed after %s, told %s after the end", noticed, told)
	}
	if slices.Min(progress) == 0 {
		t.Error("of some no progress was shown at all")
	}
}
