package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// errEnded is the cause with which End cuts what is under way.
var errEnded = errors.New("turn has ended")

const (
	// maxCalls of one turn at a time in this process; further ones wait. It
	// bounds the memory that a box can take with request bodies.
	maxCalls = 8
	// settleTries and settleWait: an upstream's answer must not be free because
	// the ledger blinked.
	settleTries = 3
	settleWait  = 5 * time.Second
)

// till takes the money. A call is admitted while the turn has money left that
// no other call of this process may still need: each call under way holds what
// it may cost at most. A call that does not fit beside them waits for them to
// end, since saying no would be final. So a turn exceeds its budget by at most
// one call per process that serves it at the time, if the estimates are right.
type till struct {
	ledger Ledger
	mu     sync.Mutex
	tabs   map[string]*tab // of turns with visits
}

// tab is what this process knows of one turn while it visits.
type tab struct {
	visits map[*visit]bool
	// slots has a place per call, gate one for the call that is being admitted.
	slots, gate chan struct{}
	held        float64
	// freed is closed when held goes down.
	freed chan struct{}
}

func newTill(l Ledger) *till {
	return &till{ledger: l, tabs: map[string]*tab{}}
}

// enter registers a visit; leave follows.
func (t *till) enter(v *visit) *tab {
	t.mu.Lock()
	defer t.mu.Unlock()
	tb := t.tabs[v.grant.account()]
	if tb == nil {
		tb = &tab{
			visits: map[*visit]bool{}, freed: make(chan struct{}),
			slots: make(chan struct{}, maxCalls), gate: make(chan struct{}, 1),
		}
		t.tabs[v.grant.account()] = tb
	}
	tb.visits[v] = true
	return tb
}

func (t *till) leave(v *visit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(v.tab.visits, v)
	if len(v.tab.visits) == 0 {
		delete(t.tabs, v.grant.account())
	}
}

func (t *till) ended(ctx context.Context, account string) (bool, error) {
	u, err := t.spend(ctx, endedAccount(account), Usage{})
	return u.Calls > 0, err
}

func (t *till) end(ctx context.Context, account string) error {
	if _, err := t.spend(ctx, endedAccount(account), Usage{Calls: 1}); err != nil {
		return fmt.Errorf("end turn: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if tb := t.tabs[account]; tb != nil {
		for v := range tb.visits {
			v.cancel(errEnded)
		}
	}
	return nil
}

// spend marks the ledger's failures as such.
func (t *till) spend(ctx context.Context, account string, u Usage) (Usage, error) {
	total, err := t.ledger.Spend(ctx, account, u)
	if err != nil {
		return Usage{}, fmt.Errorf("%w: %w", errLedger, err)
	}
	return total, nil
}

// admit counts a call that may cost up to hold, before it is made: a crash can
// only overcount. After it, settle.
func (t *till) admit(v *visit, hold float64) error {
	ctx := v.r.Context()
	if err := take(ctx, v.tab.gate); err != nil {
		return err
	}
	defer func() { <-v.tab.gate }()
	if err := t.await(v); err != nil {
		return err
	}
	total, err := t.spend(ctx, v.grant.account(), Usage{Calls: 1})
	if err != nil {
		return err
	}
	// Another process may have counted one since we looked.
	if total.Calls > v.grant.Calls {
		return callsSpent(v.grant)
	}
	t.hold(v.tab, hold)
	return nil
}

// await returns when the turn can afford another call, or never will.
func (t *till) await(v *visit) error {
	for {
		// Looked at before the ledger: a call that ends in between is seen twice,
		// never missed.
		held, freed := t.held(v.tab)
		spent, err := t.spend(v.r.Context(), v.grant.account(), Usage{})
		switch {
		case err != nil:
			return err
		case spent.Calls >= v.grant.Calls:
			return callsSpent(v.grant)
		case spent.USD >= v.grant.BudgetUSD:
			return budgetSpent(v.grant)
		case held == 0 || spent.USD+held < v.grant.BudgetUSD:
			return nil
		}
		select {
		case <-freed:
		case <-v.r.Context().Done():
			return context.Cause(v.r.Context())
		}
	}
}

func (t *till) held(tb *tab) (float64, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return tb.held, tb.freed
}

func (t *till) hold(tb *tab, usd float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tb.held += usd
}

// release comes after the ledger knows the cost.
func (t *till) release(tb *tab, usd float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tb.held -= usd; tb.held < 1e-12 {
		tb.held = 0 // what is left is a rounding error
	}
	close(tb.freed)
	tb.freed = make(chan struct{})
}

// settle books what a call used and gives back what it held.
func (t *till) settle(v *visit, hold float64, used Usage) error {
	defer t.release(v.tab, hold)
	if used == (Usage{}) {
		return nil
	}
	// The client may be gone, the cost is not.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.r.Context()), settleWait)
	defer cancel()
	var err error
	for range settleTries {
		if _, err = t.spend(ctx, v.grant.account(), used); err == nil {
			return nil
		}
	}
	return fmt.Errorf("book a model call: %w", err)
}

// take waits for a place in a semaphore.
func take(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
