package slack

import (
	"cmp"
	"context"
	"fmt"

	"ship/bot"
	"ship/session"
)

// instead is how another session begins.
const instead = "mention me in a new thread"

// route finds the repository. With none, the admission says why: it has a
// question, or a refusal.
func (w *work) route(ctx context.Context, r session.Request, m member) (name string, a session.Admission, err error) {
	if name := cmp.Or(bot.RepoOf(w.job.State), r.Repo, w.job.State.Repo.Name); name != "" {
		return name, a, nil // and nothing need be looked up
	}
	c, err := w.clues(ctx, m)
	if err != nil {
		return "", a, err
	}
	name, candidates, err := w.gate.Route(ctx, c)
	switch {
	case err != nil:
		return "", a, fmt.Errorf("find the repository: %w", err)
	case name != "":
		return name, a, nil
	}
	return w.gate.Choose(ctx, m.Asker, candidates)
}

// clues are what tells which repository is meant where nobody says so.
func (w *work) clues(ctx context.Context, m member) (bot.Clues, error) {
	c := bot.Clues{Channel: []string{w.thread.channel}, User: []string{m.ID, m.Email, m.handle, "@" + m.handle}}
	if len(w.gate.Routes.Channels) > 0 {
		name, err := w.channelName(ctx)
		if err != nil {
			return c, err
		}
		if name != "" {
			c.Channel = append(c.Channel, "#"+name, name)
		}
	}
	var err error
	if c.Remembered, err = w.remembered(ctx); err != nil {
		return c, err
	}
	c.Recent = w.recent(ctx, m)
	return c, nil
}
