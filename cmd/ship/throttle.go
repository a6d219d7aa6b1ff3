package main

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"ship/session"
)

// throttle refuses who asks too often, on whatever platform and worker: the
// count is in the ledger. Asking is counted when a request is admitted for the
// first time, so a repeat after a crash can only count too much.
type throttle struct {
	session.Performer
	ledger    session.Ledger
	perMinute int
	now       func() time.Time
}

// notInAccount is what a ledger does not take in a name.
var notInAccount = regexp.MustCompile(`[^A-Za-z0-9.-]`)

func (t throttle) Perform(ctx context.Context, job session.Job) (session.Performed, error) {
	if job.Effect.Kind != session.Admit || job.Effect.Request == nil || job.Repeat {
		return t.Performer.Perform(ctx, job)
	}
	by := job.Effect.Request.By
	minute := t.now().Unix() / 60
	account := fmt.Sprintf("asks:%s:%d", notInAccount.ReplaceAllString(by.Login, "-"), minute)
	total, err := t.ledger.Spend(ctx, account, session.Usage{Calls: 1})
	if err != nil {
		return session.Performed{}, fmt.Errorf("count the request: %w", err)
	}
	if total.Calls > t.perMinute {
		return session.Performed{Admission: &session.Admission{By: by, Stranger: true, Refusal: fmt.Sprintf(
			"That is more than %d requests in a minute, so I left this one alone. Ask again in a minute.", t.perMinute)}}, nil
	}
	return t.Performer.Perform(ctx, job)
}
