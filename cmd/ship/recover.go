package main

import (
	"context"
	"log/slog"
	"time"

	"ship/integrations"
)

// How often missed deliveries are looked for, and how far back each look goes
// beyond the one before.
const (
	recoverEvery   = 7 * time.Minute
	recoverOverlap = 2 * time.Hour
	// recoverAgain is how soon a look that failed is repeated, and then later
	// each time. It goes back as far as the first did.
	recoverAgain = 5 * time.Second
)

// recoverMissed fetches what was delivered while ship was down, at the start
// and every few minutes. What was accepted before is a duplicate then.
func recoverMissed(ctx context.Context, p integrations.Platform, log *slog.Logger) error {
	if p.Recover == nil {
		return nil
	}
	since, again := time.Now().Add(-3*24*time.Hour), recoverAgain
	for {
		began, next := time.Now(), recoverEvery
		asked, err := p.Recover(ctx, since)
		if asked > 0 {
			log.Info("missed deliveries are asked for again", "platform", p.Name, "count", asked)
		}
		switch {
		case err == nil:
			since, again = began.Add(-recoverOverlap), recoverAgain
		case ctx.Err() == nil:
			log.Warn("look for missed deliveries", "platform", p.Name, "err", err)
			next, again = again, min(2*again, recoverEvery)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		}
	}
}
