package github

import (
	"context"
	"fmt"
	"time"

	"github.com/google/go-github/v66/github"
	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// gitUser goes with an installation token as the password.
	gitUser = "x-access-token"
	// maxCredentials kept; one per repository that is worked on.
	maxCredentials = 1024
	// renewBefore is how long a token that is handed out is still good for: a
	// large push must not outlive it.
	renewBefore = 5 * time.Minute
)

// Credentials mints what reaches one repository and nothing else.
type Credentials struct {
	app    *app
	webURL string
	tokens *lru.Cache[string, credential]
}

type credential struct {
	token   string
	expires time.Time
}

func newCredentials(c Config, a *app) *Credentials {
	tokens, err := lru.New[string, credential](maxCredentials)
	if err != nil {
		panic(err) // unreachable: the size is positive
	}
	return &Credentials{app: a, webURL: c.WebURL, tokens: tokens}
}

// GitCredential returns what git authenticates with for one repository: a
// token that can read and write its contents (and its workflows, when the app
// may) and nothing else, good for five minutes at least. The key is that of a
// session.Repo. Errors are *session.Problem.
func (c *Credentials) GitCredential(ctx context.Context, repoKey string) (user, password string, err error) {
	r, err := parseRepo(repoKey)
	if err != nil {
		return "", "", unusable(err)
	}
	if known, ok := c.tokens.Get(repoKey); ok && time.Until(known.expires) > renewBefore {
		return gitUser, known.token, nil
	}
	minted, err := c.mint(ctx, r)
	if err != nil {
		return "", "", c.app.problem(ctx, r, fmt.Errorf("mint a token for %s: %w", r.fullName(), err))
	}
	c.tokens.Add(repoKey, minted)
	return gitUser, minted.token, nil
}

func (c *Credentials) mint(ctx context.Context, r repo) (credential, error) {
	in, _, err := c.app.self.Apps.GetInstallation(ctx, r.installation)
	if err != nil {
		return credential{}, err
	}
	allow := &github.InstallationPermissions{Contents: github.String("write")}
	if in.GetPermissions().GetWorkflows() == "write" {
		allow.Workflows = github.String("write")
	}
	token, _, err := c.app.self.Apps.CreateInstallationToken(ctx, r.installation,
		&github.InstallationTokenOptions{RepositoryIDs: []int64{r.id}, Permissions: allow})
	if err != nil {
		return credential{}, err
	}
	return credential{token: token.GetToken(), expires: token.GetExpiresAt().Time}, nil
}

// CloneURL returns where git finds a repository, without credentials.
func (c *Credentials) CloneURL(repoKey string) (string, error) {
	r, err := parseRepo(repoKey)
	if err != nil {
		return "", unusable(err)
	}
	return c.webURL + "/" + r.fullName() + ".git", nil
}
