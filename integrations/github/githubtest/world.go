package githubtest

import (
	"fmt"
	"strings"
	"time"
)

// user is a person, an organisation or the app's bot.
type user struct {
	id    int64
	login string
	kind  string // User, Bot or Organization
	email string // shown on the profile
}

// installation of the app on one account.
type installation struct {
	id          int64
	owner       *user
	permissions map[string]string
	suspended   bool
}

// suspendedAt is some moment, or none.
func (in *installation) suspendedAt() (at time.Time) {
	if in.suspended {
		at = clock()
	}
	return at
}

type repository struct {
	id      int64
	owner   *user
	name    string
	private bool
	base    string // default branch
	parent  *repository
	// installed: the app may see it.
	installed bool
	rights    map[string]string // login → admin, write, read, none
	issues    map[int]*issue
	checks    []*check
	numbers   int
	created   time.Time
	pushed    time.Time
	archived  bool
}

func (r *repository) full() string { return r.owner.login + "/" + r.name }

// issue is an issue or, with pull set, a pull request.
type issue struct {
	id      int64
	number  int
	author  *user
	title   string
	body    string
	closed  time.Time
	labels  []string
	created time.Time
	updated time.Time
	// comments of the conversation, and of the diff.
	comments, inline []*comment
	reviews          []*review
	reactions        []reaction
	pull             *pull
}

type pull struct {
	id       int64
	draft    bool
	merged   bool
	headRepo *repository
	head     string
	base     string
	// headSHA and baseSHA are kept for when a branch is gone.
	headSHA, baseSHA string
}

type comment struct {
	id      int64
	author  *user
	viaApp  bool
	body    string
	created time.Time
	updated time.Time
	// of the diff only
	inReplyTo int64
	reviewID  int64
	path      string
	line      int
	hunk      string
	commit    string
	reactions []reaction
}

type review struct {
	id        int64
	author    *user
	body      string
	state     string
	commit    string
	created   time.Time
	reactions []reaction
}

type reaction struct {
	id      int64
	by      *user
	content string
}

type check struct {
	id         int64
	sha        string
	name       string
	externalID string
	detailsURL string
	status     string
	conclusion string
	title      string
	summary    string
	actions    []Action
	started    time.Time
	completed  time.Time
}

// nodeID is the GraphQL id of anything.
func nodeID(kind string, id int64) string { return fmt.Sprintf("%s_%d", kind, id) }

// person returns the account of a login, made on first sight. The caller
// holds mu.
func (s *Server) person(login string) *user {
	key := strings.ToLower(login)
	if u := s.users[key]; u != nil {
		return u
	}
	u := &user{id: s.newID(), login: login, kind: "User"}
	if strings.HasSuffix(login, "[bot]") {
		u.kind = "Bot"
	}
	s.users[key] = u
	return u
}

// repo returns a repository by its OWNER/NAME. The caller holds mu.
func (s *Server) repo(name string) *repository { return s.repos[strings.ToLower(name)] }

// must returns a repository that the test made. The caller holds mu.
func (s *Server) must(name string) *repository {
	r := s.repo(name)
	if r == nil {
		panic("githubtest: there is no repository " + name)
	}
	return r
}

// mustIssue returns an issue or pull request that the test made. The caller
// holds mu.
func (s *Server) mustIssue(repo string, number int) (*repository, *issue) {
	r := s.must(repo)
	i := r.issues[number]
	if i == nil {
		panic(fmt.Sprintf("githubtest: there is no %s#%d", repo, number))
	}
	return r, i
}

// SetPermission says what somebody may do in a repository: admin, write, read
// or none. Who was never mentioned may read.
func (s *Server) SetPermission(repo, login, level string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.must(repo).rights[strings.ToLower(login)] = level
	s.person(login)
}

