package slack

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ship/integrations/slack/slacktest"
	"ship/sandbox/lifecycle"
	"ship/session"
)

// actor plays one session with a busy agent: what goes to Slack is performed,
// what happens in boxes and on the code host is made up.
type actor struct {
	*floor
	thread thread
	state  session.State
	policy session.Policy
	// life is how long the agent works, and over when its work ends; zero until it
	// begins.
	life time.Duration
	over time.Time
	// steps that it took; silent: it takes one only.
	steps  int
	silent bool
	// begun is when it was asked; noticed, told and settled how long after that,
	// and after the agent's end, people saw it.
	begun                  time.Time
	noticed, told, settled time.Duration
}

func (f *floor) actor(t thread, life time.Duration) *actor {
	return &actor{
		floor: f, thread: t, life: life, state: session.State{ID: t.id()},
		policy: session.Policy{
			Model: "acme/large", Models: []string{"acme/large"}, BudgetUSD: 5, TurnTimeout: 5 * time.Hour, Boxes: lifecycle.Policy{IdleDestroy: 24 * time.Hour},
			Pace:   func(_ string, running time.Duration) session.Pace { return Pace(running) },
			Help:   func(string) string { return "Help." },
			Status: func(string, session.View) string { return "Status." },
		},
	}
}

func (a *actor) fold(e session.Event) {
	e.At = a.now()
	a.state = session.Step(a.state, e, a.policy)
}

// live plays the session from the request until everything is told.
func (a *actor) live() {
	a.begun = time.Now()
	a.fold(session.Event{Kind: session.Asked, Request: &session.Request{
		ID: "r1", Thread: a.thread.session(), By: session.Person{Login: "ada"}, Verb: session.Instruct, Early: true,
		Ref: ref{kind: refMessage, ts: a.thread.root}.String(), At: a.now(),
	}})
	for a.state.Turn == nil || !a.state.Turn.Told {
		if e, ok := a.due(); ok {
			a.perform(e)
			continue
		}
		time.Sleep(500 * time.Millisecond)
		a.work()
	}
	a.settled = time.Since(a.over)
}

