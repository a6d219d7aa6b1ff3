package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"ship/session"
)

// Repositories are those of the code host that ship may work on.
type Repositories interface {
	// Repository finds one by OWNER/NAME, with its default branch. An error that
	// says why it cannot be had is a *session.Problem.
	Repository(ctx context.Context, name string) (repo session.Repo, base string, err error)
	// Repositories lists the names of up to n of them, those that were worked on
	// last first.
	Repositories(ctx context.Context, n int) ([]string, error)
	// HasBranch tells whether a repository has a branch.
	HasBranch(ctx context.Context, repo session.Repo, branch string) (bool, error)
}

// Rights is what the code host knows of people.
type Rights interface {
	// May tells whether somebody may command ship in a repository, and who that
	// is there. Email is the one under which the code host credits them, which
	// gives no other away; it may be empty.
	May(ctx context.Context, repo session.Repo, login string) (who session.Person, may bool, err error)
	// Login returns who owns an e-mail address, as the code host verified it;
	// empty when it knows nobody by that, or does not tell.
	Login(ctx context.Context, repo session.Repo, email string) (string, error)
}

// Clues are what a request says, or where it was asked tells, of the
// repository that it is about. Names are as people write them.
type Clues struct {
	// Explicit is the option [repo=…], or the session's own repository.
	Explicit string
	Labels   []string
	// Project and Team by name, key or id.
	Project, Team []string
	Channel, User []string
	// Remembered is what somebody asked to be gone by at this place.
	Remembered string
	// Recent are those that the asker had ship work in, the newest first.
	Recent []string
}

// Asker is who asks on a platform that hosts no code.
type Asker struct {
	// Platform and ID name the account there.
	Platform, ID string
	Name, Email  string
}

// Passage is what Gate says of a request.
type Passage struct {
	// Refusal is the polite sentence that says no; Stranger: it is about the
	// person.
	Refusal  string
	Stranger bool
	// By is who asks, as the code host knows them where it does.
	By   session.Person
	Repo session.Repo
	// Base is the repository's default branch, or the one that was asked for.
	Base string
}

// Gate decides, for platforms that host no code, who may command and which
// repository is meant. It remembers nothing: the code host does.
type Gate struct {
	Repositories Repositories
	Rights       Rights
	Routes       RouteSettings
	People       PeopleSettings
}

// Pass says whether somebody may command ship in a repository, and on which
// branch the work begins: the named one, or the default for an empty name. It
// only reads. Without a repository it just says who asks, as far as the
// settings tell. What will not get better by itself is a refusal; everything
// else that hinders is an error.
func (g *Gate) Pass(ctx context.Context, who Asker, repo, branch string) (Passage, error) {
	if repo == "" {
		return Passage{By: who.person(g.People.login(who))}, nil
	}
	at, base, err := g.Repositories.Repository(ctx, repo)
	if problem := lasting(err); problem != nil {
		return Passage{By: who.stranger(), Refusal: problem.Say}, nil
	}
	if err != nil {
		return Passage{}, fmt.Errorf("look up the repository: %w", err)
	}
	p, err := g.identify(ctx, who, at)
	if err != nil || p.Refusal != "" {
		return p, err
	}
	if branch == "" {
		p.Base = base
		return p, nil
	}
	return g.branch(ctx, p, branch)
}

// lasting is the problem that an error is, unless it may pass.
func lasting(err error) *session.Problem {
	var p *session.Problem
	if errors.As(err, &p) && !p.Again && !p.Passing && p.Say != "" {
		return p
	}
	return nil
}

// identify finds the login of who asks, and holds it to its rights. Those who
// have no right get to know nothing else of the repository.
func (g *Gate) identify(ctx context.Context, who Asker, repo session.Repo) (Passage, error) {
	login, err := g.login(ctx, who, repo)
	if err != nil {
		return Passage{}, err
	}
	p := Passage{By: who.person(login), Repo: repo}
	switch {
	case login != "":
		known, may, err := g.Rights.May(ctx, repo, login)
		if err != nil {
			return Passage{}, fmt.Errorf("ask for the rights of a person: %w", err)
		}
		p.By = session.Person{Login: cmp.Or(known.Login, login), Name: cmp.Or(known.Name, who.Name), Email: known.Email}
		if !may {
			p.Stranger, p.Refusal = true, fmt.Sprintf("Sorry, %s may not have me work in %s. Somebody who may can ask again, or a maintainer can give more access there.", code(clip(login, 60)), code(clip(repo.Name, 141)))
		}
	case g.People.Unmatched != allow:
		p.By, p.Stranger, p.Refusal = who.stranger(), true, unmatched
	}
	return p, nil
}

// unmatched is what somebody is told whose login is not known. It is read by
// others too, so it names no address.
const unmatched = "Sorry, I may not act for you yet, because I do not know your login on GitHub: whoever runs ship can add your e-mail address under `access.people`, then ask me again."

// login finds who asks on the code host: the operator's word comes first. It is
// empty for nobody.
func (g *Gate) login(ctx context.Context, who Asker, repo session.Repo) (string, error) {
	if login := g.People.login(who); login != "" || !validEmail(who.Email) {
		return login, nil
	}
	login, err := g.Rights.Login(ctx, repo, who.Email)
	if err != nil {
		return "", fmt.Errorf("match a person with a login: %w", err)
	}
	return login, nil
}

// branch holds a passage to the branch that was asked for.
func (g *Gate) branch(ctx context.Context, p Passage, branch string) (Passage, error) {
	there := validBranch(branch)
	if there {
		var err error
		if there, err = g.Repositories.HasBranch(ctx, p.Repo, branch); err != nil {
			return Passage{}, fmt.Errorf("look up the branch: %w", err)
		}
	}
	if !there {
		p.Refusal = fmt.Sprintf("There is no branch %s in %s; name one that is there, or leave `branch=` out.", code(clip(branch, 100)), code(clip(p.Repo.Name, 141)))
		return p, nil
	}
	p.Base = branch
	return p, nil
}

// Lead finds the repository of a request with route, where that was said by
// somebody else only if they may lead the work there. Otherwise the question is
// asked again. May is asked for no other request.
func Lead(r session.Request, may func() (bool, error), route func(session.Request) (string, session.Admission, error)) (name string, a session.Admission, err error) {
	if r.Led == (session.Person{}) {
		return route(r)
	}
	ok, err := may()
	if err != nil {
		return "", session.Admission{}, err
	}
	if ok {
		return route(r)
	}
	r.Repo = ""
	name, a, err = route(r)
	if a.Question != nil {
		again := NotLed(*a.Question)
		a.Question = &again
	}
	return name, a, err
}

// NotLed is a question again, after it was answered for somebody else by one who
// has no say in that.
func NotLed(q session.Question) session.Question {
	q.Text = notLed + " " + q.Text
	return q
}

const notLed = "Whoever chooses for somebody else needs the right to have me work there as well, so that choice does not count."
