package linear

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"ship/config"
	"ship/session"
)

// Why there is no token. Both are inside of a *session.Problem.
var (
	// ErrNotInstalled: nobody installed ship in that workspace.
	ErrNotInstalled = errors.New("not installed in this workspace")
	// ErrReinstall: Linear does not take the refresh token any more, or told that
	// the workspace revoked the access. Nothing but another installation helps.
	ErrReinstall = errors.New("linear took the access back")
)

const (
	// renewBefore is how long before its end a token is renewed, if it lives
	// long enough; a quarter of its life otherwise. While Linear cannot be
	// reached for less than that, the old token does.
	renewBefore = time.Hour
	// usableFor is how long a token that is handed out is still good.
	usableFor = time.Minute
	// lockTime is longer than a renewal may take, with what keeps it.
	lockTime    = 30 * time.Second
	renewalTime = 25 * time.Second
	// restAfter a renewal nobody in this process makes another, whether it
	// failed or what it brought was refused.
	restAfter = 10 * time.Second
	// misconfigured is how long what is to be said waits for whoever runs ship to
	// put the credentials right. Without them nobody could be told anyway.
	misconfigured = time.Minute
	// lookEvery is how often one who waits for another's renewal looks.
	lookEvery = 100 * time.Millisecond
)

// TokensConfig is what Tokens is made from.
type TokensConfig struct {
	ClientID     string
	ClientSecret config.Secret
	// Grant is GrantClient or GrantCode; empty: GrantClient.
	Grant string
	// Keys seal what is kept: the first seals, all open. Empty: derived from
	// the client secret, with which everything kept becomes unreadable.
	Keys config.Secrets
	// TokenURL hands out tokens; empty: DefaultTokenURL.
	TokenURL string
	Vault    session.Vault
	Locker   session.Locker
	// Transport carries the requests; nil: http.DefaultTransport.
	Transport http.RoundTripper
	// Logger gets a line when a token is renewed or cannot be.
	Logger *slog.Logger
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Tokens keeps ship's access to the workspaces of Linear, for all gateways
// together. It is safe for concurrent use.
//
// With GrantClient there is one token, fetched when there is none. With
// GrantCode each workspace has its own, renewed with a refresh token that
// Linear replaces each time. So a renewal happens once at a time, and what it
// brought is in the vault before anybody uses it. If a gateway ends between
// Linear's answer and the vault, the vault still has the old refresh token,
// which Linear goes on taking for 30 minutes: the next who needs a token
// renews with it again. Is it later than that, Linear refuses it for good, and
// the workspace is marked: everybody who asks gets ErrReinstall with a sentence
// for people, nobody asks Linear again, and the log has an error. Whatever the
// renewed but lost tokens are, nobody has them. A workspace that said it revoked
// the access is marked likewise; see Revoke.
type Tokens struct {
	grants *grants
	code   bool
	prefix string
	ring   keyring
	vault  session.Vault
	locker session.Locker
	log    *slog.Logger
	now    func() time.Time

	// renewing is held by the one renewal that goes on in this process, and
	// guards what follows.
	renewing chan struct{}
	// unsaved grants came when the vault could not take them.
	unsaved map[string]record
	// resting is what stands for further attempts, and how long.
	resting map[string]failure
}

type failure struct {
	err   error
	until time.Time
}

// NewTokens checks the configuration. It speaks with nobody yet.
func NewTokens(c TokensConfig) (*Tokens, error) {
	c.Grant = cmp.Or(c.Grant, GrantClient)
	c.TokenURL = cmp.Or(c.TokenURL, DefaultTokenURL)
	switch {
	case !validClientID.MatchString(c.ClientID):
		return nil, errors.New("linear: client_id is missing")
	case c.ClientSecret.Empty():
		return nil, errors.New("linear: client_secret is missing")
	case c.Grant != GrantClient && c.Grant != GrantCode:
		return nil, errors.New("linear: no such grant")
	case c.Vault == nil || c.Locker == nil:
		return nil, errors.New("linear: no vault to keep tokens in")
	}
	keys := c.Keys
	if len(keys) == 0 {
		keys = config.Secrets{c.ClientSecret}
	}
	ring, err := newKeyring(keys.Reveal())
	if err != nil {
		return nil, fmt.Errorf("linear: %w", err)
	}
	t := &Tokens{
		grants: newGrants(c), code: c.Grant == GrantCode, prefix: "linear." + c.ClientID, ring: ring,
		vault: c.Vault, locker: c.Locker, log: c.Logger, now: c.Now,
		renewing: make(chan struct{}, 1), unsaved: make(map[string]record), resting: make(map[string]failure),
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if t.now == nil {
		t.now = time.Now
	}
	return t, nil
}

// Token returns an access token for a workspace, good for a minute at least
// unless Linear takes it back. With GrantClient the workspace does not matter.
// Errors are *session.Problem.
func (t *Tokens) Token(ctx context.Context, organization string) (string, error) {
	name, err := t.name(organization)
	if err != nil {
		return "", problem(err)
	}
	r, err := t.load(ctx, name)
	if _, revoked := r.Revoked[organization]; err == nil && revoked {
		err = fmt.Errorf("%w: %w", ErrReinstall, errRevoked)
	}
	if err == nil && t.due(r) {
		r, err = t.renew(ctx, name, r)
	}
	if err != nil {
		return "", problem(fmt.Errorf("get access to linear: %w", err))
	}
	return r.Access, nil
}

// Invalidate says that Linear refused an access token (401). If that is still
// the one in use, the next Token gets another. May be called twice.
func (t *Tokens) Invalidate(ctx context.Context, organization, access string) error {
	name, err := t.name(organization)
	if err != nil {
		return err
	}
	r, err := t.load(ctx, name)
	if err != nil || r.Access == "" || r.Access != access {
		return err
	}
	r.Access = ""
	if _, err := t.store(ctx, name, r); err != nil { // changed meanwhile: then it is another already
		return fmt.Errorf("invalidate access to linear: %w", err)
	}
	return nil
}

// Exchange turns the code of an installation into a grant. Linear takes a code
// once. Which workspace it is for, Linear tells whoever asks with the grant.
func (t *Tokens) Exchange(ctx context.Context, code, redirectURI string) (Grant, error) {
	g, err := t.grants.byCode(ctx, code, redirectURI)
	if err == nil {
		return g, nil
	}
	p := problem(fmt.Errorf("exchange the code: %w", err))
	if r := (*refusal)(nil); errors.As(err, &r) && !r.passes() { // another try would be another code
		p.Again = false
	}
	return Grant{}, p
}

// keepTries bounds how often Keep is overtaken.
const keepTries = 10

// Keep makes a grant the workspace's own, in place of what it had, a
// revocation included. May be called twice.
func (t *Tokens) Keep(ctx context.Context, organization string, g Grant) error {
	name, err := t.name(organization)
	if err != nil {
		return err
	}
	// Before the grant: a workspace that is listed without one is passed over.
	if err := t.list(ctx, func(all []string) []string { return with(all, organization) }); err != nil {
		return err
	}
	for range keepTries {
		_, version, err := t.vault.Load(ctx, name)
		if err != nil {
			return fmt.Errorf("keep access to linear: %w", err)
		}
		kept, err := t.store(ctx, name, t.record(g, record{version: version}))
		if err != nil || kept {
			return err
		}
	}
	return errors.New("keep access to linear: others kept changing it")
}

// Forget drops the workspace's tokens, and what was known of it. May be called
// twice. See also Revoke.
func (t *Tokens) Forget(ctx context.Context, organization string) error {
	name, err := t.name(organization)
	if err != nil {
		return err
	}
	err = change(ctx, t.vault, name, 0, func([]byte) ([]byte, error) { return nil, nil })
	if err != nil {
		return fmt.Errorf("forget access to linear: %w", err)
	}
	return t.list(ctx, func(all []string) []string { return without(all, organization) })
}

// name is what a workspace's record is kept under. It holds the client id, so
// that another app begins anew.
func (t *Tokens) name(organization string) (string, error) {
	if !t.code {
		return t.prefix, nil
	}
	if !validID.MatchString(organization) {
		return "", fmt.Errorf("workspace %q: %w", organization, errKey)
	}
	return t.prefix + "." + organization, nil
}

// problem says what a person should know of an error.
func problem(err error) *session.Problem {
	p := &session.Problem{Err: err}
	var r *refusal
	switch {
	case errors.Is(err, ErrNotInstalled):
		p.Say = "I am not installed in this Linear workspace. One of its admins has to install me."
	case errors.Is(err, ErrReinstall):
		p.Say = "Linear does not let me into this workspace any more. One of its admins has to install me again."
	case errors.Is(err, errSealed):
		p.Say, p.Again, p.After = "I cannot read the access to this Linear workspace that I kept. Whoever runs me finds the cause in the log.", true, misconfigured
	case errors.Is(err, errKey):
		p.Say = "Linear refused my credentials. Whoever runs me has to check them."
	case errors.As(err, &r) && !r.passes():
		p.Say, p.Again, p.After = "Linear refused my credentials. Whoever runs me has to check them.", true, misconfigured
	default:
		p.Say, p.Again = "Linear did not give me access just now.", true
	}
	if r != nil {
		p.After = max(p.After, r.after)
	}
	return p
}
