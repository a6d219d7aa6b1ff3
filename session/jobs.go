package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// jobs are the effects that a coordinator has under way. Effects of one
// performer go in order, one at a time; those of different performers side by
// side. Only the coordinator's goroutine touches it, but for the fields that
// say otherwise.
type jobs struct {
	co      *coordinator
	running map[string]*job // by effect id
	lanes   map[string]bool // by Effect.By
	wg      sync.WaitGroup
	latest  atomic.Pointer[State]
	// moved tells that progress waits.
	moved chan struct{}
	mu    sync.Mutex
	// news is the newest progress by effect id; guarded by mu.
	news map[string]Progress
}

type job struct {
	effect Effect
	cancel context.CancelCauseFunc
}

type result struct {
	effect    Effect
	performed Performed
	err       error
}

func newJobs(c *coordinator) *jobs {
	return &jobs{
		co: c, running: map[string]*job{}, lanes: map[string]bool{},
		moved: make(chan struct{}, 1), news: map[string]Progress{},
	}
}

// committed publishes the state to running jobs.
func (j *jobs) committed(s State) { j.latest.Store(&s) }

// launch starts what may begin now.
func (j *jobs) launch(ctx context.Context) {
	ready, _ := schedule(j.co.state.Pending, j.lanes, j.co.now())
	for _, e := range ready {
		j.start(ctx, e)
	}
}

// nextDue is when the next effect of a free performer may begin.
func (j *jobs) nextDue() time.Time {
	_, next := schedule(j.co.state.Pending, j.lanes, j.co.now())
	return next
}

func (j *jobs) start(ctx context.Context, e Effect) {
	jctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx)) // drain and abandon cancel it, with a cause
	j.running[e.ID] = &job{effect: e, cancel: cancel}
	j.lanes[e.By] = true
	j.committed(j.co.state)
	j.heed(j.co.state)
	work := Job{
		Effect: e, State: j.co.state, Lease: j.co.lease, Now: j.co.now,
		Repeat:   e.Attempts > 0 || e.Epoch != j.co.lease.Epoch,
		Latest:   func() State { return *j.latest.Load() },
		Progress: func(p Progress) { j.tell(e.ID, p) },
	}
	j.wg.Go(func() {
		defer cancel(nil)
		p, err := j.perform(jctx, work)
		j.co.results <- result{effect: e, performed: p, err: err}
	})
}

// perform does one effect. A panic in a performer is that effect's failure,
// not the process's end.
func (j *jobs) perform(ctx context.Context, work Job) (p Performed, err error) {
	ctx, ended := j.co.observed(ctx, work)
	defer func() { ended(err) }()
	defer func() {
		if r := recover(); r != nil {
			err = &Problem{Err: fmt.Errorf("panic: %v", r), Say: "Something failed on my side in a way that I did not expect. `/ship retry` tries again."}
		}
	}()
	e := work.Effect
	if cause := context.Cause(ctx); cause != nil && !mustStop(work, cause) {
		return Performed{}, cause
	}
	j.co.hook("effect." + string(e.Kind) + ".before")
	if e.By == Self {
		p, err = j.co.performSelf(ctx, e)
	} else if performer, ok := j.co.Performers[e.By]; ok {
		p, err = performer.Perform(ctx, work)
	} else {
		err = &Problem{Err: fmt.Errorf("no performer for %q", e.By), Say: "I am not set up for that platform."}
	}
	j.co.hook("effect." + string(e.Kind) + ".after")
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return p, err
}

// mustStop: an earlier try may have set the agent to work, or made a box, and only
// the performer can end that.
func mustStop(work Job, cause error) bool {
	k := work.Effect.Kind
	return (k == Run || k == Prepare) && work.Repeat && errors.Is(cause, ErrStopRequested)
}

// performSelf does what concerns only the store. Forwarding twice appends
// once: the request's own id is the key.
func (c *coordinator) performSelf(ctx context.Context, e Effect) (Performed, error) {
	if e.Kind != Forward {
		return Performed{}, &Problem{Err: fmt.Errorf("no such effect %q", e.Kind), Say: "I don't know how to do that."}
	}
	_, err := c.Inbox.Append(ctx, Delivery{
		Session: e.To, Keys: []string{"forward:" + e.ID}, Keep: 7 * 24 * time.Hour,
		Event: Event{V: EventVersion, Kind: Asked, Request: e.Request},
	})
	if err != nil {
		return Performed{}, fmt.Errorf("forward to %s: %w", e.To, err)
	}
	return Performed{}, nil
}

// tell takes progress from a performer's goroutine. It never blocks.
func (j *jobs) tell(id string, p Progress) {
	p.Effect = id
	j.mu.Lock()
	j.news[id] = p
	j.mu.Unlock()
	select {
	case j.moved <- struct{}{}:
	default:
	}
}

func (j *jobs) takeProgress() []Progress {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []Progress
	for id, p := range j.news {
		if _, ok := j.running[id]; ok && j.has(id) {
			out = append(out, p)
		}
	}
	clear(j.news)
	return out
}

// heed stops what runs in a box once a person said stop, or the box is known to
// be gone.
func (j *jobs) heed(s State) {
	for id, r := range j.running {
		if r.effect.inBox() && !j.has(id) {
			r.cancel(ErrBoxLost)
		}
	}
	if s.Turn == nil || s.Turn.Stopping == "" {
		return
	}
	for _, r := range j.running {
		if r.effect.Kind == Prepare || r.effect.Kind == Run {
			r.cancel(ErrStopRequested)
		}
	}
}

func (j *jobs) has(id string) bool {
	for _, e := range j.co.state.Pending {
		if e.ID == id {
			return true
		}
	}
	return false
}

func (j *jobs) ended(r result) {
	delete(j.running, r.effect.ID)
	delete(j.lanes, r.effect.By)
}

func (j *jobs) cancelAll(cause error) {
	for _, r := range j.running {
		r.cancel(cause)
	}
}

func (j *jobs) cancelWorkers(cause error) {
	for _, r := range j.running {
		if r.effect.By == Worker {
			r.cancel(cause)
		}
	}
}

// collect takes results until none is outstanding or the time is up.
func (j *jobs) collect(until time.Time, take func(result)) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for len(j.running) > 0 {
		select {
		case r := <-j.co.results:
			if take != nil {
				take(r)
			} else {
				j.ended(r)
			}
		case <-timer.C:
			return
		}
	}
}

// wait ends what is left when the coordinator returns: nobody reads results
// any more.
func (j *jobs) wait() {
	j.cancelAll(ErrLeaseLost)
	done := make(chan struct{})
	go func() { j.wg.Wait(); close(done) }()
	for {
		select {
		case <-j.co.results:
		case <-done:
			return
		}
	}
}
