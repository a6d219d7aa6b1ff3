package bot

import (
	"context"

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
	// May tells whether somebody may command ship in a repository.
	May(ctx context.Context, repo session.Repo, login string) (bool, error)
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
	// Candidates are the repositories to choose from when it is unclear which
	// one is meant; Repo is empty then.
	Candidates []string
}

// Idiom is how people speak with ship on a platform.
type Idiom int

const (
	// Commenting: a command is a line of a comment that begins with /ship.
	Commenting Idiom = iota
	// Talking: what is said in the thread is for ship, and /ship may be left out.
	Talking
)

// Gate decides, for platforms that host no code, who may command and which
// repository is meant.
type Gate struct {
	Repositories Repositories
	Rights       Rights
	Routes       RouteSettings
	People       PeopleSettings
}

// RouteSettings is the section `repositories` of ship.yaml: where work goes that
// does not name its repository. What comes first here counts first.
type RouteSettings struct {
	Labels   map[string]string `yaml:"labels"`
	Projects map[string]string `yaml:"projects"`
	Teams    map[string]string `yaml:"teams"`
	Channels map[string]string `yaml:"channels"`
	Users    map[string]string `yaml:"users"`
	Default  string            `yaml:"default"`
}

// PeopleSettings say who is who: a part of the section `access` of ship.yaml.
type PeopleSettings struct {
	// People are logins on the code host by e-mail address or account elsewhere.
	People map[string]string `yaml:"people"`
	// Unmatched says what becomes of people whose login is not known.
	Unmatched string `yaml:"unmatched" default:"refuse" oneof:"refuse allow"`
}
