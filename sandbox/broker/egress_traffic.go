package broker

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
)

// bookEvery is how many bytes a turn moves until the ledger is told.
const bookEvery = 4 << 20

// egressAccount counts what a turn moved: connections as calls, bytes that came
// in as input and those that went out as output.
func egressAccount(account string) string { return account + "!egress" }

// traffic is what this process knows of one turn while it has connections.
type traffic struct {
	till    *till
	account string
	max     int64

	mu   sync.Mutex
	open int
	// booked is the turn's total in bytes as the ledger said it last; in and out
	// came since.
	booked, in, out int64
}

// roads are the turns that have connections.
type roads struct {
	till     *till
	maxBytes int64
	maxConns int
	mu       sync.Mutex
	turns    map[string]*traffic
}

// enter counts a connection of a turn before it is made; leave follows.
func (r *roads) enter(ctx context.Context, account string) (*traffic, error) {
	t, err := r.join(account)
	if err != nil {
		return nil, err
	}
	total, err := r.till.spend(ctx, egressAccount(account), Usage{Calls: 1})
	if err == nil {
		err = t.learn(total)
	}
	if err != nil {
		r.part(t)
		return nil, err
	}
	return t, nil
}

func (r *roads) join(account string) (*traffic, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.turns[account]
	if t == nil {
		t = &traffic{till: r.till, account: account, max: r.maxBytes}
		r.turns[account] = t
	}
	if t.open >= r.maxConns {
		return nil, refuse(http.StatusTooManyRequests, codeConnections, "this turn has %d connections open already", t.open)
	}
	t.open++
	return t, nil
}

func (r *roads) part(t *traffic) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.open--; t.open == 0 {
		delete(r.turns, t.account)
	}
}

// leave books what is not booked yet.
func (r *roads) leave(ctx context.Context, t *traffic) error {
	defer r.part(t)
	// The turn may be over, what it moved is not undone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWait)
	defer cancel()
	var err error
	for range settleTries {
		if err = t.book(ctx); err == nil {
			return nil
		}
	}
	return fmt.Errorf("book traffic: %w", err)
}

// learn takes in what the ledger says; an answer may be older than what is
// known.
func (t *traffic) learn(total Usage) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.booked = max(t.booked, int64(total.Input)+int64(total.Output))
	return t.check()
}

// check is called with mu held.
func (t *traffic) check() error {
	if t.booked+t.in+t.out < t.max {
		return nil
	}
	return refuse(http.StatusForbidden, codeTraffic, "this turn has moved all the data that it may")
}

// add counts what was moved. Now and then it tells the ledger, whose failing
// changes nothing: what is not booked yet is counted here.
func (t *traffic) add(ctx context.Context, in, out int) error {
	t.mu.Lock()
	t.in, t.out = t.in+int64(in), t.out+int64(out)
	err, due := t.check(), t.in+t.out >= bookEvery
	t.mu.Unlock()
	if err == nil && due {
		_ = t.book(ctx)
	}
	return err
}

func (t *traffic) book(ctx context.Context) error {
	t.mu.Lock()
	in, out := t.in, t.out
	t.in, t.out, t.booked = 0, 0, t.booked+in+out
	t.mu.Unlock()
	if in+out == 0 {
		return nil
	}
	total, err := t.till.spend(ctx, egressAccount(t.account), Usage{Input: int(in), Output: int(out)})
	if err == nil {
		_ = t.learn(total) // the next add says so
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in, t.out, t.booked = t.in+in, t.out+out, t.booked-in-out
	return err
}

// metered is the way to a host. Whatever moves on it is counted, and puts off
// the end for silence.
type metered struct {
	net.Conn
	p *passage
}

func (m *metered) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	if over := m.p.moved(n, 0); over != nil {
		err = over
	}
	return n, err
}

func (m *metered) Write(b []byte) (int, error) {
	if err := m.p.moved(0, len(b)); err != nil {
		return 0, err
	}
	return m.Conn.Write(b)
}

// CloseWrite says that the box has no more to send.
func (m *metered) CloseWrite() error {
	if half, ok := m.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
