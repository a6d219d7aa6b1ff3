package linear

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errRevoked: the workspace itself said so.
var errRevoked = errors.New("its admin removed the app")

// Revoke takes it that a workspace revoked its access at a moment: its tokens
// are dropped, Linear is not asked for others, and whoever asks for one gets
// ErrReinstall, also after a restart. Keep ends that, or with GrantClient, which
// sees no installation, Heard.
//
// It reports false, and does nothing, when the access was granted later than
// that: the webhook is late, and the app was installed again. May be called
// twice.
func (t *Tokens) Revoke(ctx context.Context, organization string, at time.Time) (revoked bool, err error) {
	if !validID.MatchString(organization) {
		return false, fmt.Errorf("workspace %q: %w", organization, errKey)
	}
	err = t.alter(ctx, organization, func(r *record) bool {
		if revoked = !r.Since.After(at); !revoked {
			return false
		}
		if r.Revoked == nil {
			r.Revoked = make(map[string]time.Time)
		}
		r.Access, r.Refresh = "", ""
		if t.code { // with GrantClient the record is not the workspace's alone
			r.Dead = errRevoked.Error()
		}
		if at.After(r.Revoked[organization]) {
			r.Revoked[organization] = at
		}
		return true
	})
	if err == nil && revoked {
		err = t.list(ctx, func(all []string) []string { return without(all, organization) })
	}
	if err != nil {
		return false, fmt.Errorf("revoke access to linear: %w", err)
	}
	return revoked, nil
}

// Heard takes it that a workspace sent something at a moment. With GrantClient,
// a revocation before that is over: Linear sends nothing to an app that is not
// installed. May be called twice.
func (t *Tokens) Heard(ctx context.Context, organization string, at time.Time) error {
	if t.code {
		return nil
	}
	err := t.alter(ctx, organization, func(r *record) bool {
		since, revoked := r.Revoked[organization]
		if !revoked || !at.After(since) {
			return false
		}
		delete(r.Revoked, organization)
		r.Since = at // so that the same revocation, told once more, is late
		return true
	})
	if err != nil {
		return fmt.Errorf("restore access to linear: %w", err)
	}
	return nil
}

// alter changes a workspace's record, unless there is nothing to change.
func (t *Tokens) alter(ctx context.Context, organization string, change func(*record) bool) error {
	name, err := t.name(organization)
	if err != nil {
		return err
	}
	for range keepTries {
		r, err := t.load(ctx, name)
		if err != nil || !change(&r) {
			return err
		}
		done, err := t.store(ctx, name, r)
		if err != nil || done {
			return err
		}
	}
	return errContended
}
