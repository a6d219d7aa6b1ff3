package github

import (
	"context"
	"sync"
	"time"

	"ship/session"
)

// pacer keeps content-creating requests of one installation apart.
type pacer struct {
	every time.Duration
	mu    sync.Mutex
	next  time.Time // guarded by mu
}

// wait returns when it is this caller's turn, or with the context's cause.
func (p *pacer) wait(ctx context.Context) error {
	return session.Sleep(ctx, time.Until(p.turn()))
}

// turn reserves the next free moment.
func (p *pacer) turn() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.next
	if now := time.Now(); at.Before(now) {
		at = now
	}
	p.next = at.Add(p.every)
	return at
}
