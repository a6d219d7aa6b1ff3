package linear

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ship/config"
)

const (
	// scopes that ship asks for, as an app. Tokens of other scopes would revoke
	// one another, so every gateway asks for the same.
	scopes = "read,write,app:assignable,app:mentionable"
	// grantTimeout bounds one request to the token address.
	grantTimeout = 10 * time.Second
	// maxGrant bounds what is read of an answer.
	maxGrant = 64 << 10
	// shortLife of a token whose answer does not say how long it lives.
	shortLife = time.Hour
)

// Grant is what Linear grants: an access token and, for the authorization
// code, what the next one is got with.
type Grant struct {
	Access, Refresh config.Secret
	// Lives is how long Access is good for.
	Lives time.Duration
	// Scopes that were granted, sorted; nil when Linear did not say.
	Scopes []string
}

// refusal is an answer of the token address that is no grant.
type refusal struct {
	status int
	// code is OAuth's, such as invalid_grant; empty when there is none.
	code string
	// after is what Retry-After asks for.
	after time.Duration
}

func (r *refusal) Error() string {
	return fmt.Sprintf("linear answers %d %s", r.status, r.code)
}

// passes tells whether the same request may succeed another time.
func (r *refusal) passes() bool {
	return r.status >= 500 || r.status == http.StatusTooManyRequests || r.status == http.StatusRequestTimeout
}

// grants asks for tokens.
type grants struct {
	url, clientID string
	clientSecret  config.Secret
	client        *http.Client
}

func newGrants(c TokensConfig) *grants {
	return &grants{
		url: c.TokenURL, clientID: c.ClientID, clientSecret: c.ClientSecret,
		client: &http.Client{
			Transport: c.Transport, Timeout: grantTimeout,
			// A redirect would take the client secret along.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func (g *grants) byClient(ctx context.Context) (Grant, error) {
	return g.ask(ctx, url.Values{"grant_type": {GrantClient}, "scope": {scopes}})
}

func (g *grants) byCode(ctx context.Context, code, redirectURI string) (Grant, error) {
	return g.ask(ctx, url.Values{"grant_type": {GrantCode}, "code": {code}, "redirect_uri": {redirectURI}})
}

func (g *grants) byRefresh(ctx context.Context, refresh config.Secret) (Grant, error) {
	return g.ask(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh.Reveal()}})
}

// ask posts a form. The error is a *refusal where Linear answered; no error
// holds anything of the form or of the answer.
func (g *grants) ask(ctx context.Context, form url.Values) (Grant, error) {
	form.Set("client_id", g.clientID)
	form.Set("client_secret", g.clientSecret.Reveal())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url, strings.NewReader(form.Encode()))
	if err != nil {
		return Grant{}, errors.New("token_url is not an address")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := g.client.Do(req)
	if err != nil {
		return Grant{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxGrant))
	if err != nil {
		return Grant{}, fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return Grant{}, refused(resp, body)
	}
	return granted(body)
}

func granted(body []byte) (Grant, error) {
	var answer struct {
		Access  string  `json:"access_token"`
		Refresh string  `json:"refresh_token"`
		Expires float64 `json:"expires_in"` // seconds
		Scope   any     `json:"scope"`      // a text, and at times a list
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Access == "" {
		return Grant{}, errors.New("linear's answer holds no token") // never the body: it may hold one after all
	}
	g := Grant{Access: config.NewSecret(answer.Access), Refresh: config.NewSecret(answer.Refresh), Lives: shortLife, Scopes: scopesOf(answer.Scope)}
	if s := answer.Expires; s >= 1 && s < 10*365*24*3600 {
		g.Lives = time.Duration(s * float64(time.Second))
	}
	return g, nil
}

// LackingScopes returns what ship asks for and was not granted, sorted.
func LackingScopes(granted []string) []string {
	needed := scopesOf(scopes)
	return slices.DeleteFunc(needed, func(scope string) bool { return slices.Contains(granted, scope) })
}

// scopesOf reads what a token may do, in any of the ways in which Linear writes
// it.
func scopesOf(said any) []string {
	var out []string
	switch v := said.(type) {
	case string:
		out = strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
	case []any:
		for _, one := range v {
			out = append(out, scopesOf(one)...)
		}
	}
	slices.Sort(out)
	return out
}

// oauthCode is what OAuth's error codes look like: nothing else of an answer is
// repeated anywhere.
var oauthCode = regexp.MustCompile(`^[a-z_]{1,40}$`)

func refused(resp *http.Response, body []byte) *refusal {
	r := &refusal{status: resp.StatusCode}
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &answer) == nil && oauthCode.MatchString(answer.Error) {
		r.code = answer.Error
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 && s < 24*3600 {
		r.after = time.Duration(s) * time.Second
	}
	return r
}
