package linear

import (
	"context"
	"fmt"

	"ship/bot"
	ql "ship/graphql/linear"
	"ship/session"
)

// lead finds the repository, where that was said by somebody else only if they
// have a say in it.
func (w *work) lead(ctx context.Context, r session.Request, i *ql.Issue, who bot.Asker) (name string, a session.Admission, err error) {
	return bot.Lead(r,
		func() (bool, error) { return w.mayLead(ctx, r) },
		func(r session.Request) (string, session.Admission, error) { return w.route(ctx, r, i, who) })
}

// mayLead tells whether whoever answered in the place of the one who asks may
// themselves have us work where they lead the work.
func (w *work) mayLead(ctx context.Context, r session.Request) (bool, error) {
	leader, err := w.asker(ctx, r.Led)
	if err != nil {
		return false, fmt.Errorf("ask who answered: %w", err)
	}
	p, err := w.gate.Pass(ctx, leader, r.Repo, "")
	if err != nil {
		return false, fmt.Errorf("ask what who answered may do in %s: %w", r.Repo, err)
	}
	return p.Refusal == "", nil
}
