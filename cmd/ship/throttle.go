package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"time"

	"ship/session"
)

// throttle refuses who asks too often, on whatever platform and worker: the
// count is in the ledger. Asking is counted when a request is admitted for the
// first time, so a repeat after a crash can only count too much. To end work is
// not to ask for any: it always goes through.
type throttle struct {
	session.Performer
	ledger    session.Ledger
	perMinute int
	now       func() time.Time
}

// plainLogin is one that a ledger takes as a part of an account's name.
var plainLogin = regexp.MustCompile(`^[A-Za-z0-9.-]{1,100}$`)

// account counts what one person asks in a minute. A name as people write it
// is hashed: replacing what a ledger does not take would make one of two.
func account(r session.Request, minute int64) string {
	who := r.By.Login
	if !plainLogin.MatchString(who) {
		sum := sha256.Sum256([]byte(who))
		who = "hash:" + hex.EncodeToString(sum[:16])
	}
	return fmt.Sprintf("asks:%s:%s:%d", r.Thread.Platform, who, minute)
}

// Perform implements session.Performer. Whoever asked too often is refused as a
// stranger is.
func (t throttle) Perform(ctx context.Context, job session.Job) (session.Performed, error) {
	r := job.Effect.Request
	if job.Effect.Kind != session.Admit || r == nil || job.Repeat || r.Verb == session.Stop || r.Verb == session.Withdraw {
		return t.Performer.Perform(ctx, job)
	}
	total, err := t.ledger.Spend(ctx, account(*r, t.now().Unix()/60), session.Usage{Calls: 1})
	if err != nil {
		return session.Performed{}, fmt.Errorf("count the request: %w", err)
	}
	if total.Calls > t.perMinute {
		return session.Performed{Admission: &session.Admission{By: r.By, Stranger: true, Refusal: fmt.Sprintf(
			"That is more than %d requests in a minute, so I left this one alone. Ask again in a minute.", t.perMinute)}}, nil
	}
	return t.Performer.Perform(ctx, job)
}
