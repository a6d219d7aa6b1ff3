package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
//
// The same holds for the budgets of a day, which many turns share: they are
// exceeded by at most one call for each turn that is at work then.
type till struct {
	ledger Ledger
	now    func() time.Time
	mu     sync.Mutex
	tabs   map[string]*tab // of turns with visits
	// held by calls under way, by account, and freed, which is closed when it
	// goes down.
	held  map[string]float64
	freed chan struct{}
}

// tab is what this process knows of one turn while it visits.
type tab struct {
	visits map[*visit]bool
	// slots has a place per call, gate one for the call that is being admitted.
	slots, gate chan struct{}
}

// bill is what an admitted call is paid from, and what it holds of that.
type bill struct {
	purses []purse
	hold   float64
}

func newTill(l Ledger) *till {
	return &till{ledger: l, now: time.Now, tabs: map[string]*tab{}, held: map[string]float64{}, freed: make(chan struct{})}
}

// enter registers a visit; leave follows.
func (t *till) enter(v *visit) *tab {
	t.mu.Lock()
	defer t.mu.Unlock()
	tb := t.tabs[v.grant.account()]
	if tb == nil {
		tb = &tab{
			visits: map[*visit]bool{},
			slots:  make(chan struct{}, maxCalls), gate: make(chan struct{}, 1),
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

// totals reads accounts, with failures marked likewise.
func (t *till) totals(ctx context.Context, accounts ...string) ([]Usage, error) {
	all, err := t.ledger.Totals(ctx, accounts...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLedger, err)
	}
	return all, nil
}

// admit counts a call that may cost up to hold, before it is made: a crash can
// only overcount. After it, settle.
func (t *till) admit(v *visit, hold float64) (bill, error) {
	ctx := v.r.Context()
	if err := take(ctx, v.tab.gate); err != nil {
		return bill{}, err
	}
	defer func() { <-v.tab.gate }()
	b := bill{purses: append(v.grant.purses(Day(t.now())), v.grant.purse()), hold: hold}
	if err := t.await(v, b); err != nil {
		return bill{}, err
	}
	total, err := t.spend(ctx, v.grant.account(), Usage{Calls: 1})
	if err != nil {
		return bill{}, err
	}
	// Another process may have counted one since we looked.
	if total.Calls > v.grant.Calls {
		return bill{}, callsSpent(v.grant)
	}
	t.hold(b)
	return b, nil
}

// await returns when every purse can afford another call, or one never will.
func (t *till) await(v *visit, b bill) error {
	for {
		freed, err := t.affords(v, b)
		if err != nil || freed == nil {
			return err
		}
		select {
		case <-freed:
		case <-v.r.Context().Done():
			return context.Cause(v.r.Context())
		}
	}
}

// affords looks once into all the purses that have a limit. If a call has to end
// first, the channel is closed when one has.
func (t *till) affords(v *visit, b bill) (freed <-chan struct{}, err error) {
	limited := slices.DeleteFunc(slices.Clone(b.purses), func(p purse) bool { return p.limit == 0 && !p.strict })
	accounts := accountsOf(limited)
	// Looked at before the ledger: a call that ends in between is seen twice,
	// never missed.
	held, later := t.holding(accounts)
	spent, err := t.totals(v.r.Context(), accounts...)
	if err != nil {
		return nil, err
	}
	for i, p := range limited {
		switch {
		case p.strict && spent[i].Calls >= v.grant.Calls:
			return nil, callsSpent(v.grant)
		case spent[i].USD >= p.limit:
			return nil, p.refusal()
		case held[i] > 0 && spent[i].USD+held[i] >= p.limit:
			freed = later // another purse may be empty for good
		}
	}
	return freed, nil
}

// holding is what calls under way hold of accounts, in the order of their names.
func (t *till) holding(accounts []string) ([]float64, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := make([]float64, len(accounts))
	for i, account := range accounts {
		held[i] = t.held[account]
	}
	return held, t.freed
}

func (t *till) hold(b bill) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range b.purses {
		t.held[p.account] += b.hold
	}
}

// release comes after the ledger knows the cost.
func (t *till) release(b bill) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range b.purses {
		if t.held[p.account] -= b.hold; t.held[p.account] < 1e-12 {
			delete(t.held, p.account) // what is left is a rounding error
		}
	}
	close(t.freed)
	t.freed = make(chan struct{})
}

// settle books what a call used and gives back what it held.
func (t *till) settle(v *visit, b bill, used Usage) error {
	defer t.release(b)
	if used == (Usage{}) {
		return nil
	}
	// The client may be gone, the cost is not.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.r.Context()), settleWait)
	defer cancel()
	var errs []error
	for _, p := range b.purses {
		u := used
		if !p.strict {
			u.Calls = 1 // the turn's own was counted before
		}
		errs = append(errs, t.book(ctx, p.account, u))
	}
	return errors.Join(errs...)
}

func (t *till) book(ctx context.Context, account string, used Usage) (err error) {
	for range settleTries {
		if _, err = t.spend(ctx, account, used); err == nil {
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
