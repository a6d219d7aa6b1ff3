package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeAgent plays a turn by the clock. Tests run it in a synctest bubble.
type fakeAgent struct {
	// scene is what a look shows, so long after the first prompt.
	scene func(f *fakeAgent, since time.Duration) Snapshot
	// fail is asked before every call; nil or a nil error lets it through.
	fail func(f *fakeAgent, call string) error
	// revive answers Revive.
	revive func(f *fakeAgent) (bool, error)
	// hints per second that Hints yields.
	hints int
	// slowAbort is how long the agent goes on after Abort.
	slowAbort time.Duration
	// conversations that exist.
	conversations []string

	mu      sync.Mutex
	prompts []Prompt
	begun   time.Time
	aborted time.Time
	calls   map[string]int
}

func (f *fakeAgent) enter(ctx context.Context, call string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f.mu.Lock()
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	f.calls[call]++
	f.mu.Unlock()
	if f.fail == nil {
		return nil
	}
	return f.fail(f, call)
}

func (f *fakeAgent) count(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[call]
}

// said are the ids of the prompts, in order.
func (f *fakeAgent) said() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, p := range f.prompts {
		out = append(out, p.ID)
	}
	return out
}

func (f *fakeAgent) Open(ctx context.Context, title string) (string, error) {
	if err := f.enter(ctx, "open"); err != nil {
		return "", err
	}
	return "c:" + title, nil
}

func (f *fakeAgent) Prompt(ctx context.Context, conversation string, p Prompt) error {
	if err := f.enter(ctx, "prompt"); err != nil {
		return err
	}
	if f.conversations != nil && !slices.Contains(f.conversations, conversation) {
		return fmt.Errorf("%s: %w", conversation, ErrUnknown)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.ContainsFunc(f.prompts, func(q Prompt) bool { return q.ID == p.ID }) {
		return nil
	}
	if f.begun.IsZero() {
		f.begun = time.Now()
	}
	f.prompts = append(f.prompts, p)
	return nil
}

func (f *fakeAgent) Snapshot(ctx context.Context, _, promptID string) (Snapshot, error) {
	if err := f.enter(ctx, "snapshot"); err != nil {
		return Snapshot{}, err
	}
	f.mu.Lock()
	begun, aborted := f.begun, f.aborted
	f.mu.Unlock()
	if begun.IsZero() {
		return Snapshot{Status: Status{Phase: Idle}}, nil
	}
	s := f.scene(f, time.Since(begun))
	s.Prompted = slices.Contains(f.said(), promptID)
	for _, id := range f.said() {
		if id != promptID {
			s.Prompts = append(s.Prompts, id)
		}
	}
	if !aborted.IsZero() && time.Since(aborted) >= f.slowAbort && !s.Finished {
		s.Status, s.Finished, s.Aborted = Status{Phase: Idle}, true, true
	}
	return s, nil
}

func (f *fakeAgent) Abort(ctx context.Context, _ string) error {
	if err := f.enter(ctx, "abort"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.aborted.IsZero() {
		f.aborted = time.Now()
	}
	return nil
}

func (f *fakeAgent) Hints(ctx context.Context) <-chan struct{} {
	out := make(chan struct{})
	go func() {
		defer close(out)
		if f.hints == 0 {
			<-ctx.Done()
			return
		}
		tick := time.NewTicker(time.Second / time.Duration(f.hints))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out
}

func (f *fakeAgent) Revive(ctx context.Context) (bool, error) {
	if err := f.enter(ctx, "revive"); err != nil {
		return false, err
	}
	if f.revive == nil {
		return false, nil
	}
	return f.revive(f)
}

// The scenes.

type scene = func(*fakeAgent, time.Duration) Snapshot

func busy(mark any, calls ...Call) Snapshot {
	return Snapshot{
		Status: Status{Phase: Busy}, Started: true, Calls: calls,
		Fingerprint: fmt.Sprint(mark), Text: "so far",
	}
}

func idle(s Snapshot) Snapshot {
	s.Status = Status{Phase: Idle}
	return s
}

func done(text string) Snapshot {
	s := idle(busy("done"))
	s.Finished, s.Text = true, text
	return s
}

func failed(f Failure) Snapshot {
	s := done("")
	s.Failure = &f
	return s
}

func cutOff() Snapshot {
	s := idle(busy("cut"))
	s.Cut = true
	return s
}

// always shows the same for ever.
func always(s Snapshot) scene {
	return func(*fakeAgent, time.Duration) Snapshot { return s }
}

// after moves once a second until a time, and shows s from then on.
func after(d time.Duration, s Snapshot) scene {
	return func(_ *fakeAgent, since time.Duration) Snapshot {
		if since < d {
			return busy(since / time.Second)
		}
		return s
	}
}

// steps makes one call more every two seconds.
func stepping(call func(n int) Call) scene {
	return func(_ *fakeAgent, since time.Duration) Snapshot {
		var calls []Call
		for n := range int(since/(2*time.Second)) + 1 {
			calls = append(calls, call(n))
		}
		return busy(len(calls), calls...)
	}
}

func bash(input string, status CallStatus, err string) Call {
	return Call{Tool: "bash", Title: input, Digest: input, Status: status, Error: err}
}
