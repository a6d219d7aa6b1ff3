package linear

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/Khan/genqlient/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"ship/config"
	ql "ship/graphql/linear"
)

// Why Linear does not let an Inspector in.
var (
	// ErrCredentials: it does not know the client id, or not with that secret.
	ErrCredentials = errors.New("linear does not accept the client id with this secret")
	// ErrNotGranted: it knows them, and grants nothing for them alone.
	ErrNotGranted = errors.New("linear grants the app no token by its client credentials")
)

// Inspector asks Linear what it makes of the settings, for whoever sets ship
// up. It keeps nothing of what it is granted, and may be asked as often as one
// likes: Linear lets a thousand tokens of the same scopes live beside one
// another.
type Inspector struct {
	grants    *grants
	apiURL    string
	transport http.RoundTripper
}

// NewInspector speaks with nobody yet. A nil transport is
// http.DefaultTransport.
func NewInspector(s Settings, transport http.RoundTripper) *Inspector {
	if transport == nil {
		transport = http.DefaultTransport
	}
	c := s.Tokens()
	c.Transport = transport
	return &Inspector{grants: newGrants(c), apiURL: cmp.Or(s.APIURL, DefaultAPIURL), transport: transport}
}

// Enter has the app's own credentials let it in. Errors wrap ErrCredentials or
// ErrNotGranted where Linear answered so.
func (i *Inspector) Enter(ctx context.Context) (*Visit, error) {
	g, err := i.grants.byClient(ctx)
	if err != nil {
		return nil, entryError(err)
	}
	return newVisit(g, i.apiURL, i.transport), nil
}

// Known tells whether Linear accepts the client id and its secret where they
// alone open nothing: it offers them with a refresh token that is none. That
// this is refused as such is the good answer. It wraps ErrCredentials.
func (i *Inspector) Known(ctx context.Context) error {
	_, err := i.grants.byRefresh(ctx, config.NewSecret("none"))
	if r, ok := errors.AsType[*refusal](err); err == nil || ok && r.code == "invalid_grant" {
		return nil
	}
	return entryError(err)
}

func entryError(err error) error {
	r, ok := errors.AsType[*refusal](err)
	switch {
	case !ok:
		return unreachable(err)
	case r.code == "invalid_client" || r.status == http.StatusUnauthorized:
		return fmt.Errorf("%w (%d)", ErrCredentials, r.status)
	case r.status == http.StatusBadRequest || r.status == http.StatusForbidden:
		return fmt.Errorf("%w (%d %s)", ErrNotGranted, r.status, r.code)
	}
	return r
}

// unreachable keeps the address out of an error: it says nothing, and may be
// long.
func unreachable(err error) error {
	if way, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("linear cannot be reached: %w", way.Err)
	}
	return err
}

// Visit is what an access token opens.
type Visit struct {
	// Scopes that were granted, sorted; nil when Linear did not say.
	Scopes []string
	client graphql.Client
}

func newVisit(g Grant, apiURL string, transport http.RoundTripper) *Visit {
	doer := &http.Client{
		Transport: bearer{access: g.Access, next: transport}, Timeout: grantTimeout,
		// A redirect would take the token along.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Visit{Scopes: g.Scopes, client: ql.New(doer, apiURL)}
}

// bearer shows one token, as long as it lives.
type bearer struct {
	access config.Secret
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.access.Reveal())
	return b.next.RoundTrip(r)
}

// Viewer is whom a token acts as, and where.
type Viewer struct {
	ID, Name string
	// App: it is an app's user, and not a person.
	App bool
	// Organization is the workspace's id, Workspace its name and URLKey its
	// part of addresses.
	Organization, Workspace, URLKey string
}

// Viewer asks who the token acts as.
func (v *Visit) Viewer(ctx context.Context) (Viewer, error) {
	r, err := ql.ReadViewer(ctx, v.client)
	if err != nil {
		return Viewer{}, answerError(err)
	}
	return Viewer{
		ID: r.Viewer.Id, Name: cmp.Or(r.Viewer.DisplayName, r.Viewer.Name), App: r.Viewer.App,
		Organization: r.Organization.Id, Workspace: r.Organization.Name, URLKey: r.Organization.UrlKey,
	}, nil
}

// Limit is an allowance that fills up again.
type Limit struct {
	// Kind is "requests" or "complexity", and what else Linear may count.
	Kind          string
	Allowed, Left float64
}

// Limits asks what is left of the app's allowances. That counts as a request.
func (v *Visit) Limits(ctx context.Context) ([]Limit, error) {
	r, err := ql.ReadRateLimits(ctx, v.client)
	if err != nil {
		return nil, answerError(err)
	}
	var out []Limit
	for _, l := range r.RateLimitStatus.Limits {
		out = append(out, Limit{Kind: l.Type, Allowed: l.AllowedAmount, Left: l.RemainingAmount})
	}
	return out, nil
}

// apiCode is what the codes of Linear's errors look like.
var apiCode = regexp.MustCompile(`^[A-Z_]{1,40}$`)

// answerError says what became of a question in few words. What Linear says
// itself may be about anything, and stays out.
func answerError(err error) error {
	if h, ok := errors.AsType[*graphql.HTTPError](err); ok {
		if code := codeOf(h.Response.Errors); code != "" {
			return fmt.Errorf("linear answered %d %s", h.StatusCode, code)
		}
		return fmt.Errorf("linear answered %d", h.StatusCode)
	}
	if list, ok := errors.AsType[gqlerror.List](err); ok {
		return errors.New(strings.TrimSpace("linear refused the question " + codeOf(list)))
	}
	return unreachable(err)
}

func codeOf(list gqlerror.List) string {
	for _, e := range list {
		if code, ok := e.Extensions["code"].(string); ok && apiCode.MatchString(code) {
			return code
		}
	}
	return ""
}
