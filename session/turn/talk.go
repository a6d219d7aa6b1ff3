package turn

import (
	"context"
	"sync"
	"time"

	"ship/sandbox/agent"
	"ship/sandbox/broker"
	"ship/session"
)

// steerEvery is how often a running turn looks for requests that steer it. The
// state is in memory, so a look costs nothing.
const steerEvery = 300 * time.Millisecond

// maxCommands is how many commands the proof in a pull request names.
const maxCommands = 20

// talk is one leg of a turn's conversation with the agent: the requests that
// were there when it began, and those that came while it worked.
type talk struct {
	worker *Worker
	job    session.Job
	agent  agent.Agent
	// mu guards what the supervisor's callbacks and the steering share.
	mu           sync.Mutex
	conversation string
	// said is how many of the turn's requests were given to the agent.
	said int
	// last is what was told last.
	last session.Progress
	// sum is what was spent when that was looked at last.
	sum broker.Balance
	// log says what goes to the transcript, and write appends that under the leg's
	// context.
	log   *logbook
	write func(lines []string)
}

func newTalk(w *Worker, job session.Job, a agent.Agent) *talk {
	t := &talk{worker: w, job: job, agent: a, conversation: job.State.Conversation, last: job.State.Turn.Progress}
	t.log = newLogbook(w.Secrets, t.last.Conversation != "")
	if o := job.State.Turn.Outcome; o != nil {
		t.said = o.Served // an earlier leg
	}
	return t
}

// hold speaks with the agent until it has dealt with everything said.
func (t *talk) hold(ctx context.Context) (session.Outcome, error) {
	t.write = func(lines []string) { t.transcribe(ctx, lines) }
	steering, stop := context.WithCancelCause(ctx)
	steered := make(chan struct{})
	first := t.said
	t.said++
	go func() { defer close(steered); t.steer(steering) }()
	result, err := agent.Supervise(ctx, t.agent, t.run(first))
	stop(nil)
	<-steered
	for err == nil && result.Ending == agent.Completed && t.said-1 > first {
		first = t.said - 1 // what was said last may have begun a turn of its own
		var more agent.Result
		more, err = agent.Supervise(ctx, t.agent, t.run(first))
		more.Calls = append(result.Calls, more.Calls...)
		result = more
	}
	if err != nil {
		return session.Outcome{}, err
	}
	t.write(t.log.hear(result.Answer))
	return t.outcome(ctx, result), nil
}

// request returns the i-th request of the turn, which every later state has.
func (t *talk) request(i int) (session.Request, bool) {
	requests := t.job.Latest().Turn.Requests
	if i >= len(requests) {
		return session.Request{}, false
	}
	return requests[i], true
}

func (t *talk) prompt(i int) agent.Prompt {
	r, _ := t.request(i)
	return agent.Prompt{
		ID: r.ID, Text: prompt(t.job.State, r, i == 0), System: t.system(),
		Model: modelOf(t.job.State.Turn.Model),
	}
}

// system is what holds for the session, and for all on this machine.
func (t *talk) system() string {
	text := system(t.job.State) + reach(t.worker.Hosts)
	if t.worker.Previews != nil {
		text += showing
	}
	return text
}

func (t *talk) run(i int) agent.Run {
	limits := t.worker.Limits
	limits.Deadline = deadline(t.job)
	return agent.Run{
		Conversation: t.conversation, Title: "ship " + string(t.job.State.ID),
		Prompt: t.prompt(i), Limits: limits, StopCause: session.ErrStopRequested,
		Usage: t.usage, Progress: t.progress, Redact: t.worker.Redact, Watch: func(calls []agent.Call) { t.write(t.log.see(calls)) },
	}
}

// steer gives the agent what people say while it works. A prompt that fails is
// tried again at the next look; one that is said twice is heard once.
func (t *talk) steer(ctx context.Context) {
	tick := time.NewTicker(steerEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			t.steerOnce(ctx)
		}
	}
}

