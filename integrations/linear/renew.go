package linear

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"ship/config"
	"ship/session"
)

// errSoon: Linear refuses the token that it gave a moment ago. Another would
// not do better.
var errSoon = errors.New("linear refused a new token")

// record is what the vault has of a workspace, in the clear.
type record struct {
	// Access is empty once Linear refused it.
	Access  string `json:"a,omitempty"`
	Refresh string `json:"r,omitempty"`
	// Renew is when a new token is to be had, Ends when the old one is no good.
	Renew time.Time `json:"n"`
	Ends  time.Time `json:"e"`
	// Dead says why the refresh token is of no more use.
	Dead string `json:"d,omitempty"`
	// Since is when Linear granted the access, or with GrantClient the token.
	Since time.Time `json:"s,omitzero"`
	// Revoked are workspaces that took their access back, and when.
	Revoked map[string]time.Time `json:"v,omitempty"`

	version int64
}

// record makes of a grant what comes after an old one.
func (t *Tokens) record(g Grant, old record) record {
	now := t.now().UTC()
	before := min(renewBefore, g.Lives/4)
	next := record{
		Access: g.Access.Reveal(), Refresh: g.Refresh.Reveal(),
		Renew: now.Add(g.Lives - before), Ends: now.Add(g.Lives),
		Since: now, Revoked: old.Revoked, version: old.version,
	}
	if t.code && !old.Since.IsZero() { // renewed, which Linear does not grant anew
		next.Since = old.Since
	}
	return next
}

// usable: the access token can still be handed out.
func (t *Tokens) usable(r record) bool {
	return r.Access != "" && t.now().Add(min(usableFor, r.Ends.Sub(r.Renew)/2)).Before(r.Ends)
}

// due: another token is to be had, or there is none.
func (t *Tokens) due(r record) bool {
	return !t.usable(r) || r.Dead == "" && !t.now().Before(r.Renew)
}

// load returns a workspace's record. One that is sealed with a lost key is as
// good as none where another can be fetched.
func (t *Tokens) load(ctx context.Context, name string) (record, error) {
	sealed, version, err := t.vault.Load(ctx, name)
	r := record{version: version}
	if err != nil || len(sealed) == 0 {
		return r, err
	}
	plain, err := t.ring.open(name, sealed)
	if err == nil {
		err = json.Unmarshal(plain, &r)
	}
	switch {
	case err != nil && t.code:
		return record{}, fmt.Errorf("open what was kept, is token_key another than before? %w", err)
	case err != nil:
		return record{version: version}, nil
	}
	return r, nil
}

// store puts a record in the place of the one whose version it has.
func (t *Tokens) store(ctx context.Context, name string, r record) (bool, error) {
	plain, err := json.Marshal(r)
	if err != nil {
		return false, fmt.Errorf("encode what is to be kept: %w", err)
	}
	ttl := time.Duration(0) // a refresh token has no end that we know of, a revocation has none
	if !t.code && len(r.Revoked) == 0 {
		ttl = max(r.Ends.Sub(t.now()), time.Second)
	}
	return t.vault.Swap(ctx, name, r.version, t.ring.seal(name, plain), ttl)
}

// renew returns a record with a token to use: the next one, another's, or
// while others see to that, the old one.
func (t *Tokens) renew(ctx context.Context, name string, old record) (record, error) {
	select {
	case t.renewing <- struct{}{}:
	default:
		if t.usable(old) {
			return old, nil
		}
		select {
		case t.renewing <- struct{}{}:
		case <-ctx.Done():
			return record{}, context.Cause(ctx)
		}
	}
	defer func() { <-t.renewing }()
	next, err := t.alone(ctx, name)
	if err != nil && t.usable(old) && context.Cause(ctx) == nil {
		t.log.WarnContext(ctx, "the access to linear could not be renewed, the old one still does", "err", err)
		return old, nil
	}
	return next, err
}

