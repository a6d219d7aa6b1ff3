package redis

import (
	"context"
	"fmt"
	"regexp"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ship/session"
)

const (
	// maxLines is how many lines of a transcript are kept, about: Redis trims
	// by whole nodes of a stream.
	maxLines = 2000
	// keepLines is how long a transcript lives after its last line.
	keepLines = 7 * 24 * time.Hour
)

// cursorForm is a stream id.
var cursorForm = regexp.MustCompile(`^[0-9]{1,19}-[0-9]{1,19}$`)

// Write implements session.Transcript. It is not repeated when its answer is
// lost: a line that is missing harms less than one that is doubled. A server
// whose memory is full refuses it.
func (s *Store) Write(ctx context.Context, id session.ID, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	key := keysOf(id).log
	err := s.once(ctx, key, func(node *goredis.Client) error {
		_, err := node.TxPipelined(ctx, func(p goredis.Pipeliner) error {
			for _, line := range lines {
				p.XAdd(ctx, &goredis.XAddArgs{Stream: key, MaxLen: maxLines, Approx: true, Values: []string{"l", line}})
			}
			p.Expire(ctx, key, keepLines)
			return nil
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("write transcript of %s: %w", id, err)
	}
	return nil
}

// Lines implements session.Transcript. When nothing follows the cursor, it is
// returned as it was.
func (s *Store) Lines(ctx context.Context, id session.ID, cursor string, n int) ([]string, string, error) {
	start := "-"
	if cursor != "" {
		start = "(" + cursor
	}
	if cursor != "" && !cursorForm.MatchString(cursor) {
		return nil, "", fmt.Errorf("read transcript of %s: cursor %q is none of ours", id, cursor)
	}
	if n <= 0 {
		return nil, cursor, nil
	}
	entries, err := s.rdb.XRangeN(ctx, keysOf(id).log, start, "+", int64(n)).Result()
	if err != nil {
		return nil, "", fmt.Errorf("read transcript of %s: %w", id, err)
	}
	var lines []string
	for _, e := range entries {
		line, _ := e.Values["l"].(string)
		lines = append(lines, line)
		cursor = e.ID
	}
	return lines, cursor, nil
}
