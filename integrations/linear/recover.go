package linear

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/Khan/genqlient/graphql"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/vektah/gqlparser/v2/gqlerror"

	ql "ship/graphql/linear"
	"ship/session"
)

const (
	// recoverable is how far back anything is recovered. The keys of what was
	// handled are kept for longer, or it would be handled once more.
	recoverable = 3 * 24 * time.Hour
	// maxSessionPages bounds what one look costs, with fifty sessions each.
	maxSessionPages = 3
	// maxSeen sessions in which there was nothing to find, and will not be until
	// they change.
	maxSeen = 4096
	// costSessions is what ReadSessions costs, in points.
	costSessions = 328
)

var errNoInbox = errors.New("linear: nothing to take what was missed")

// Recovery finds what people asked while no gateway was there to take it:
// Linear repeats a webhook for seven hours at most. It reads the agent sessions
// that wait for us, and makes the deliveries that their webhooks would have
// made, with the same content keys: a webhook that comes after all is a
// duplicate, as is whatever was handled before.
type Recovery struct {
	app   *app
	rolls rolls
	inbox session.Inbox
	seen  *lru.Cache[string, time.Time]
}

func newRecovery(a *app, r rolls, inbox session.Inbox) *Recovery {
	seen, err := lru.New[string, time.Time](maxSeen)
	if err != nil {
		panic(err) // unreachable: the size is positive
	}
	return &Recovery{app: a, rolls: r, inbox: inbox, seen: seen}
}

// Recover looks through what changed since a moment, and returns how many
// requests it found that nobody had taken. May be called again and by several
// gateways at once; each request is taken once. What came before an error is
// found. It takes a call for each session that changed and two or three more,
// and waits behind whatever else wants to speak with Linear.
func (r *Recovery) Recover(ctx context.Context, since time.Time) (found int, err error) {
	if r.inbox == nil {
		return 0, errNoInbox
	}
	workspaces, err := r.app.all(ctx)
	if err != nil {
		return 0, fmt.Errorf("linear: %w", err)
	}
	var errs []error
	for _, w := range workspaces {
		n, err := r.search(ctx, w, since)
		found += n
		switch {
		case context.Cause(ctx) != nil:
			return found, context.Cause(ctx)
		case errors.Is(err, ErrNotInstalled), errors.Is(err, ErrReinstall): // which was said when it happened
			r.app.forget(w.id) // another installation may have another user
		case err != nil:
			errs = append(errs, fmt.Errorf("linear: workspace %s: %w", w.id, err))
		}
	}
	return found, errors.Join(errs...)
}

// search looks through one workspace. A session that Linear does not let us
// read is passed over; when Linear cannot be reached, the rest would not do
// better.
func (r *Recovery) search(ctx context.Context, w *workspace, since time.Time) (found int, err error) {
	me, err := w.viewer(ctx)
	if err != nil {
		return 0, err
	}
	sessions, err := r.changed(ctx, w, since)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, s := range sessions {
		if s.AppUser.Id != me || !waits(s.Status) || r.known(s) {
			continue
		}
		n, err := r.take(ctx, w, me, s)
		found += n
		switch {
		case err == nil:
			r.seen.Add(s.Id, s.UpdatedAt)
		case !answered(err):
			return found, errors.Join(append(errs, err)...)
		default:
			errs = append(errs, err)
		}
	}
	return found, errors.Join(errs...)
}

// answered: Linear was there, and refused.
func answered(err error) bool {
	var refused gqlerror.List
	var status *graphql.HTTPError
	return errors.As(err, &refused) || errors.As(err, &status) && status.StatusCode == http.StatusBadRequest
}

// waits: something is expected of us there, or was.
func waits(s ql.AgentSessionStatus) bool {
	switch s {
	case ql.AgentSessionStatusPending, ql.AgentSessionStatusActive, ql.AgentSessionStatusAwaitinginput, ql.AgentSessionStatusStale:
		return true
	}
	return false
}

func (r *Recovery) known(s ql.SessionHead) bool {
	at, ok := r.seen.Get(s.Id)
	return ok && at.Equal(s.UpdatedAt)
}

// changed lists the sessions that changed since a moment, those that did last
// first, 150 at most.
func (r *Recovery) changed(ctx context.Context, w *workspace, since time.Time) ([]ql.SessionHead, error) {
	var all []ql.SessionHead
	var after string
	for range maxSessionPages {
		var got *ql.ReadSessionsResponse
		err := w.call(ctx, Moving, costSessions, func(c graphql.Client) (err error) {
			got, err = ql.ReadSessions(ctx, c, after)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		page := got.AgentSessions
		all = append(all, page.Nodes...)
		all = slices.DeleteFunc(all, func(s ql.SessionHead) bool { return s.UpdatedAt.Before(since) })
		reached := len(page.Nodes) > 0 && page.Nodes[len(page.Nodes)-1].UpdatedAt.Before(since)
		if reached || !page.PageInfo.HasNextPage {
			return all, nil
		}
		after = page.PageInfo.EndCursor
	}
	r.app.log.WarnContext(ctx, "so many sessions of linear changed that only the newest are looked through for missed requests",
		"organization", w.id, "sessions", len(all))
	return all, nil
}

// take takes what was missed in one session.
func (r *Recovery) take(ctx context.Context, w *workspace, me string, s ql.SessionHead) (found int, err error) {
	t := thread{organization: w.id, agentSession: s.Id}
	if s.Issue != nil {
		t.issue = s.Issue.Id
	}
	if !t.valid() {
		return 0, fmt.Errorf("session %q: %w", s.Id, errKey)
	}
	acts, err := w.missed(ctx, me, t, s)
	if err != nil || len(acts) == 0 {
		return 0, err
	}
	if err := r.rolls.add(ctx, t, s.CreatedAt); err != nil {
		return 0, err
	}
	for _, a := range acts {
		receipt, err := r.inbox.Append(ctx, a.deliver("recovered:"+a.id))
		if err != nil {
			return found, fmt.Errorf("take what was missed: %w", err)
		}
		if !receipt.Duplicate {
			found++
		}
	}
	return found, nil
}
