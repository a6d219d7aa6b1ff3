package slack

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// overlook is how far before the last look a first one begins. It is longer than
// a thread rests in which nothing happens.
const overlook = 4 * time.Hour

// markName is where all gateways keep since when everything was looked through.
func (l *look) markName() string { return "slack.recovered." + l.self.team }

// marked moves the beginning of a look to where one of any gateway's that came
// to its end leaves off: to start a gateway anew is no reason to read for days
// back.
func (l *look) marked(ctx context.Context) error {
	if l.vault == nil {
		return nil
	}
	value, version, err := l.vault.Load(ctx, l.markName())
	if err != nil {
		return fmt.Errorf("load how far was looked: %w", err)
	}
	l.version = version
	if at, err := strconv.ParseInt(string(value), 10, 64); err == nil { // nobody looked otherwise
		l.since = later(l.since, time.Unix(at, 0).Add(-overlook))
	}
	return nil
}

// mark notes that everything up to the beginning of this look was looked
// through. Another gateway may have been faster.
func (l *look) mark(ctx context.Context) error {
	if l.vault == nil || l.cut {
		return nil
	}
	value := strconv.FormatInt(l.began.Unix(), 10)
	if _, err := l.vault.Swap(ctx, l.markName(), l.version, []byte(value), recoverable); err != nil {
		return fmt.Errorf("note how far was looked: %w", err)
	}
	return nil
}