// alone renews while no other gateway does.
func (t *Tokens) alone(ctx context.Context, name string) (record, error) {
	holder := rand.Text()
	for {
		cur, err := t.load(ctx, name)
		if err != nil || !t.due(cur) {
			return cur, err
		}
		held, err := t.locker.Lock(ctx, name, holder, lockTime)
		switch {
		case err != nil:
			return record{}, err
		case held:
			return t.locked(ctx, name, holder)
		case t.usable(cur):
			return cur, nil
		}
		if err := session.Sleep(ctx, lookEvery+mathrand.N(lookEvery)); err != nil {
			return record{}, err
		}
	}
}

// locked renews what is still due. A renewal that began is brought to its end
// and kept even if whoever asked for it is gone: it used up the refresh token.
func (t *Tokens) locked(ctx context.Context, name, holder string) (record, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewalTime)
	defer cancel()
	defer func() { _ = t.locker.Unlock(ctx, name, holder) }() // or it lapses
	cur, err := t.load(ctx, name)
	if err != nil || !t.due(cur) {
		return cur, err
	}
	return t.advance(ctx, name, cur)
}

// advance gets the next token and keeps it, and only then returns it.
func (t *Tokens) advance(ctx context.Context, name string, cur record) (record, error) {
	if cur.Dead != "" {
		return record{}, fmt.Errorf("%w: %s", ErrReinstall, cur.Dead)
	}
	if f := t.resting[name]; t.now().Before(f.until) {
		return record{}, f.err
	}
	next, err := t.next(ctx, name, cur)
	if err != nil {
		return record{}, t.failed(ctx, name, cur, err)
	}
	kept, err := t.store(ctx, name, next)
	if err != nil {
		t.unsaved[name] = next
		return record{}, fmt.Errorf("keep the renewed access: %w", err)
	}
	delete(t.unsaved, name)
	t.resting[name] = failure{errSoon, t.now().Add(restAfter)}
	if !kept { // somebody who held the lock before, or a new installation
		return t.theirs(ctx, name)
	}
	t.log.InfoContext(ctx, "renewed the access to linear", "until", next.Ends)
	return next, nil
}

// next is what Linear grants, or granted when the vault could not take it.
func (t *Tokens) next(ctx context.Context, name string, cur record) (record, error) {
	if early, ok := t.unsaved[name]; ok && early.version == cur.version {
		return early, nil
	}
	var g Grant
	var err error
	switch {
	case !t.code:
		g, err = t.grants.byClient(ctx)
	case cur.Refresh == "":
		return record{}, ErrNotInstalled
	default:
		g, err = t.grants.byRefresh(ctx, config.NewSecret(cur.Refresh))
	}
	if err != nil {
		return record{}, err
	}
	next := t.record(g, cur)
	if t.code && next.Refresh == "" { // it was not replaced
		next.Refresh = cur.Refresh
	}
	return next, nil
}

// theirs is what somebody else put into the vault.
func (t *Tokens) theirs(ctx context.Context, name string) (record, error) {
	r, err := t.load(ctx, name)
	if err == nil && !t.usable(r) {
		err = errors.New("the access was changed while it was renewed")
	}
	return r, err
}

// failed makes sure that nobody asks again at once, and never again with a
// refresh token that Linear refused.
func (t *Tokens) failed(ctx context.Context, name string, cur record, err error) error {
	var r *refusal
	if !errors.As(err, &r) {
		r = &refusal{}
	}
	t.resting[name] = failure{err, t.now().Add(max(restAfter, r.after))}
	if !t.code || r.code != "invalid_grant" {
		return err
	}
	cur.Dead, cur.Refresh = err.Error(), ""
	marked, problem := t.store(ctx, name, cur)
	if problem != nil {
		return errors.Join(err, problem)
	}
	delete(t.resting, name)
	if !marked { // a new installation, or a renewal that was faster
		return errors.New("the access was changed while it was renewed")
	}
	t.log.ErrorContext(ctx, "linear took back the access to a workspace: install the app there again", "name", name, "err", err)
	return fmt.Errorf("%w: %w", ErrReinstall, err)
}