// due is the first effect of those whose time has come. What waits for its time
// holds up those behind it, but for reports.
func (a *actor) due() (session.Effect, bool) {
	for _, e := range a.state.Pending {
		ready := !e.Due.After(a.now())
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

// work is what the agent does in half a second: a step every three.
func (a *actor) work() {
	switch {
	case a.over.IsZero():
	case time.Now().Before(a.over):
		if a.steps++; a.silent && a.steps > 1 || a.steps%6 != 1 {
			return
		}
		a.fold(session.Event{Kind: session.Moved, Progress: &session.Progress{
			Doing: "bash", Steps: []string{fmt.Sprintf("bash: go test ./%d", a.steps)},
			Todos: []session.Todo{{Text: fmt.Sprintf("Step %d", a.steps/60), Status: "in_progress"}}, Usage: session.Usage{Calls: a.steps},
		}})
	default:
		for _, e := range a.state.Pending {
			if e.Kind == session.Run {
				a.fold(session.Event{Kind: session.Done, Performed: &session.Performed{
					Effect: e.ID, Turn: &session.Outcome{Ending: session.Completed, Answer: "Done.", Served: 1},
				}})
			}
		}
	}
}

func (a *actor) perform(e session.Effect) {
	if e.By != Platform || e.Kind == session.Admit {
		a.fold(session.Event{Kind: session.Done, Performed: a.madeUp(e)})
		return
	}
	job := session.Job{Effect: e, State: a.state, Repeat: e.Attempts > 0, Now: a.now, Lease: session.Lease{Epoch: 1}}
	done, err := a.performer.Perform(a.t.Context(), job)
	if err == nil {
		a.seenBy(e.Kind)
		a.fold(session.Event{Kind: session.Done, Performed: &done})
		return
	}
	p, ok := errors.AsType[*session.Problem](err)
	if !ok || !p.Again {
		a.t.Errorf("%s: %v", e.Kind, err)
		p = &session.Problem{Err: err}
	}
	a.fold(session.Event{Kind: session.Broke, Failed: &session.Failed{Effect: e.ID, Say: p.Say, Again: p.Again, After: p.After, Err: err.Error()}})
}

func (a *actor) seenBy(k session.EffectKind) {
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

// shows is the living message as people read it in the end.
func (a *actor) shows() slacktest.Message {
	return a.Message(a.thread.channel, parseShown(a.state.Threads[0].Ref).ts)
}

// TestAnHour: what one turn of an hour costs, busy and silent, and that Slack
// never asks us to slow down.
func TestAnHour(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		life     time.Duration
		silent   bool
		from, to int
	}{
		{time.Minute, false, 10, 20}, {time.Hour, false, 150, 190}, {time.Hour, true, 50, 70}, {3 * time.Hour, true, 75, 100},
	} {
		name := fmt.Sprintf("%s, silent %v", tt.life, tt.silent)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFloor(t, slacktest.Options{})
			synctest.Test(t, func(t *testing.T) {
				w := f.inBubble(t)
				a := f.actor(f.thread, tt.life)
				a.silent = tt.silent
				a.live()
				m := a.shows()
				t.Logf("%s: %d requests %v; noticed after %s, answered %s and settled %s after the end", name, total(w.done), w.done, a.noticed, a.told, a.settled)
				if n := w.done["chat.update"]; n < tt.from || n > tt.to {
					t.Errorf("%d updates, want %d to %d", n, tt.from, tt.to)
				}
				if w.done[setStatus] > 2+int(tt.life/processingLasts) || w.done["conversations.replies"] > 1 {
					t.Errorf("%v", w.done)
				}
				if total(w.over) > 0 {
					t.Errorf("refused for the rate: %v", w.over)
				}
				if f.Session(a.thread.channel, a.thread.root).Status != "active" || len(m.Controls) != 2 {
					t.Errorf("in the end: %v\n%s", m.Controls, m.Plain)
				}
			})
		})
	}
}

// TestTwenty sessions at once share what Slack lets us do: each is noticed and
// answered in time, each shows its end, and only progress is left out.
func TestTwenty(t *testing.T) {
	t.Parallel()
	f := newFloor(t, slacktest.Options{})
	var threads []thread
	for i := range 20 {
		name := fmt.Sprintf("eng-%d", i/2) // ten channels
		if i%2 == 0 {
			f.CreateChannel(slacktest.Channel{Name: name, Members: []string{"ada"}})
		}
		threads = append(threads, f.mentioned(name))
	}
	synctest.Test(t, func(t *testing.T) {
		w := f.inBubble(t)
		done := make(chan *actor)
		for _, in := range threads {
			a := f.actor(in, 20*time.Minute)
			go func() { a.live(); done <- a }()
		}
		least, most := 1<<30, 0
		var noticed, told, settled time.Duration
		for range threads {
			a := <-done
			m := a.shows()
			least, most = min(least, m.Updates), max(most, m.Updates)
			noticed, told, settled = max(noticed, a.noticed), max(told, a.told), max(settled, a.settled)
			if f.Session(a.thread.channel, a.thread.root).Status != "active" || len(m.Controls) != 2 {
				t.Errorf("in the end: %v\n%s", m.Controls, m.Plain)
			}
		}
		t.Logf("%d requests %v, refused %v; %d to %d updates each; noticed after %s, answered %s and settled %s after the end at the latest",
			total(w.done), w.done, w.over, least, most, noticed, told, settled)
		if noticed > 10*time.Second || told > 20*time.Second || settled > 3*time.Minute || least < 30 {
			t.Errorf("noticed after %s, answered after %s, settled after %s, %d updates", noticed, told, settled, least)
		}
		if total(w.over) > total(w.done)/50 {
			t.Errorf("refused for the rate: %v of %v", w.over, w.done)
		}
	})
}
