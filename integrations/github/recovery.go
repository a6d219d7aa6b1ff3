package github

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-github/v66/github"
)

const (
	// redeliverable is how long GitHub keeps deliveries.
	redeliverable = 3 * 24 * time.Hour
	// settled is how old a failed attempt has to be before the next is asked
	// for; it doubles with each attempt.
	settled = 2 * time.Minute
	// maxAttempts at a delivery, GitHub's own first one included.
	maxAttempts = 8
)

// Recovery fetches what was missed: GitHub never repeats a delivery by itself.
type Recovery struct{ app *app }

// Redeliver asks GitHub to repeat each delivery since a moment that never was
// accepted, and returns how many it asked for. Run it at the start, reaching
// back three days, and every few minutes from then on. Two processes that do so
// ask twice at worst; the delivery's id makes the second harmless.
func (r *Recovery) Redeliver(ctx context.Context, since time.Time) (asked int, err error) {
	now := time.Now()
	if oldest := now.Add(-redeliverable); since.Before(oldest) {
		since = oldest
	}
	missed, err := r.missed(ctx, since)
	if err != nil {
		return 0, r.app.problem(ctx, repo{}, fmt.Errorf("list deliveries: %w", err))
	}
	for _, m := range missed {
		if !m.due(now) {
			continue
		}
		if err := r.repeat(ctx, m.id); err != nil {
			return asked, r.app.problem(ctx, repo{}, fmt.Errorf("repeat delivery %s: %w", m.guid, err))
		}
		asked++
	}
	return asked, nil
}

// missed is a delivery whose attempts all failed, as far as they are listed.
type missed struct {
	guid string
	// id of the newest attempt, when that was, and how many there were.
	id       int64
	newest   time.Time
	attempts int
}

func (m missed) due(now time.Time) bool {
	return m.attempts < maxAttempts && now.Sub(m.newest) >= settled<<(m.attempts-1)
}

// missed lists what was never accepted, newest first.
func (r *Recovery) missed(ctx context.Context, since time.Time) ([]missed, error) {
	var order []string
	failed, accepted := map[string]*missed{}, map[string]bool{}
	err := r.attempts(ctx, since, func(d *github.HookDelivery) {
		guid := d.GetGUID()
		switch {
		case d.GetStatusCode() >= 200 && d.GetStatusCode() < 300:
			accepted[guid] = true
		case failed[guid] != nil:
			failed[guid].attempts++
		case triggerOf(d.GetEvent()) != nil:
			failed[guid] = &missed{guid: guid, id: d.GetID(), newest: d.GetDeliveredAt().Time, attempts: 1}
			order = append(order, guid)
		}
	})
	var out []missed
	for _, guid := range order {
		if !accepted[guid] {
			out = append(out, *failed[guid])
		}
	}
	return out, err
}

// attempts visits the attempts at deliveries since a moment, newest first.
func (r *Recovery) attempts(ctx context.Context, since time.Time, visit func(*github.HookDelivery)) error {
	options := &github.ListCursorOptions{PerPage: 100}
	for {
		list, resp, err := r.app.self.Apps.ListHookDeliveries(ctx, options)
		if err != nil {
			return err
		}
		for _, d := range list {
			if d.GetDeliveredAt().Before(since) {
				return nil
			}
			visit(d)
		}
		if resp.Cursor == "" {
			return nil
		}
		options.Cursor = resp.Cursor
	}
}

// repeat asks for another attempt. That GitHub will do it later is a success.
func (r *Recovery) repeat(ctx context.Context, id int64) error {
	_, _, err := r.app.self.Apps.RedeliverHookDelivery(ctx, id)
	var accepted *github.AcceptedError
	if errors.As(err, &accepted) {
		return nil
	}
	return err
}
