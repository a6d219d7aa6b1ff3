package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"
	lru "github.com/hashicorp/golang-lru/v2"

	"ship/session"
)

const (
	// loginKept is how long it is believed whose an address is, and
	// strangerKept that it is nobody's: whoever makes theirs known wants to try
	// again soon.
	loginKept    = 30 * time.Minute
	strangerKept = 2 * time.Minute
	maxLogins    = 4096
	// fewCommits are looked through for one that bears the very address.
	fewCommits = 10
)

// validAddress is what an address may look like that is looked up: it becomes
// part of a search, and what means something there is not in it.
var validAddress = regexp.MustCompile(`^[A-Za-z0-9._%+'-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+$`)

// maxAddress is the longest address that mail can be sent to.
const maxAddress = 254

type knownLogin struct {
	login string
	until time.Time
}

type loginCache struct{ *lru.Cache[string, knownLogin] }

func newLoginCache() loginCache {
	c, err := lru.New[string, knownLogin](maxLogins)
	if err != nil {
		panic(err) // unreachable: the size is positive
	}
	return loginCache{c}
}

func (c loginCache) get(key string) (string, bool) {
	known, ok := c.Get(key)
	return known.login, ok && time.Now().Before(known.until)
}

func (c loginCache) put(key, login string) {
	kept := loginKept
	if login == "" {
		kept = strangerKept
	}
	c.Add(key, knownLogin{login: login, until: time.Now().Add(kept)})
}

// Login returns the account that an e-mail address belongs to, empty when
// GitHub does not tell. The platform that somebody asks on vouches for their
// having the address; what is looked for here is who has it on GitHub, and
// only answers count that GitHub gives for verified addresses:
//
//   - An address of GitHub's own names the account, by a number that no other
//     account ever has.
//   - A commit is linked to the account that verified the address of its
//     author. Anybody can write somebody else's address into a commit, and
//     thereby links it to that somebody: it makes no one else of whoever asks.
//   - A public address on a profile is one of those that its owner verified.
//     Search finds similar ones too, so the profile itself is read.
//
// So whoever wants to pass for an account needs to have verified one of its
// addresses elsewhere, which is to own the mailbox.
func (h *Host) Login(ctx context.Context, repository session.Repo, email string) (string, error) {
	r, in, err := h.reach(repository)
	if err != nil {
		return "", err
	}
	address := strings.ToLower(strings.TrimSpace(email))
	if len(address) > maxAddress || !validAddress.MatchString(address) {
		return "", nil
	}
	key := fmt.Sprintf("%d/%s", r.id, address)
	if login, ok := h.logins.get(key); ok {
		return login, nil
	}
	login, sure, err := h.look(ctx, lookup{in: in, repo: r, address: address})
	if err != nil {
		return "", h.app.problem(ctx, r, fmt.Errorf("look for the owner of an address in %s: %w", r.fullName(), veiled{err, address}))
	}
	if sure {
		h.logins.put(key, login)
	}
	return login, nil
}

// lookup is an address that is looked for where a repository lies.
type lookup struct {
	in      *installation
	repo    repo
	address string
}

// look asks where it costs least first. It is not sure of an empty answer when
// it could not ask everywhere.
func (h *Host) look(ctx context.Context, l lookup) (login string, sure bool, err error) {
	if login, err = l.byNumber(ctx, h.noreply); login != "" || err != nil {
		return login, true, err
	}
	if login, err = l.byCommit(ctx); login != "" || err != nil {
		return login, true, err
	}
	login, err = l.bySearch(ctx)
	if err == nil {
		return login, true, nil
	}
	err = h.app.problem(ctx, l.repo, fmt.Errorf("search: %w", veiled{err, l.address}))
	var p *session.Problem
	if errors.As(err, &p) && p.After > 0 { // few searches a minute are allowed
		h.log.Warn("search for an address put off", "repository", l.repo.fullName(), "after", p.After)
		return "", false, nil
	}
	return "", false, err
}

// veiled is an error that keeps an address, which is part of what was asked
// for, out of the log.
type veiled struct {
	error
	address string
}

func (v veiled) Unwrap() error { return v.error }

func (v veiled) Error() string {
	return strings.NewReplacer(url.QueryEscape(v.address), "(address)", v.address, "(address)").Replace(v.error.Error())
}

// byNumber reads an address of GitHub's own, "NUMBER+LOGIN@HOST". A login may
// be somebody else's by now, the number may not.
func (l lookup) byNumber(ctx context.Context, noreply string) (string, error) {
	local, host, _ := strings.Cut(l.address, "@")
	number, login, ok := strings.Cut(local, "+")
	id, valid := parseID(number)
	if !ok || !valid || !strings.EqualFold(host, noreply) || !validLogin.MatchString(login) {
		return "", nil
	}
	u, err := l.profile(ctx, login)
	if err != nil || u.GetID() != id {
		return "", err
	}
	return person(u), nil
}

// byCommit looks at the newest commits with the address. GitHub may take an
// address for its owner's name, and list what they wrote by another.
func (l lookup) byCommit(ctx context.Context) (string, error) {
	query := url.Values{"author": {l.address}, "per_page": {strconv.Itoa(fewCommits)}}
	var commits []*github.RepositoryCommit
	_, err := l.in.call(ctx, http.MethodGet, l.repo.path("commits?%s", query.Encode()), nil, &commits)
	if gone(err) || refused(err) == http.StatusConflict { // a conflict: nothing was ever committed
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, c := range commits {
		if strings.EqualFold(c.GetCommit().GetAuthor().GetEmail(), l.address) {
			if login := person(c.GetAuthor()); login != "" {
				return login, nil
			}
		}
	}
	return "", nil
}

// bySearch looks for the one account that shows the address on its profile.
func (l lookup) bySearch(ctx context.Context) (string, error) {
	query := url.Values{"q": {l.address + " in:email"}, "per_page": {"2"}}
	var found github.UsersSearchResult
	err := l.in.search(ctx, "search/users?"+query.Encode(), &found)
	if refused(err) == http.StatusUnprocessableEntity { // not an address that GitHub can look for
		return "", nil
	}
	if err != nil || found.GetTotal() != 1 || len(found.Users) != 1 {
		return "", err
	}
	u, err := l.profile(ctx, found.Users[0].GetLogin())
	if err != nil || !strings.EqualFold(u.GetEmail(), l.address) {
		return "", err
	}
	return person(u), nil
}

// profile returns an account as everybody sees it, an empty one for none.
func (l lookup) profile(ctx context.Context, login string) (*github.User, error) {
	var u github.User
	if !validLogin.MatchString(login) {
		return &u, nil
	}
	_, err := l.in.call(ctx, http.MethodGet, "users/"+url.PathEscape(login), nil, &u)
	if gone(err) {
		return &github.User{}, nil
	}
	return &u, err
}

// person returns the login of an account that is a person's.
func person(u *github.User) string {
	if u.GetType() != "User" || !validLogin.MatchString(u.GetLogin()) {
		return ""
	}
	return u.GetLogin()
}
