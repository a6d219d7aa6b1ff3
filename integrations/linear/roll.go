package linear

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"ship/session"
)

const (
	// maxRoll is how many sessions of one issue are remembered, the newest.
	maxRoll = 30
	// keepRoll is how long, from the last of them.
	keepRoll = 30 * 24 * time.Hour
)

// rolls tell which agent sessions an issue has, for webhooks that name the
// issue only. What they keep is ids, and no secret.
type rolls struct{ vault session.Vault }

// entry is one agent session.
type entry struct {
	Session string `json:"s"`
	// Began, in ms since 1970, by Linear's clock.
	Began int64 `json:"b"`
}

func (e entry) began() time.Time { return time.UnixMilli(e.Began) }

// rollName cannot be one of Tokens', which have a part less.
func rollName(organization, issue string) string { return "linear.issue." + organization + "." + issue }

// add makes a session known that began at a time, if it is about an issue. May
// be called twice: the second time only looks.
func (r rolls) add(ctx context.Context, t thread, began time.Time) error {
	if t.issue == "" {
		return nil
	}
	err := change(ctx, r.vault, rollName(t.organization, t.issue), keepRoll, func(old []byte) ([]byte, error) {
		all := parseRoll(old)
		if slices.ContainsFunc(all, func(e entry) bool { return e.Session == t.agentSession }) {
			return old, nil
		}
		all = append(all, entry{t.agentSession, began.UnixMilli()})
		return json.Marshal(all[max(0, len(all)-maxRoll):])
	})
	if err != nil {
		return fmt.Errorf("note the issue's session: %w", err)
	}
	return nil
}

// of lists an issue's sessions in the order in which they became known.
func (r rolls) of(ctx context.Context, organization, issue string) ([]entry, error) {
	value, _, err := r.vault.Load(ctx, rollName(organization, issue))
	if err != nil {
		return nil, fmt.Errorf("look up the issue's sessions: %w", err)
	}
	return parseRoll(value), nil
}

// started counts an issue's sessions that began since a moment, thirty at most.
func (r rolls) started(ctx context.Context, organization, issue string, since time.Time) (int, error) {
	all, err := r.of(ctx, organization, issue)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, e := range all {
		if !e.began().Before(since) {
			n++
		}
	}
	return n, nil
}

// parseRoll reads a roll. One that cannot be read begins anew, for nothing that
// people asked is lost with it.
func parseRoll(value []byte) []entry {
	var all []entry
	if json.Unmarshal(value, &all) != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(e entry) bool { return !validID.MatchString(e.Session) })
}

const (
	// changeTries bounds how often a change is overtaken by others; of those who
	// try at once, one succeeds each time.
	changeTries = 40
	// changeRest is how long to stand back after that, at most.
	changeRest = 10 * time.Millisecond
)

// errContended: others were always faster.
var errContended = errors.New("others kept changing it")

// change replaces what is under a name by what alter makes of it: the same
// leaves it alone, nothing removes it. alter may be called again.
func change(ctx context.Context, v session.Vault, name string, ttl time.Duration, alter func(old []byte) ([]byte, error)) error {
	for range changeTries {
		old, version, err := v.Load(ctx, name)
		if err != nil {
			return err
		}
		next, err := alter(old)
		if err != nil || bytes.Equal(next, old) {
			return err
		}
		swapped, err := v.Swap(ctx, name, version, next, ttl)
		if err != nil || swapped {
			return err
		}
		if err := session.Sleep(ctx, mathrand.N(changeRest)); err != nil {
			return err
		}
	}
	return errContended
}
