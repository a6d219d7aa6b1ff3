package memory

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"time"

	"ship/session"
)

// keepAccount is how long an account lives after its last use.
const keepAccount = 30 * 24 * time.Hour

// accountName is what an account may be called: what is safe in a key of any
// store.
var accountName = regexp.MustCompile(`^[A-Za-z0-9.:-]{1,200}$`)

// account counts in whole millionths of a dollar, so that no sum drifts.
type account struct {
	calls, input, output int
	microUSD             int64
	until                time.Time
}

// Spend implements session.Ledger. Accounts are named with letters, digits,
// dot, dash and colon. Money is rounded to a millionth of a dollar. An account
// that nobody used for 30 days begins at zero.
func (s *Store) Spend(ctx context.Context, name string, u session.Usage) (session.Usage, error) {
	if err := ctx.Err(); err != nil {
		return session.Usage{}, err
	}
	if !accountName.MatchString(name) {
		return session.Usage{}, fmt.Errorf("spend: bad account name %q", name)
	}
	if math.IsNaN(u.USD) || math.Abs(u.USD) > 1e9 {
		return session.Usage{}, fmt.Errorf("spend from %s: not an amount: %v", name, u.USD)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock()
	a := s.account(name, now)
	if a == nil {
		a = &account{}
		s.accounts[name] = a
	}
	a.calls += u.Calls
	a.input += u.Input
	a.output += u.Output
	a.microUSD += int64(math.Round(u.USD * 1e6))
	a.until = now.Add(keepAccount)
	return a.total(), nil
}

// Totals implements session.Ledger. All of them are of one moment.
func (s *Store) Totals(ctx context.Context, names ...string) ([]session.Usage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock()
	totals := make([]session.Usage, len(names))
	for i, name := range names {
		if !accountName.MatchString(name) {
			return nil, fmt.Errorf("read accounts: bad account name %q", name)
		}
		if a := s.account(name, now); a != nil {
			totals[i] = a.total()
		}
	}
	return totals, nil
}

// account is nil where there is none, or none any more.
func (s *Store) account(name string, now time.Time) *account {
	a := s.accounts[name]
	if a == nil || !a.until.After(now) {
		return nil
	}
	return a
}

func (a *account) total() session.Usage {
	return session.Usage{Calls: a.calls, Input: a.input, Output: a.output, USD: float64(a.microUSD) / 1e6}
}
