package redis

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ship/session"
)

// keepAccount is how long an account lives after its last use.
const keepAccount = 30 * 24 * time.Hour

// accountName is what an account may be called. No braces: they would choose
// another slot.
var accountName = regexp.MustCompile(`^[A-Za-z0-9.:-]{1,200}$`)

// Spend implements session.Ledger. Accounts are named with letters, digits,
// dot, dash and colon. Money is kept in whole millionths of a dollar, so that
// no sum drifts. An account that nobody used for 30 days begins at zero. It is
// never repeated here: when the answer is lost the amount may be counted.
func (s *Store) Spend(ctx context.Context, account string, u session.Usage) (session.Usage, error) {
	if !accountName.MatchString(account) {
		return session.Usage{}, fmt.Errorf("spend: bad account name %q", account)
	}
	if math.IsNaN(u.USD) || math.Abs(u.USD) > 1e9 {
		return session.Usage{}, fmt.Errorf("spend from %s: not an amount: %v", account, u.USD)
	}
	key := accountKey(account)
	var total []int64
	err := s.once(ctx, key, func(node *goredis.Client) (err error) {
		total, err = spendScript.Run(ctx, node, []string{key},
			u.Calls, u.Input, u.Output, int64(math.Round(u.USD*1e6)), keepAccount.Milliseconds()).Int64Slice()
		return err
	})
	if err != nil {
		return session.Usage{}, fmt.Errorf("spend from %s: %w", account, err)
	}
	if len(total) != 4 {
		return session.Usage{}, fmt.Errorf("spend from %s: unexpected answer %v", account, total)
	}
	return session.Usage{
		Calls: int(total[0]), Input: int(total[1]), Output: int(total[2]), USD: float64(total[3]) / 1e6,
	}, nil
}

// Totals implements session.Ledger, in one round trip; on a cluster, in one to
// each server that has some of them, at the same time.
func (s *Store) Totals(ctx context.Context, accounts ...string) ([]session.Usage, error) {
	for _, name := range accounts {
		if !accountName.MatchString(name) {
			return nil, fmt.Errorf("read accounts: bad account name %q", name)
		}
	}
	answers := make([]*goredis.SliceCmd, len(accounts))
	_, err := s.repeat(ctx, func() (any, error) {
		return s.rdb.Pipelined(ctx, func(p goredis.Pipeliner) error {
			for i, name := range accounts {
				answers[i] = askTotal(ctx, p, accountKey(name))
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read accounts: %w", err)
	}
	totals := make([]session.Usage, len(accounts))
	for i, answer := range answers {
		if totals[i], err = total(answer); err != nil {
			return nil, fmt.Errorf("read account %s: %w", accounts[i], err)
		}
	}
	return totals, nil
}

// askTotal asks for an account's total, which total reads then.
func askTotal(ctx context.Context, c goredis.Cmdable, key string) *goredis.SliceCmd {
	return c.HMGet(ctx, key, "c", "i", "o", "u")
}

// total is that of an account; one that is not there is empty.
func total(answer *goredis.SliceCmd) (session.Usage, error) {
	values, err := answer.Result()
	if err != nil {
		return session.Usage{}, err
	}
	var n [4]int
	for i, v := range values {
		text, _ := v.(string)
		if n[i], err = strconv.Atoi(text); err != nil && text != "" {
			return session.Usage{}, err
		}
	}
	return session.Usage{Calls: n[0], Input: n[1], Output: n[2], USD: float64(n[3]) / 1e6}, nil
}
