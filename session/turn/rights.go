package turn

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"ship/sandbox"
	"ship/sandbox/broker"
	"ship/session"
)

// turnKey names the turn in grants and accounts.
func turnKey(s session.State) string { return strconv.Itoa(s.Turn.N) }

// publishing is how long a turn may go on after its deadline, to bring home what
// the agent left.
const publishing = 30 * time.Minute

// setUp is how long preparing a box may take, once there is a place for it.
const setUp = 2 * time.Hour

// hand gives the box the token of what it may do now. The whole grant is signed
// in any case, so that a branch that cannot be pushed to is found out before the
// work. Only while ship itself publishes may the box push: an agent that could
// would be able to rewrite what other people have on the branch.
func (w *Worker) hand(ctx context.Context, job session.Job, box sandbox.Box) error {
	g := w.grant(job)
	if _, err := w.Tokens.Sign(g); err != nil { // another try would say the same
		return &session.Problem{Err: err, Say: "I cannot work on this branch or repository, because its name has characters that I do not pass on. Rename it, then `/ship retry`."}
	}
	if job.State.Turn.Stage != session.Publishing {
		g.Push = ""
	}
	return w.write(ctx, box, g)
}

// lend lets the box push its checkpoint, and nothing else, until the next
// token. An agent that uses the moment can spoil what only it would miss.
func (w *Worker) lend(ctx context.Context, job session.Job, box sandbox.Box) error {
	g := w.grant(job)
	g.Push = checkpointOf(job.State)
	return w.write(ctx, box, g)
}

func (w *Worker) write(ctx context.Context, box sandbox.Box, g broker.Grant) error {
	token, err := w.Tokens.Sign(g)
	if err != nil {
		return fmt.Errorf("sign the turn's token: %w", err)
	}
	err = w.withRoom(ctx, box, []reserve{lastReserve()}, func() error {
		return box.Write(ctx, sandbox.TokenPath, []byte(token), 0o600)
	})
	if err != nil {
		return fmt.Errorf("hand over the turn's token: %w", err)
	}
	return nil
}

// grant is all that this turn may do outside its box.
func (w *Worker) grant(job session.Job) broker.Grant {
	s := job.State
	g := broker.Grant{
		Session: string(s.ID), Turn: turnKey(s),
		Repo: s.Repo.Name, RepoKey: s.Repo.Key, Push: "refs/heads/" + s.Branch,
		Models: []string{s.Turn.Model}, Calls: w.Calls, BudgetUSD: s.Turn.Budget,
		Person: s.Turn.Payer(), PersonDayUSD: w.PersonDayUSD, DayUSD: w.DayUSD,
		Expires: expiry(job),
	}
	if s.Turn.PastLimit != "" && s.Turn.PastLimit.Reaches(session.PersonLimit) { // what it may spend beyond is its own budget
		g.PersonDayUSD = 0
	}
	if s.Turn.PastLimit == session.DayLimit {
		g.DayUSD = 0
	}
	return g
}

// expiry is when the rights of a turn end by themselves, by the clock of this
// machine, which is the broker's. A turn's own clock starts when the box is
// ready, which may be long after it was asked for.
func expiry(job session.Job) time.Time {
	if job.State.Turn.Stage == session.Preparing {
		return time.Now().Add(setUp)
	}
	return deadline(job).Add(publishing)
}

// deadline is when the turn has to end, by the clock of this machine.
func deadline(job session.Job) time.Time {
	return job.State.Turn.Deadline.Add(-ahead(job))
}

// ahead is by how much the store's clock goes before ours.
func ahead(job session.Job) time.Duration { return time.Until(job.Now()) }

// byStore is a time by the store's clock; zero stays zero.
func byStore(job session.Job, at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(ahead(job))
}
