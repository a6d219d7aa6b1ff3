package memory

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"ship/session"
)

const (
	// maxLines is how many lines of a transcript are kept.
	maxLines = 2000
	// keepLines is how long a transcript lives after its last line.
	keepLines = 7 * 24 * time.Hour
)

// transcript is the tail of what an agent did. The line at index i has the
// number first+i.
type transcript struct {
	lines []string
	first int64
	until time.Time
}

// Write implements session.Transcript.
func (s *Store) Write(ctx context.Context, id session.ID, lines []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(lines) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock()
	t := s.logs[id]
	if t == nil || !t.until.After(now) {
		// Numbers come from the clock, so that a cursor into a transcript that
		// expired does not skip lines of the next one.
		t = &transcript{first: now.UnixMicro()}
		s.logs[id] = t
	}
	t.lines = append(t.lines, lines...)
	over := max(len(t.lines)-maxLines, 0)
	t.lines = slices.Delete(t.lines, 0, over)
	t.first += int64(over)
	t.until = now.Add(keepLines)
	return nil
}

// Lines implements session.Transcript. When nothing follows the cursor, it is
// returned as it was.
func (s *Store) Lines(ctx context.Context, id session.ID, cursor string, n int) ([]string, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	after, err := position(cursor)
	if err != nil {
		return nil, "", fmt.Errorf("read transcript of %s: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.logs[id]
	if t == nil || !t.until.After(clock()) {
		return nil, cursor, nil
	}
	skip := min(max(after+1-t.first, 0), int64(len(t.lines)))
	lines := slices.Clone(t.lines[skip:])
	lines = lines[:min(len(lines), max(n, 0))]
	if len(lines) == 0 {
		return nil, cursor, nil
	}
	return lines, strconv.FormatInt(t.first+skip+int64(len(lines))-1, 10), nil
}

func position(cursor string) (int64, error) {
	if cursor == "" {
		return -1, nil
	}
	n, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("cursor %q is none of ours", cursor)
	}
	return n, nil
}
