package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ship/session"
)

// gravesAtOnce is how many dead letters of a shard are read in one round trip:
// some are long, and a read has a time-out.
const gravesAtOnce = 500

// letterID is the shard, and the entry's id in its stream.
var letterID = regexp.MustCompile(`^(0[0-9]|1[0-5])-([0-9]{1,19}-[0-9]{1,19})$`)

// grave is a dead letter with the time that it was buried at.
type grave struct {
	ms     int64
	letter session.DeadLetter
}

// DeadLetters implements session.Graveyard.
func (s *Store) DeadLetters(ctx context.Context, n int) ([]session.DeadLetter, error) {
	var graves []grave
	for shard := range shards {
		found, err := s.graves(ctx, shard, n)
		if err != nil {
			return nil, fmt.Errorf("read dead letters: %w", err)
		}
		graves = append(graves, found...)
	}
	slices.SortStableFunc(graves, func(a, b grave) int { return cmp.Compare(b.ms, a.ms) })
	var letters []session.DeadLetter
	for _, g := range graves[:max(0, min(len(graves), n))] {
		letters = append(letters, g.letter)
	}
	return letters, nil
}

// graves are the newest n of a shard, newest first.
func (s *Store) graves(ctx context.Context, shard, n int) ([]grave, error) {
	var graves []grave
	for end := "+"; len(graves) < n; {
		entries, err := s.rdb.XRevRangeN(ctx, deadKey(shard), end, "-", int64(min(n-len(graves), gravesAtOnce))).Result()
		if err != nil {
			return nil, err
		}
		if len(entries) == 0 {
			break
		}
		for _, m := range entries {
			g, err := exhume(shard, m)
			if err != nil {
				return nil, fmt.Errorf("dead letter %s: %w", m.ID, err)
			}
			graves = append(graves, g)
			end = "(" + m.ID
		}
	}
	return graves, nil
}

func deadKey(shard int) string { return tag(shard) + ":dlq" }

func exhume(shard int, m goredis.XMessage) (grave, error) {
	var g grave
	ms, _, _ := strings.Cut(m.ID, "-")
	data, _ := m.Values["d"].(string)
	var err error
	if g.ms, err = strconv.ParseInt(ms, 10, 64); err != nil {
		return g, err
	}
	if err := json.Unmarshal([]byte(data), &g.letter); err != nil {
		return g, err
	}
	g.letter.ID = fmt.Sprintf("%02d-%s", shard, m.ID)
	if g.letter.At.IsZero() {
		g.letter.At = time.UnixMilli(g.ms).UTC()
	}
	return g, nil
}

// DeadLetter implements session.Graveyard.
func (s *Store) DeadLetter(ctx context.Context, id string) (session.DeadLetter, error) {
	shard, entry, ok := splitLetterID(id)
	if !ok {
		return session.DeadLetter{}, session.ErrUnknown
	}
	entries, err := s.rdb.XRange(ctx, deadKey(shard), entry, entry).Result()
	if err != nil {
		return session.DeadLetter{}, fmt.Errorf("read dead letter %s: %w", id, err)
	}
	if len(entries) == 0 {
		return session.DeadLetter{}, session.ErrUnknown
	}
	g, err := exhume(shard, entries[0])
	if err != nil {
		return session.DeadLetter{}, fmt.Errorf("read dead letter %s: %w", id, err)
	}
	return g.letter, nil
}

// DropDeadLetter implements session.Graveyard.
func (s *Store) DropDeadLetter(ctx context.Context, id string) error {
	shard, entry, ok := splitLetterID(id)
	if !ok {
		return nil
	}
	if err := s.rdb.XDel(ctx, deadKey(shard), entry).Err(); err != nil {
		return fmt.Errorf("drop dead letter %s: %w", id, err)
	}
	return nil
}

func splitLetterID(id string) (shard int, entry string, ok bool) {
	m := letterID.FindStringSubmatch(id)
	if m == nil {
		return 0, "", false
	}
	shard, err := strconv.Atoi(m[1])
	return shard, m[2], err == nil
}
