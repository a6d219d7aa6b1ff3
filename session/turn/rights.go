package turn

import (
	"strconv"
	"time"

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

// token signs what the box may do now. The whole grant is signed in any case,
// so that a branch that cannot be pushed to is found out before the work.
func (w *Worker) token(job session.Job) (string, error) {
	g := w.grant(job)
	token, err := w.Tokens.Sign(g)
	if err != nil || job.State.Turn.Stage == session.Publishing {
		return token, err
	}
	g.Push = ""
	return w.Tokens.Sign(g)
}

// grant is all that this turn may do outside its box.
func (w *Worker) grant(job session.Job) broker.Grant {
	s := job.State
	return broker.Grant{
		Session: string(s.ID), Turn: turnKey(s),
		Repo: s.Repo.Name, RepoKey: s.Repo.Key, Push: "refs/heads/" + s.Branch,
		Models: []string{s.Turn.Model}, Calls: w.Calls, BudgetUSD: s.Turn.Budget,
		Expires: expiry(job),
	}
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
