package redis

import (
	"context"
	"fmt"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"ship/session"
)

// Accounts returns the totals of all accounts whose names begin with a prefix,
// by their names. It scans all keys: for people and tools, not for loops. It
// does not count as a use.
func (s *Store) Accounts(ctx context.Context, prefix string) (map[string]session.Usage, error) {
	if !accountName.MatchString(prefix) {
		return nil, fmt.Errorf("list accounts: bad prefix %q", prefix)
	}
	var mu sync.Mutex
	found := make(map[string]session.Usage)
	err := s.eachNode(ctx, func(ctx context.Context, node *goredis.Client) error {
		keys := node.ScanType(ctx, 0, "{[0-9][0-9]}:spend:"+prefix+"*", 1000, "hash").Iterator()
		for keys.Next(ctx) {
			total, err := total(askTotal(ctx, node, keys.Val()))
			if err != nil {
				return fmt.Errorf("account %s: %w", keys.Val(), err)
			}
			mu.Lock()
			found[keys.Val()[len("{00}:spend:"):]] = total
			mu.Unlock()
		}
		return keys.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list accounts: %w", err)
	}
	return found, nil
}
