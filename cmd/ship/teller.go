package main

import (
	"context"
	"fmt"
	"time"

	"ship/sandbox/broker"
	"ship/session"
)

// teller tells, with every admission, what the one who asks and all have spent
// today: for the status, and so that no box is made for money that is not there.
type teller struct {
	session.Performer
	ledger session.Ledger
	limits LimitSettings
	now    func() time.Time
}

// Perform does what the performer does. That the accounts cannot be read now is
// worth another try: the store is what everything waits for then.
func (t teller) Perform(ctx context.Context, job session.Job) (session.Performed, error) {
	p, err := t.Performer.Perform(ctx, job)
	if err != nil || p.Admission == nil || job.Effect.Request == nil || p.Admission.Refusal != "" {
		return p, err
	}
	asked := *job.Effect.Request
	if p.Admission.By.Login != "" {
		asked.By = p.Admission.By
	}
	today, err := t.today(ctx, asked.Payer())
	if err != nil {
		return session.Performed{}, err
	}
	p.Admission.Today = &today
	return p, nil
}

func (t teller) today(ctx context.Context, payer string) (session.Today, error) {
	day := broker.Day(t.now())
	spent, err := t.ledger.Totals(ctx, broker.SpentAccount(day, payer), broker.SpentAccount(day, ""))
	if err != nil {
		return session.Today{}, fmt.Errorf("look what %s and all have spent: %w", payer, err)
	}
	return session.Today{
		Day: day, Payer: payer, Person: spent[0].USD, PersonMax: t.limits.PersonDayUSD, All: spent[1].USD, AllMax: t.limits.DayUSD,
	}, nil
}
