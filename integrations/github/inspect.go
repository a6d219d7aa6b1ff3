package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v66/github"
)

// ErrKey: GitHub does not know the app, or not by this key.
var ErrKey = errors.New("GitHub does not accept the app's id and key")

// Inspector looks at how the app is set up on GitHub. It changes nothing.
type Inspector struct{ app *app }

// NewInspector checks the configuration. It needs no webhook secret, and
// speaks with nobody yet.
func NewInspector(c Config) (*Inspector, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if t, ok := c.Transport.(transport); ok { // a wrong clock is to be seen, not to be made up for
		t.clock = nil
		c.Transport = t
	}
	a, err := newApp(c)
	if err != nil {
		return nil, err
	}
	return &Inspector{app: a}, nil
}

// About is what GitHub says of the app itself.
type About struct {
	Slug string
	// URL is the app's page.
	URL string
	// Permissions by name: read or write.
	Permissions map[string]string
	Events      []string
}

// About asks for the app, and for GitHub's time: that is known whenever GitHub
// answered, a refusal included, for a wrong clock is a reason to be refused.
// The error wraps ErrKey when the app's key is what is wrong.
func (i *Inspector) About(ctx context.Context) (a About, at time.Time, err error) {
	app, resp, err := i.app.self.Apps.Get(ctx, "")
	if resp != nil {
		at, _ = http.ParseTime(resp.Header.Get("Date")) // zero then
	}
	if status := refused(err); status == http.StatusUnauthorized || status == http.StatusNotFound {
		return About{}, at, ErrKey
	}
	if err != nil {
		return About{}, at, inspectError(err)
	}
	permissions, err := permissionMap(app.GetPermissions())
	return About{Slug: app.GetSlug(), URL: app.GetHTMLURL(), Permissions: permissions, Events: app.Events}, at, err
}

// Hook is how the app's webhook is set up.
type Hook struct {
	URL string
	// ContentType is json or form.
	ContentType string
	// Insecure: GitHub does not verify the certificate.
	Insecure bool
}

// Hook asks for the app's webhook.
func (i *Inspector) Hook(ctx context.Context) (Hook, error) {
	h, _, err := i.app.self.Apps.GetHookConfig(ctx)
	if err != nil {
		return Hook{}, inspectError(err)
	}
	return Hook{URL: h.GetURL(), ContentType: h.GetContentType(), Insecure: h.GetInsecureSSL() != "0"}, nil
}

// Installed is one installation of the app.
type Installed struct {
	ID int64
	// Account is whose repositories it is for.
	Account   string
	Suspended bool
	// Permissions are those that were accepted there. They may lag behind the
	// app's own.
	Permissions map[string]string
}

// Installations lists where the app is installed.
func (i *Inspector) Installations(ctx context.Context) ([]Installed, error) {
	var all []Installed
	for page := (&github.ListOptions{PerPage: 100}); ; {
		list, resp, err := i.app.self.Apps.ListInstallations(ctx, page)
		if err != nil {
			return nil, inspectError(err)
		}
		for _, in := range list {
			permissions, err := permissionMap(in.GetPermissions())
			if err != nil {
				return nil, err
			}
			all = append(all, Installed{
				ID: in.GetID(), Account: in.GetAccount().GetLogin(), Suspended: in.SuspendedAt != nil, Permissions: permissions,
			})
		}
		if page.Page = resp.NextPage; page.Page == 0 {
			return all, nil
		}
	}
}

// Repositories counts those that an installation reaches.
func (i *Inspector) Repositories(ctx context.Context, installation int64) (int, error) {
	in, err := i.app.installation(installation)
	if err != nil {
		return 0, err
	}
	list, _, err := in.rest.Apps.ListRepos(ctx, &github.ListOptions{PerPage: 1})
	if err != nil {
		return 0, inspectError(err)
	}
	return list.GetTotalCount(), nil
}

// permissionMap: the client library has a field for each permission.
func permissionMap(p *github.InstallationPermissions) (map[string]string, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("github: read permissions: %w", err)
	}
	var m map[string]string
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("github: read permissions: %w", err)
	}
	return m, nil
}

// inspectError says what GitHub answered, in a few words.
func inspectError(err error) error {
	var refusal *github.ErrorResponse
	var mint *ghinstallation.HTTPError
	var way *url.Error
	switch {
	case errors.As(err, &refusal) && refusal.Response != nil:
		return fmt.Errorf("GitHub answered %d: %s", refusal.Response.StatusCode, sentence(refusal))
	case errors.As(err, &mint) && mint.Response != nil:
		mint.Response.Body.Close() // read-only
		return fmt.Errorf("GitHub answered %d when asked for a token", mint.Response.StatusCode)
	case errors.As(err, &way):
		return fmt.Errorf("GitHub cannot be reached: %w", way.Err)
	default:
		return fmt.Errorf("ask GitHub: %w", err)
	}
}
