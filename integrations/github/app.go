package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/Khan/genqlient/graphql"
	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/golang-jwt/jwt/v4"
	"github.com/google/go-github/v66/github"
	lru "github.com/hashicorp/golang-lru/v2"

	ghql "ship/graphql/github"
)

// maxInstallations whose clients are kept. A client is a token and two maps.
const maxInstallations = 512

// app is the GitHub App and the clients that act for it.
type app struct {
	id        int64
	key       []byte
	api       *url.URL
	graphql   string
	transport http.RoundTripper
	config    Config
	// self acts as the app; it mints tokens and reads installations.
	self *github.Client
	// installations act within one installation each.
	installations *lru.Cache[int64, *installation]
	// login is the app's own, "slug[bot]", once it was asked for.
	login atomic.Pointer[string]
}

// installation is what acts within one installation of the app.
type installation struct {
	rest *github.Client
	// searching has an allowance of its own. The client library holds
	// everything back that goes through a client whose allowance is used up.
	searching *github.Client
	graphql   graphql.Client
	pace      *pacer
}

func newApp(c Config) (*app, error) {
	if c.clock == nil {
		c.clock = &clock{}
	}
	api, err := url.Parse(c.APIURL + "/")
	if err != nil {
		return nil, fmt.Errorf("github: parse api_url: %w", err)
	}
	a := &app{
		id: c.AppID, key: []byte(c.PrivateKey), api: api, graphql: graphqlURL(c.APIURL),
		transport: c.Transport, config: c,
	}
	signer, err := a.signer()
	if err != nil {
		return nil, err
	}
	a.self = a.client(signer)
	if a.installations, err = lru.New[int64, *installation](maxInstallations); err != nil {
		return nil, fmt.Errorf("github: make client cache: %w", err)
	}
	return a, nil
}

// graphqlURL follows from the REST address: /graphql beside it on github.com,
// /api/graphql on GitHub Enterprise Server.
func graphqlURL(api string) string {
	if host, ok := strings.CutSuffix(api, "/api/v3"); ok {
		return host + "/api/graphql"
	}
	return api + "/graphql"
}

// signer returns a transport that authenticates as the app. Transports of
// installations write into theirs whenever they renew a token, so each has
// one of its own.
func (a *app) signer() (*ghinstallation.AppsTransport, error) {
	key, err := jwt.ParseRSAPrivateKeyFromPEM(a.key)
	if err != nil {
		return nil, fmt.Errorf("github: read private_key: %w", err)
	}
	signer := punctual{ghinstallation.NewRSASigner(jwt.SigningMethodRS256, key), a.config.clock}
	t, err := ghinstallation.NewAppsTransportWithOptions(a.transport, a.id, ghinstallation.WithSigner(signer))
	if err != nil {
		return nil, fmt.Errorf("github: sign as the app: %w", err)
	}
	t.BaseURL = a.config.APIURL
	return t, nil
}

// errAstray is a redirect to another host.
var errAstray = errors.New("github redirects to another host")

// stayHome follows redirects, such as those of repositories that were renamed,
// but only where the first request went: whatever is asked for carries our token.
func stayHome(r *http.Request, via []*http.Request) error {
	const most = 5
	if first := via[0].URL; r.URL.Scheme != first.Scheme || r.URL.Host != first.Host || len(via) > most {
		return errAstray
	}
	return nil
}

func (a *app) client(t http.RoundTripper) *github.Client {
	c := github.NewClient(&http.Client{Transport: t, CheckRedirect: stayHome})
	c.BaseURL = a.api
	c.UserAgent = "ship"
	return c
}

// installation returns the clients of one installation.
func (a *app) installation(id int64) (*installation, error) {
	if in, ok := a.installations.Get(id); ok {
		return in, nil
	}
	signer, err := a.signer()
	if err != nil {
		return nil, err
	}
	t := ghinstallation.NewFromAppsTransport(signer, id)
	t.InstallationTokenOptions = &github.InstallationTokenOptions{}
	in := &installation{
		rest: a.client(t), searching: a.client(t),
		graphql: ghql.NewClient(a.graphql, checkedDoer{&http.Client{Transport: t, CheckRedirect: stayHome}}),
		pace:    &pacer{every: a.config.CreateInterval},
	}
	if before, found, _ := a.installations.PeekOrAdd(id, in); found {
		return before, nil
	}
	return in, nil
}

// forget drops an installation's clients, and with them its token.
func (a *app) forget(id int64) { a.installations.Remove(id) }

// bot returns the login under which the app writes.
func (a *app) bot(ctx context.Context) (string, error) {
	if known := a.login.Load(); known != nil {
		return *known, nil
	}
	me, _, err := a.self.Apps.Get(ctx, "")
	if err != nil {
		return "", fmt.Errorf("ask for the app's name: %w", err)
	}
	login := me.GetSlug() + "[bot]"
	a.login.Store(&login)
	return login, nil
}

// checkedDoer turns GraphQL's refusals over HTTP into the same errors as
// REST's, with the headers that say when to come back.
type checkedDoer struct{ client *http.Client }

func (d checkedDoer) Do(req *http.Request) (*http.Response, error) {
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, err
	}
	body := resp.Body // the check puts another in its place
	if err := github.CheckResponse(resp); err != nil {
		body.Close()
		return nil, err
	}
	return resp, nil
}

// Identity is whom the app's commits are made by. The address has the shape of
// those that GitHub gives to apps, and no mail reaches it.
func (i *Integration) Identity(ctx context.Context) (name, email string, err error) {
	login, err := i.Performer.app.bot(ctx)
	return login, login + "@users.noreply.github.com", err
}
