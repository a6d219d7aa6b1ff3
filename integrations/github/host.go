package github

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v66/github"

	"ship/bot"
	"ship/session"
)

// Host is GitHub as the place of code: what sessions that began on another
// platform need to know of repositories and of people. It only reads, and
// holds nothing but caches. Errors of its methods are *session.Problem, but
// for those of a context that ended.
type Host struct {
	app    *app
	people *people
	log    *slog.Logger
	// noreply is the host of the addresses that GitHub gives people who hide
	// theirs.
	noreply string
	logins  loginCache
	listed  listing
}

var (
	_ bot.Repositories = (*Host)(nil)
	_ bot.Rights       = (*Host)(nil)
)

func newHost(c Config, who *people) *Host {
	return &Host{app: who.app, people: who, log: c.Logger, noreply: noreplyHost(c.WebURL), logins: newLoginCache()}
}

// noreplyHost is where the addresses are that GitHub gives to people.
func noreplyHost(webURL string) string {
	host := "github.com"
	if u, err := url.Parse(webURL); err == nil && u.Hostname() != "" {
		host = u.Hostname()
	}
	return "users.noreply." + host
}

// Repository finds a repository that the app is installed on by its
// OWNER/NAME, with its default branch. One that nothing can be pushed to is a
// problem too.
func (h *Host) Repository(ctx context.Context, name string) (found session.Repo, base string, err error) {
	owner, own, _ := cutLast(name, "/")
	if !validRepo(owner, own) {
		return session.Repo{}, "", &session.Problem{
			Say: "That is not a repository's name. Write it as `OWNER/NAME`.",
			Err: fmt.Errorf("github: repository name %q: %w", name, errKey),
		}
	}
	r := repo{owner: owner, name: own}
	got, err := h.repository(ctx, &r)
	if err != nil {
		return session.Repo{}, "", h.app.problem(ctx, r, fmt.Errorf("find %s: %w", name, err))
	}
	return r.session(), got.GetDefaultBranch(), nil
}

// repository completes r. To the app, a repository that is not there and one
// that it may not see look the same.
func (h *Host) repository(ctx context.Context, r *repo) (*github.Repository, error) {
	at, _, err := h.app.self.Apps.FindRepositoryInstallation(ctx, r.owner, r.name)
	if err != nil {
		return nil, unseen(*r, err)
	}
	if at.SuspendedAt != nil {
		p := suspended(*r)
		p.Err = errors.New("github: the installation is suspended")
		return nil, p
	}
	in, err := h.app.installation(at.GetID())
	if err != nil {
		return nil, err
	}
	got, _, err := in.rest.Repositories.Get(ctx, r.owner, r.name)
	if err != nil {
		return nil, unseen(*r, err)
	}
	r.installation, r.id, r.owner, r.name = at.GetID(), got.GetID(), got.GetOwner().GetLogin(), got.GetName()
	if got.GetArchived() || got.GetDisabled() {
		return nil, &session.Problem{
			Say: fmt.Sprintf("`%s` is archived, so nothing can be pushed to it. Unarchive it, or name another repository.", r.fullName()),
			Err: errors.New("github: the repository is archived or disabled"),
		}
	}
	return got, nil
}

// unseen says what to check when there is no such repository for us.
func unseen(r repo, err error) error {
	if !gone(err) {
		return err
	}
	return &session.Problem{
		Say: fmt.Sprintf("I cannot see `%s`: there is no repository of that name, or the GitHub App is not installed on it. Check the name, or install the app there.", r.fullName()),
		Err: fmt.Errorf("github: find repository: %w", err),
	}
}

// HasBranch tells whether a repository has a branch of exactly this name.
func (h *Host) HasBranch(ctx context.Context, repository session.Repo, branch string) (bool, error) {
	r, in, err := h.reach(repository)
	if err != nil {
		return false, err
	}
	has, err := in.hasBranch(ctx, r, branch)
	return has, h.app.problem(ctx, r, err)
}

// hasBranch: GitHub forwards from the name that a branch had before, which git
// does not, so the name has to be the same.
func (in *installation) hasBranch(ctx context.Context, r repo, branch string) (bool, error) {
	if branch == "" || branch == "." || strings.Contains(branch, "..") { // no branch, but a path
		return false, nil
	}
	var got github.Branch
	_, err := in.call(ctx, http.MethodGet, r.path("branches/%s", url.PathEscape(branch)), nil, &got)
	if gone(err) {
		return false, nil
	}
	return got.GetName() == branch, err
}

// May tells whether somebody may command ship in a repository: the same answer
// as for a command that is given on GitHub.
func (h *Host) May(ctx context.Context, repository session.Repo, login string) (who session.Person, may bool, err error) {
	r, err := parseRepo(repository.Key)
	if err != nil {
		return session.Person{}, false, unusable(err)
	}
	got, err := h.people.standing(ctx, r, login)
	if err != nil {
		return session.Person{}, false, h.app.problem(ctx, r, fmt.Errorf("ask for a person's rights in %s: %w", r.fullName(), err))
	}
	who = session.Person{Login: got.login, Name: got.name}
	if got.login != "" && got.id > 0 {
		who.Email = fmt.Sprintf("%d+%s@%s", got.id, got.login, h.noreply)
	}
	return who, got.may, nil
}

// reach returns a repository and the clients that act on it.
func (h *Host) reach(repository session.Repo) (repo, *installation, error) {
	r, err := parseRepo(repository.Key)
	if err != nil {
		return repo{}, nil, unusable(err)
	}
	in, err := h.app.installation(r.installation)
	if err != nil {
		return repo{}, nil, unusable(err)
	}
	return r, in, nil
}
