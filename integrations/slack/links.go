package slack

import (
	"context"
	"strings"

	"ship/bot"
	"ship/session"
)

const (
	// maxLinks of what a request names elsewhere are shown the state.
	maxLinks = 3
	// maxAbout of what each is about is told to the agent, in bytes.
	maxAbout = 8 << 10
)

// link adds what a request names elsewhere. It can be done without.
func (w *work) link(ctx context.Context, r session.Request, m member, a *session.Admission) {
	if w.links == nil || strings.TrimSpace(r.Text+r.Quote) == "" {
		return
	}
	found, err := w.links.Link(ctx, r.Text+"\n"+r.Quote, m.Asker)
	if err != nil {
		w.app.log.WarnContext(ctx, "what a request names elsewhere was not found", "session", string(w.job.State.ID), "err", err)
	}
	for _, l := range found[:min(len(found), maxLinks)] {
		a.Links = append(a.Links, l.Thread)
		if l.About != "" {
			a.Context += strings.TrimSpace(bot.Prefix(l.About, maxAbout)) + "\n\n"
		}
	}
}
