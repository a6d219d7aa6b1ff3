package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ship/config"
)

// maxCandidates is how many of the code host's repositories are offered to
// choose from.
const maxCandidates = 20

// RouteSettings is the section `repositories` of ship.yaml: where work goes that
// does not name its repository. What comes first here counts first.
type RouteSettings struct {
	Labels   map[string]string `yaml:"labels" doc:"Repository as OWNER/NAME by the label of an issue. Labels are compared without regard to case, and count before all that follows."`
	Projects map[string]string `yaml:"projects" doc:"Repository by project, as its name or its id."`
	Teams    map[string]string `yaml:"teams" doc:"Repository by team, as its name, its key such as ENG, or its id."`
	Channels map[string]string `yaml:"channels" doc:"Repository by the channel of a chat, as its id or its name, such as #backend."`
	Users    map[string]string `yaml:"users" doc:"Repository by the person who asks, as the account's id, the e-mail address or the handle."`
	Default  string            `yaml:"default" doc:"Repository for all that nothing else says it for. Empty: ship asks, unless there is only one to choose."`
}

// Route finds the repository that is meant: the explicit one, else that of a
// label, of the project, of the team, of the channel, the one remembered, that of
// the user, else the default. Where that leaves several, name is empty and
// candidates are what to choose from, those first that were worked in lately;
// where it leaves none, both are empty.
func (g *Gate) Route(ctx context.Context, c Clues) (name string, candidates []string, err error) {
	if name := strings.TrimSpace(c.Explicit); name != "" {
		return name, nil, nil
	}
	candidates = g.Routes.follow(c)
	if len(candidates) == 0 {
		if candidates, err = g.known(ctx); err != nil {
			return "", nil, err
		}
		candidates = distinct(slices.Concat(c.Recent, candidates))
	}
	if candidates = first(c.Recent, candidates); len(candidates) == 1 {
		return candidates[0], nil, nil
	}
	return "", candidates, nil
}

// follow returns where the first of what counts leads that says anything of the
// clues. Nowhere: nothing does.
func (s RouteSettings) follow(c Clues) []string {
	for _, found := range [][]string{
		look(s.Labels, c.Labels), look(s.Projects, c.Project), look(s.Teams, c.Team), look(s.Channels, c.Channel),
		distinct([]string{c.Remembered}), look(s.Users, c.User), distinct([]string{s.Default}),
	} {
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// routeTable are the rules of one kind.
type routeTable struct {
	key   string
	rules map[string]string
}

// tables are all kinds of rules.
func (s RouteSettings) tables() []routeTable {
	return []routeTable{
		{"labels", s.Labels}, {"projects", s.Projects}, {"teams", s.Teams}, {"channels", s.Channels}, {"users", s.Users},
	}
}

// look finds what a table says of clues, in the order of these.
func look(table map[string]string, clues []string) []string {
	var found []string
	keys := slices.Sorted(maps.Keys(table))
	for _, clue := range clues {
		for _, key := range keys {
			if clue = strings.TrimSpace(clue); clue != "" && strings.EqualFold(strings.TrimSpace(key), clue) {
				found = append(found, table[key])
			}
		}
	}
	return distinct(found)
}

// known are the repositories that ship knows of: the code host's, and those
// that only the rules name.
func (g *Gate) known(ctx context.Context) ([]string, error) {
	names, err := g.Repositories.Repositories(ctx, maxCandidates)
	if err != nil {
		return nil, fmt.Errorf("list the repositories to choose from: %w", err)
	}
	for _, table := range g.Routes.tables() {
		for _, key := range slices.Sorted(maps.Keys(table.rules)) {
			names = append(names, table.rules[key])
		}
	}
	return distinct(names), nil
}

// first puts those of some names first that are among others, in their order.
func first(ahead, names []string) []string {
	rank := func(name string) int {
		i := slices.IndexFunc(ahead, func(a string) bool { return strings.EqualFold(a, name) })
		if i < 0 {
			return len(ahead)
		}
		return i
	}
	return slices.SortedStableFunc(slices.Values(names), func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
}

// distinct leaves empty names and repetitions out. Case makes no difference to
// the name of a repository.
func distinct(names []string) []string {
	var out []string
	for _, name := range names {
		name = strings.TrimSpace(name)
		if name != "" && !slices.ContainsFunc(out, func(o string) bool { return strings.EqualFold(o, name) }) {
			out = append(out, name)
		}
	}
	return out
}

// Validate refuses rules that lead nowhere, or to two places.
func (s RouteSettings) Validate() error {
	var errs []error
	for _, t := range s.tables() {
		errs = append(errs, validateTable(t.key, t.rules, validateRepo))
	}
	if s.Default != "" {
		errs = append(errs, validateRepo("default", s.Default))
	}
	return errors.Join(errs...)
}

func validateRepo(key, name string) error {
	if validRepo(name) {
		return nil
	}
	return config.Invalid(key, fmt.Sprintf("%q is not the name of a repository", clip(name, 60)), "write it as OWNER/NAME")
}

// validateTable refuses empty names and names that differ in nothing that
// counts; check looks at what stands behind a name.
func validateTable(table string, rules map[string]string, check func(key, value string) error) error {
	var errs []error
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		plain := strings.ToLower(strings.TrimSpace(name))
		twin, twice := seen[plain]
		switch {
		case plain == "":
			errs = append(errs, config.Invalid(table, "has an entry without a name", "name it, or leave it out"))
		case twice:
			errs = append(errs, config.Invalid(table, fmt.Sprintf("has both %q and %q, which are the same here", twin, name), "leave one out"))
		default:
			seen[plain] = name
			errs = append(errs, check(table+"."+name, rules[name]))
		}
	}
	return errors.Join(errs...)
}
