package slack

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	api "github.com/slack-go/slack"

	"ship/session"
)

const (
	// processingLasts is how long Slack believes that we are at work without
	// being told again, less what a report may be late.
	processingLasts = 50 * time.Minute
	// deafFor is for how long a workspace is not told what it does not want to
	// know.
	deafFor = time.Hour
	// statusTimeout is short, because of what may wait behind it.
	statusTimeout = 5 * time.Second
	// statusTries is how often it is tried to tell that nothing goes on any more.
	statusTries = 3
	// maxAgentTitle of a session in Slack's display is shown, in characters.
	maxAgentTitle = 200
)

// status tells Slack's own display of agents what the session is up to, if it
// was not told that already. Slack shows a stop button by it. There are
// workspaces without it, so it is never an error, but for *notYet, which is one
// that it may be told later, and for a context that ended.
func (w *work) status(ctx context.Context) error {
	now, known, want := w.job.Now(), w.recall.of(w.thread, w.job.Lease.Epoch), w.mood()
	fresh := want != api.AgentSessionStatusProcessing || now.Sub(known.told) < processingLasts
	if want == "" || known.status == want && fresh || !w.recall.hears(now) {
		return nil
	}
	err := w.setStatus(ctx, want)
	switch {
	case noRoom(err), ctx.Err() != nil:
		return err
	case slices.Contains(noStatuses, code(err)):
		w.recall.giveUp(now.Add(deafFor))
	case err != nil && code(err) == "" && known.missed+1 < statusTries:
		known.missed++
		w.recall.keep(w.thread, known)
		return &notYet{wait: statusTimeout}
	default: // what it refuses now it refuses the next time
		known.status, known.told, known.missed = want, now, 0
		w.recall.keep(w.thread, known)
	}
	if err != nil {
		w.app.log.InfoContext(ctx, "slack does not show what the session is up to", "session", string(w.job.State.ID), "err", err)
	}
	return nil
}

// noStatuses are the answers of a workspace that has no statuses, or does not
// let us set any.
var noStatuses = []string{"feature_disabled", "feature_not_enabled", "missing_scope", "unknown_method", "not_allowed_token_type"}

// mood is what the session is up to, as Slack has it; empty: nothing yet.
func (w *work) mood() string {
	s := w.job.State
	switch {
	case w.busy(), len(s.Waiting) > 0:
		return api.AgentSessionStatusProcessing
	case s.Asking != nil, s.Turn != nil && questioned(*s.Turn):
		return api.AgentSessionStatusSuspended
	case s.Turn == nil:
		return ""
	}
	return api.AgentSessionStatusActive
}

// questioned: the turn ended with a question, which is open.
func questioned(t session.Turn) bool {
	return t.Outcome.Asks() != nil
}

// setStatus makes the request, again without who began the session if Slack
// does not find them.
func (w *work) setStatus(ctx context.Context, status string) error {
	soon, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	p := api.AgentSessionSetStatusParameters{Status: status, ChannelID: w.thread.channel, ThreadTS: w.thread.root}
	if status == api.AgentSessionStatusProcessing { // the first time, that makes the session
		p.Title, p.InitiatorUserID = w.title(), w.initiator()
	}
	err := w.sendStatus(soon, p)
	if p.InitiatorUserID != "" && strings.HasPrefix(code(err), "user_") {
		p.InitiatorUserID = ""
		err = w.sendStatus(soon, p)
	}
	return err
}

func (w *work) sendStatus(ctx context.Context, p api.AgentSessionSetStatusParameters) error {
	return w.app.try(ctx, Thinking, w.call("agents.sessions.setStatus"), func(ctx context.Context) error {
		_, err := w.app.client.SetAgentSessionStatusContext(ctx, p)
		return err
	})
}

// title of the session, in a line.
func (w *work) title() string {
	return shortened(strings.Join(strings.Fields(visible(w.job.State.Title)), " "), maxAgentTitle)
}

// initiator is who asked for the turn here; empty: nobody did, or nobody whom
// Slack knows.
func (w *work) initiator() string {
	turn := w.job.State.Turn
	if turn == nil {
		return ""
	}
	i := slices.IndexFunc(turn.Requests, w.here)
	if i < 0 {
		return ""
	}
	asked, err := parseRef(turn.Requests[i].Ref)
	if err != nil {
		return ""
	}
	return asked.user
}

// noRoom: it was the rate.
func noRoom(err error) bool {
	_, ok := errors.AsType[*notYet](err)
	return ok
}
