package turn

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"ship/sandbox/broker"
	"ship/sandbox/lifecycle"
	"ship/session"
)

// today is what the session keeps of a balance; nil: nobody has looked.
func (w *Worker) today(job session.Job, sum broker.Balance) *session.Today {
	if sum.Day == "" {
		return nil
	}
	return &session.Today{
		Day: sum.Day, Payer: job.State.Turn.Payer(),
		Person: sum.Person.USD, PersonMax: w.PersonDayUSD, All: sum.All.USD, AllMax: w.DayUSD,
	}
}

// limit is the one that a turn has run into; empty: none of money. The broker
// goes by the same accounts.
func (w *Worker) limit(job session.Job, sum broker.Balance) session.Limit {
	g := w.grant(job)
	bounds := session.Today{Person: sum.Person.USD, PersonMax: g.PersonDayUSD, All: sum.All.USD, AllMax: g.DayUSD}
	if l := bounds.Reached(); l != "" {
		return l
	}
	if sum.Turn.USD >= g.BudgetUSD {
		return session.TurnLimit
	}
	return ""
}

// bookWork books the time of a box that a turn is at work in, up to now.
func (w *Worker) bookWork(ctx context.Context, job session.Job) error {
	s := job.Latest()
	if s.Turn == nil || !s.Busy() {
		return nil
	}
	turn := strconv.Itoa(s.Turn.N)
	return w.book(ctx, broker.Stay{
		Session: string(s.ID), Span: turn, Turn: turn, Person: s.Turn.Payer(), Total: s.BoxTime(job.Now()),
	})
}

// bookTurn books what is left of a turn's box time when it has ended.
func (w *Worker) bookTurn(ctx context.Context, job session.Job) error {
	stay := job.Effect.Stay
	if stay == nil { // no box, or an earlier release decided it
		return nil
	}
	turn := job.Effect.Text
	return w.book(ctx, broker.Stay{
		Session: string(job.State.ID), Span: turn, Turn: turn, Person: stay.Payer, Total: time.Duration(stay.Seconds) * time.Second,
	})
}

// bookRest books the time since the last turn of a box that nobody is at work
// in. Whoever asked for that turn pays for it.
func (w *Worker) bookRest(ctx context.Context, job session.Job) error {
	s := job.State
	if s.Metered.IsZero() || lifeOf(s).State == lifecycle.Busy {
		return nil
	}
	return w.book(ctx, broker.Stay{
		Session: string(s.ID), Span: fmt.Sprintf("rest-%d", s.Metered.UnixMilli()), Person: s.Payer, Total: job.Now().Sub(s.Metered),
	})
}

func (w *Worker) book(ctx context.Context, s broker.Stay) error {
	if err := w.Broker.Book(ctx, s); err != nil {
		return fmt.Errorf("book the time of a box: %w", err)
	}
	return nil
}
