package session_test

import (
	"context"
	"strings"
	"time"

	"ship/session"
)

// today is what the platform's asker learns of the accounts of a world in which
// more than a turn's money is used up.
func (p *process) today(job session.Job) *session.Today {
	sum := session.Today{Day: job.Now().UTC().Format(time.DateOnly), Payer: job.Effect.Request.Payer(), PersonMax: 10, AllMax: 50}
	switch p.world.limit {
	case session.PersonLimit:
		sum.Person, sum.All = 10, 20
	case session.DayLimit:
		sum.Person, sum.All = 8, 50
	default:
		return nil
	}
	return &sum
}

// runOut is an agent that is told that the turn's money is spent, having told
// that it soon would be; nil: nothing runs out.
func (p *process) runOut(ctx context.Context, job session.Job) (*session.Outcome, error) {
	if p.world.limit != session.TurnLimit || job.State.Turn.PastLimit != "" {
		return nil, nil
	}
	job.Progress(session.Progress{Doing: "bash", Usage: session.Usage{Calls: 1, USD: 0.85}})
	select {
	case <-time.After(30 * time.Second):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return &session.Outcome{
		Ending: session.Spent, Limit: session.TurnLimit, Served: len(job.Latest().Turn.Requests), Usage: session.Usage{Calls: 2, USD: 1},
	}, nil
}

// second is what is asked for after the first request: in the middle of the
// turn, or in answer to whether to go on past a limit.
func (sc scene) second() string {
	if sc.limit != "" {
		return "Go on with $1 more"
	}
	return "and the docs"
}

// awaitPause returns once the thread was asked whether to go on, or nobody will
// ask because the process has died.
func (sc scene) awaitPause(w *world, p *process) {
	for range 1200 { // a story that is never asked fails later
		if sc.limit == "" || w.wasPaused() || p.dead.Load() {
			return
		}
		time.Sleep(time.Second)
	}
}

func (w *world) wasPaused() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.paused
}

// turns that there are in the end.
func (sc scene) turns() string {
	if sc.limit != "" {
		return "2"
	}
	return "1"
}

// heard: people know of a limit before it is reached, where that is in this
// world, and that it was.
func (sc scene) heard(facts string) bool {
	switch sc.limit {
	case session.TurnLimit:
		return strings.Contains(facts, "say I have spent $0.85 of the $1 ") && strings.Contains(facts, "check head1 neutral") && strings.Contains(facts, "check head1 success")
	case "":
		return true
	}
	return strings.Count(facts, "booked for ") == 1
}
