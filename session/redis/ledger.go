package redis

import (
	"context"
	"fmt"
	"math"
	"regexp"
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
