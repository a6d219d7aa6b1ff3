package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ship/session"
)

// Due implements session.Store: one round trip for all shards. On a cluster the
// sessions of a server that does not answer are left out, as long as another
// answers.
func (s *Store) Due(ctx context.Context, limit int) ([]session.ID, error) {
	if limit <= 0 {
		return nil, nil
	}
	waiting, err := s.due(ctx, limit)
	if err != nil {
		return nil, fmt.Errorf("look for due sessions: %w", err)
	}
	slices.SortStableFunc(waiting, func(a, b appointment) int { return cmp.Compare(a.at, b.at) })
	var ids []session.ID
	for _, w := range waiting[:min(len(waiting), limit)] {
		ids = append(ids, w.id)
	}
	return ids, nil
}

// appointment is a member of a sched set.
type appointment struct {
	id session.ID
	at int64 // ms
}

func (s *Store) due(ctx context.Context, limit int) ([]appointment, error) {
	cmds := make([]*goredis.Cmd, shards)
	_, err := s.rdb.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i := range cmds {
			cmds[i] = p.EvalSha(ctx, dueScript.Hash(), []string{schedKey(i)}, limit)
		}
		return nil
	})
	if err != nil && s.slots() == 1 && !goredis.HasErrorPrefix(err, "NOSCRIPT") {
		return nil, err
	}
	var all []appointment
	var errs []error
	for i, cmd := range cmds {
		if goredis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			cmd = dueScript.Run(ctx, s.rdb, []string{schedKey(i)}, limit)
		}
		found, err := appointments(cmd)
		if err != nil {
			errs = append(errs, err)
		}
		all = append(all, found...)
	}
	if len(errs) > 0 && (len(errs) == len(cmds) || s.slots() == 1) {
		return nil, errs[0]
	}
	return all, nil
}

// appointments reads the answer of the due script.
func appointments(cmd *goredis.Cmd) ([]appointment, error) {
	flat, err := cmd.StringSlice()
	if err != nil {
		return nil, err
	}
	var all []appointment
	for pair := range slices.Chunk(flat, 2) {
		at, err := strconv.ParseFloat(pair[1], 64)
		if err != nil {
			return nil, fmt.Errorf("score of %s: %w", pair[0], err)
		}
		all = append(all, appointment{session.ID(pair[0]), int64(at)})
	}
	return all, nil
}

// Claim implements session.Store. Repeating a claim with the same token
// answers the same and makes the lease good again.
func (s *Store) Claim(ctx context.Context, id session.ID, token string, lease time.Duration) (session.Claim, error) {
	var c session.Claim
	if token == "" {
		return c, fmt.Errorf("claim %s: empty token", id)
	}
	var res any
	err := s.around(ctx, "claim", func() (err error) {
		k := keysOf(id)
		res, err = s.run(ctx, claimScript, []string{k.session, k.state, k.inbox, k.sched},
			string(id), token, lease.Milliseconds(), batch, session.StateVersion, session.EventVersion)
		return err
	})
	if err == nil {
		c, err = claimed(res, session.Lease{ID: id, Token: token})
	}
	if err != nil {
		return session.Claim{}, fmt.Errorf("claim %s: %w", id, err)
	}
	return c, nil
}

// claimed reads the answer of the claim script.
func claimed(res any, l session.Lease) (session.Claim, error) {
	switch code, _ := res.(int64); code {
	case -1:
		return session.Claim{}, session.ErrNotDue
	case -2:
		return session.Claim{}, session.ErrTooNew
	}
	return view(res, l)
}

// view reads a session as the claim and peek scripts show it: now, epoch,
// version, cursor, stolen, tries, state, events.
func view(res any, l session.Lease) (session.Claim, error) {
	f, _ := res.([]any)
	if len(f) != 8 {
		return session.Claim{}, fmt.Errorf("unexpected answer %v", res)
	}
	var n [6]int64
	for i := range n {
		n[i], _ = f[i].(int64)
	}
	l.Epoch = n[1]
	c := session.Claim{
		Lease: l, Now: time.UnixMilli(n[0]).UTC(), Version: n[2], Cursor: n[3],
		Stolen: n[4] == 1, Tries: int(n[5]),
	}
	if state, ok := f[6].(string); ok {
		c.State = []byte(state)
	}
	var err error
	if c.Events, err = decode(f[7]); errors.Is(err, session.ErrTooNew) {
		err = nil // only a look, for a claim was refused before
	}
	return c, err
}

// Renew implements session.Store.
func (s *Store) Renew(ctx context.Context, l session.Lease, d time.Duration) (int64, error) {
	if l.Token == "" {
		return 0, session.ErrLeaseLost
	}
	k := keysOf(l.ID)
	var newest int64
	err := s.around(ctx, "renew", func() error {
		res, err := s.run(ctx, renewScript, []string{k.session, k.sched}, string(l.ID), l.Token, d.Milliseconds(), session.ProvenAfter.Milliseconds())
		newest, _ = res.(int64)
		return err
	})
	if err == nil && newest < 0 {
		err = session.ErrLeaseLost
	}
	if err != nil {
		return 0, fmt.Errorf("renew lease of %s: %w", l.ID, err)
	}
	return newest, nil
}

// Commit implements session.Store.
func (s *Store) Commit(ctx context.Context, l session.Lease, c session.Commit) error {
	if l.Token == "" {
		return session.ErrLeaseLost
	}
	args, err := commitArgs(l, c)
	if err != nil {
		return fmt.Errorf("commit %s: %w", l.ID, err)
	}
	k := keysOf(l.ID)
	var code int64
	err = s.around(ctx, "commit", func() error {
		res, err := s.run(ctx, commitScript, []string{k.session, k.state, k.inbox, k.sched, k.dlq}, args...)
		code, _ = res.(int64)
		return err
	})
	if err == nil {
		err = refusal(code, c)
	}
	if err != nil {
		return fmt.Errorf("commit %s: %w", l.ID, err)
	}
	return nil
}

func commitArgs(l session.Lease, c session.Commit) ([]any, error) {
	due := c.Due.Milliseconds()
	if c.Due < 0 {
		due = -1 // whole milliseconds would lose the sign of less than one
	}
	release := 0
	if c.Release {
		release = 1
	}
	args := []any{
		string(l.ID), l.Token, c.Version, c.Cursor, max(c.Lease.Milliseconds(), 0), release, due,
		c.StateVersion, c.State,
	}
	for _, d := range c.Dead {
		letter, err := json.Marshal(d)
		if err != nil {
			return nil, fmt.Errorf("encode dead letter: %w", err)
		}
		args = append(args, letter)
	}
	return args, nil
}

// refusal reads the answer of the commit script.
func refusal(code int64, c session.Commit) error {
	switch code {
	case 0, 1:
		return nil
	case -1:
		return session.ErrLeaseLost
	case -2:
		return session.ErrConflict
	case -3:
		return fmt.Errorf("cursor %d is outside of the inbox", c.Cursor)
	default:
		return fmt.Errorf("unexpected answer %d", code)
	}
}
