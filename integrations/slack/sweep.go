package slack

import (
	"context"
	"fmt"
)

// sweep takes back what an owner that was frozen posted a second time, when it
// woke: of messages with the same id one stays, the one that the session changes,
// or else the first. What it changed is reported anew by the session. Performed
// twice, it finds nothing more.
func (w *work) sweep(ctx context.Context) error {
	found, err := w.ours(ctx, Thinking)
	if err != nil {
		return err
	}
	keep := map[string]string{}
	living := parseShown(w.voice().Ref).ts
	for _, m := range found {
		if id := m.outboxID(); keep[id] == "" || m.TS == living {
			keep[id] = m.TS
		}
	}
	for _, m := range found {
		if m.TS == keep[m.outboxID()] {
			continue
		}
		if err := w.remove(ctx, Thinking, m.TS); err != nil {
			return fmt.Errorf("take back what was posted twice: %w", err)
		}
	}
	return nil
}