// SetAppPermission changes what the app's installation on an account may do;
// empty takes the permission away. Tokens that live are not changed.
func (s *Server) SetAppPermission(owner, permission, level string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.installed(owner)
	if level == "" {
		delete(in.permissions, permission)
		return
	}
	in.permissions[permission] = level
}

// Uninstall takes a repository away from the app; Install gives it back.
func (s *Server) Uninstall(repo string) { s.install(repo, false) }

// Install gives a repository to the app. A new one has it.
func (s *Server) Install(repo string) { s.install(repo, true) }

func (s *Server) install(repo string, installed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.must(repo).installed = installed
}

// installed returns the app's installation on an account. The caller holds mu.
func (s *Server) installed(owner string) *installation {
	key := strings.ToLower(owner)
	if in := s.owners[key]; in != nil {
		return in
	}
	in := &installation{id: s.newID(), owner: s.person(owner), permissions: map[string]string{}}
	for name, level := range s.opts.Permissions {
		in.permissions[name] = level
	}
	s.owners[key] = in
	return in
}

// InstallationID returns the id of the app's installation on an account.
func (s *Server) InstallationID(owner string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.installed(owner).id
}

// RepositoryID returns the id of a repository.
func (s *Server) RepositoryID(repo string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.must(repo).id
}

// CreateIssue opens an issue and returns its number.
func (s *Server) CreateIssue(repo, login, title, body string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newIssue(s.must(repo), s.person(login), title, body).number
}

func (s *Server) newIssue(r *repository, by *user, title, body string) *issue {
	r.numbers++
	now := clock()
	i := &issue{id: s.newID(), number: r.numbers, author: by, title: title, body: body, created: now, updated: now}
	r.issues[i.number] = i
	return i
}

// clock has the resolution of GitHub's timestamps.
func clock() time.Time { return time.Now().UTC().Truncate(time.Second) }

// Pull describes a pull request to be made by hand.
type Pull struct {
	User, Title, Body string
	// Head and Base are branches; empty Base: the default branch.
	Head, Base string
	// HeadRepo is a fork, OWNER/NAME; empty: the repository itself.
	HeadRepo string
	Draft    bool
}

// CreatePull opens a pull request and returns its number.
func (s *Server) CreatePull(repo string, p Pull) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.must(repo)
	head := r
	if p.HeadRepo != "" {
		head = s.must(p.HeadRepo)
	}
	if p.Base == "" {
		p.Base = r.base
	}
	i := s.newIssue(r, s.person(p.User), p.Title, p.Body)
	i.pull = &pull{id: s.newID(), draft: p.Draft, headRepo: head, head: p.Head, base: p.Base}
	s.refresh(r, i.pull)
	return i.number
}

// EditPull changes the description of a pull request as a person would in the
// browser.
func (s *Server) EditPull(repo string, number int, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, i := s.mustIssue(repo, number)
	i.body, i.updated = body, clock()
}

// ClosePull closes a pull request, merged or not. Its branches stay.
func (s *Server) ClosePull(repo string, number int, merged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, i := s.mustIssue(repo, number)
	i.closed, i.updated, i.pull.merged = clock(), clock(), merged
}

// Comment writes a comment as somebody, without a webhook, and returns its id.
func (s *Server) Comment(repo string, number int, login, body string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, i := s.mustIssue(repo, number)
	return s.addComment(i, s.person(login), body).id
}

func (s *Server) addComment(i *issue, by *user, body string) *comment {
	now := clock()
	c := &comment{id: s.newID(), author: by, body: body, created: now, updated: now, viaApp: by.login == s.BotLogin()}
	i.comments = append(i.comments, c)
	i.updated = now
	return c
}

// EditComment changes a comment as a person would in the browser.
func (s *Server) EditComment(repo string, id int64, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, c := s.must(repo).findComment(id, false); c != nil {
		c.body, c.updated = body, clock()
	}
}

// DeleteComment removes a comment as a person would in the browser.
func (s *Server) DeleteComment(repo string, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.must(repo).removeComment(id, false)
}
