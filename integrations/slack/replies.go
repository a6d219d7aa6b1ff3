package slack

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// lookBack is how much earlier than an effect was decided its messages are
	// looked for: Slack's clock need not be ours.
	lookBack = 5 * time.Minute
	// maxLook bounds how many messages are looked at for one of ours.
	maxLook = 2000
	// maxPages is how often it is asked for them.
	maxPages = 25
)

// replies are the messages of the thread, the oldest first, with the metadata
// of ours: the one that it began with, and most in all of those since oldest,
// or from the first on if that is empty. Where the thread is yet to begin, they
// are what the channel has.
func (w *work) replies(ctx context.Context, p Priority, oldest string, most int) ([]message, error) {
	var all []message
	seen := map[string]bool{}
	s := &stretch{channel: w.thread.channel, oldest: oldest, size: min(pageSize, most)}
	if !w.thread.pending() {
		s.root = w.thread.root
	}
	for range maxPages {
		page, err := w.app.next(ctx, s, w.turn(p))
		if err != nil {
			return nil, fmt.Errorf("read the thread: %w", err)
		}
		for _, m := range page { // each begins with the root
			if !seen[m.TS] {
				seen[m.TS] = true
				all = append(all, m)
			}
		}
		if s.cursor == "" || len(all) >= most {
			break
		}
	}
	slices.SortFunc(all, func(a, b message) int { return cmp.Compare(a.TS, b.TS) })
	return all[:min(len(all), most)], nil
}

// turn is for requests of this priority.
func (w *work) turn(p Priority) turn {
	return func(ctx context.Context, method string, request func(context.Context) error) error {
		return w.app.call(ctx, p, w.call(method), request)
	}
}

// posted are the messages of ours that are there since the effect was decided,
// by the ids under which they were: of each the first.
func (w *work) posted(ctx context.Context, p Priority) (map[string]string, error) {
	found, err := w.ours(ctx, p)
	there := map[string]string{}
	for _, m := range found {
		if id := m.outboxID(); there[id] == "" {
			there[id] = m.TS
		}
	}
	return there, err
}

// ours are the messages that we posted under an id since the effect was decided,
// the oldest first.
func (w *work) ours(ctx context.Context, p Priority) ([]message, error) {
	self, err := w.app.self(ctx)
	if err != nil {
		return nil, err
	}
	all, err := w.replies(ctx, p, tsOf(w.effect.Since.Add(-lookBack)), maxLook)
	return slices.DeleteFunc(all, func(m message) bool { return m.outboxID() == "" || !self.wrote(m) }), err
}

// wrote: a message is ours.
func (i identity) wrote(m message) bool {
	return m.User != "" && m.User == i.user || m.Bot != "" && m.Bot == i.bot
}

// tsOf is a moment as Slack has it; empty: before there was Slack.
func tsOf(at time.Time) string {
	if at.Unix() <= 0 {
		return ""
	}
	return fmt.Sprintf("%d.%06d", at.Unix(), at.Nanosecond()/1000)
}
