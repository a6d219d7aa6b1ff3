package redis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"ship/session"
)

// Peek implements session.Archive. The lease that it shows has no token.
func (s *Store) Peek(ctx context.Context, id session.ID) (session.Claim, error) {
	k := keysOf(id)
	res, err := s.run(ctx, peekScript, []string{k.session, k.state, k.inbox}, batch)
	if err != nil {
		return session.Claim{}, fmt.Errorf("peek at %s: %w", id, err)
	}
	if code, _ := res.(int64); code < 0 {
		return session.Claim{}, session.ErrUnknown
	}
	c, err := view(res, session.Lease{ID: id})
	if err != nil {
		return session.Claim{}, fmt.Errorf("peek at %s: %w", id, err)
	}
	return c, nil
}

// Sessions implements session.Archive. It scans all keys: for people and
// tools, not for loops.
func (s *Store) Sessions(ctx context.Context) ([]session.ID, error) {
	var mu sync.Mutex
	found := make(map[session.ID]struct{}) // a scan may show a key twice
	err := s.eachNode(ctx, func(ctx context.Context, node *goredis.Client) error {
		keys := node.ScanType(ctx, 0, "{[0-9][0-9]}:s:*", 1000, "hash").Iterator()
		for keys.Next(ctx) {
			mu.Lock()
			found[session.ID(keys.Val()[len("{00}:s:"):])] = struct{}{}
			mu.Unlock()
		}
		return keys.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return slices.Collect(maps.Keys(found)), nil
}

// Scheduled implements session.Register, in one round trip for all shards.
func (s *Store) Scheduled(ctx context.Context) ([]session.ID, error) {
	cmds := make([]*goredis.StringSliceCmd, shards)
	_, err := s.rdb.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i := range cmds {
			cmds[i] = p.ZRangeByScore(ctx, schedKey(i), &goredis.ZRangeBy{Min: "-inf", Max: "+inf"})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the scheduled sessions: %w", err)
	}
	var ids []session.ID
	for _, cmd := range cmds {
		for _, id := range cmd.Val() {
			ids = append(ids, session.ID(id))
		}
	}
	return ids, nil
}

// Forget implements session.Archive. The transcript goes with the session. A
// session whose owner let the lease run out is held by nobody.
func (s *Store) Forget(ctx context.Context, id session.ID) error {
	k := keysOf(id)
	var code int64
	err := s.around(ctx, "forget", func() error {
		res, err := s.run(ctx, forgetScript, []string{k.session, k.state, k.inbox, k.sched, k.log}, string(id))
		code, _ = res.(int64)
		return err
	})
	if err == nil && code < 0 {
		err = session.ErrNotDue
	}
	if err != nil {
		return fmt.Errorf("forget %s: %w", id, err)
	}
	return nil
}
