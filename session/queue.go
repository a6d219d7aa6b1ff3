package session

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// maxLook is how long a wait for a quota goes without looking again: a limit
// may have grown.
const maxLook = time.Minute

// Queue waits for a Quota, in lines: whoever is at the head of one asks the
// quota, and the others behind it do not. There is a line for each account and
// share of it that is to be left, so the less urgent is in nobody's way. It is
// safe for concurrent use. Several queues, of several processes, over one quota
// share it, and come to their turns by chance.
type Queue struct {
	quota Quota

	mu    sync.Mutex
	lines map[lineID]*line // guarded by mu
}

type lineID struct {
	account string
	share   float64
}

// line has somebody in it.
type line struct {
	head chan struct{} // holds whoever is at the head
	long int           // guarded by Queue.mu
}

// Demand is an allowance of an account.
type Demand struct {
	Account string
	Allowance
}

// NewQueue returns a queue before a quota.
func NewQueue(q Quota) *Queue { return &Queue{quota: q, lines: make(map[lineID]*line)} }

// Wait takes one allowance after the other, each when it can be had, or returns
// the cause of ctx's end. Until it has them all it stays at the head of their
// lines: so what was taken first is not hoarded by many that wait for the next.
// Everybody names accounts in the same order. What was taken when it fails is
// lost.
func (q *Queue) Wait(ctx context.Context, all ...Demand) error {
	for _, d := range all {
		leave, err := q.enter(ctx, lineID{d.Account, d.Share})
		if err != nil {
			return err
		}
		defer leave()
		if err := q.take(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// Try is Wait for what is not worth waiting for: it takes what can be had now,
// or tells how long the first that cannot will take, and goes no further. What
// was taken before that is lost.
func (q *Queue) Try(ctx context.Context, all ...Demand) (wait time.Duration, err error) {
	for _, d := range all {
		wait, err := q.quota.Take(ctx, d.Account, d.Allowance)
		if err != nil {
			return 0, fmt.Errorf("ask for an allowance: %w", err)
		}
		if wait > 0 {
			return wait, nil
		}
	}
	return 0, nil
}

func (q *Queue) take(ctx context.Context, d Demand) error {
	for {
		wait, err := q.quota.Take(ctx, d.Account, d.Allowance)
		if err != nil {
			return fmt.Errorf("wait for an allowance: %w", err)
		}
		if wait <= 0 {
			return nil
		}
		if err := Sleep(ctx, min(wait, maxLook)); err != nil {
			return err
		}
	}
}

// enter returns at the head of a line.
func (q *Queue) enter(ctx context.Context, id lineID) (leave func(), err error) {
	l := q.line(id)
	select {
	case l.head <- struct{}{}:
		return func() { <-l.head; q.left(id, l) }, nil
	case <-ctx.Done():
		q.left(id, l)
		return nil, context.Cause(ctx)
	}
}

func (q *Queue) line(id lineID) *line {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[id]
	if l == nil {
		l = &line{head: make(chan struct{}, 1)}
		q.lines[id] = l
	}
	l.long++
	return l
}

// left removes a line when nobody is in it: there may be one for every channel.
func (q *Queue) left(id lineID, l *line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.long--; l.long == 0 {
		delete(q.lines, id)
	}
}

// Sleep waits, or returns the cause of ctx's end.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