func (t *talk) steerOnce(ctx context.Context) {
	conversation, next := t.where()
	if _, ok := t.request(next); !ok || conversation == "" {
		return
	}
	if err := t.agent.Prompt(ctx, conversation, t.prompt(next)); err != nil {
		if ctx.Err() == nil {
			t.worker.Log.WarnContext(ctx, "steer the agent", "session", string(t.job.State.ID), "err", err)
		}
		return
	}
	t.mu.Lock()
	t.said++
	t.mu.Unlock()
}

func (t *talk) where() (conversation string, said int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conversation, t.said
}

// usage is the broker's count, which includes what the agent does not tell.
func (t *talk) usage(ctx context.Context) (agent.Usage, error) {
	sum, err := t.worker.Broker.Balance(ctx, t.worker.grant(t.job))
	if err == nil {
		t.mu.Lock()
		t.sum = sum
		t.mu.Unlock()
	}
	u := sum.Turn
	return agent.Usage{Calls: u.Calls, Input: u.Input, Output: u.Output, USD: u.USD}, err
}

func (t *talk) progress(p agent.Progress) {
	t.mu.Lock()
	if p.Conversation != "" {
		t.conversation = p.Conversation
	}
	t.mu.Unlock()
	t.tell(func(last *session.Progress) {
		*last = session.Progress{
			Doing: p.Doing, Todos: todos(p.Todos), Steps: p.Steps, Usage: usageOf(p.Usage),
			Conversation: p.Conversation, Active: byStore(t.job, p.Active), Preview: last.Preview,
			Today: t.worker.today(t.job, t.sum),
		}
	})
}

// show tells what the box shows. It is no work of the agent's.
func (t *talk) show(p session.Preview) {
	t.tell(func(last *session.Progress) { last.Preview = &p })
}

// tell tells what was told last with a change: each report replaces the one
// before.
func (t *talk) tell(change func(last *session.Progress)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.last)
	t.job.Progress(t.last)
}

// transcribe keeps what happens for whoever wants to read it later. Losing a line
// costs nothing that matters.
func (t *talk) transcribe(ctx context.Context, lines []string) {
	if t.worker.Transcript == nil || len(lines) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := t.worker.Transcript.Write(ctx, t.job.State.ID, lines); err != nil && ctx.Err() == nil {
		t.worker.Log.WarnContext(ctx, "write the transcript", "session", string(t.job.State.ID), "err", err)
	}
}

func todos(in []agent.Todo) []session.Todo {
	out := make([]session.Todo, 0, len(in))
	for _, d := range in {
		out = append(out, session.Todo{Text: d.Text, Status: d.Status})
	}
	return out
}

func usageOf(u agent.Usage) session.Usage {
	return session.Usage{Calls: u.Calls, Input: u.Input, Output: u.Output, USD: u.USD}
}

// outcome is what the session keeps of a result.
func (t *talk) outcome(ctx context.Context, r agent.Result) session.Outcome {
	if u, err := t.usage(ctx); err == nil {
		r.Usage = u
	}
	o := outcomeOf(r)
	_, o.Served = t.where()
	t.mu.Lock()
	defer t.mu.Unlock()
	o.Today = t.worker.today(t.job, t.sum)
	if o.Ending == session.Spent {
		o.Limit = t.worker.limit(t.job, t.sum)
	}
	return o
}

// outcomeOf takes the question out of an answer that ends with one. Work that
// was cut off has none: what to do next is another question then.
func outcomeOf(r agent.Result) session.Outcome {
	o := session.Outcome{
		Ending: session.Ending(r.Ending), Say: r.Say, Answer: r.Answer, Usage: usageOf(r.Usage), Commands: commands(r.Calls),
	}
	if r.Ending != agent.Completed {
		return o
	}
	if q, rest, ok := parseQuestion(r.Answer); ok {
		o.Question, o.Answer = &q, rest
	}
	return o
}

func commands(calls []agent.Call) []string {
	var out []string
	for _, c := range calls {
		if c.Command == "" {
			continue
		}
		mark := "✓ "
		if c.Status == agent.CallFailed {
			mark = "✗ "
		}
		out = append(out, mark+c.Command)
	}
	if len(out) > maxCommands {
		out = out[len(out)-maxCommands:]
	}
	return out
}
