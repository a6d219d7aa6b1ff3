package bot

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/config"
	"ship/session"
)

var errAway = errors.New("away")

// forge is a code host: repositories with their branches, people's logins by
// address, and who may command where.
type forge struct {
	names    []string
	branches map[string]bool
	logins   map[string]string
	may      map[string]bool
	err      map[string]error
	asked    []string
}

func (f *forge) ask(what string) error {
	f.asked = append(f.asked, what)
	return f.err[what]
}

func (f *forge) Repository(_ context.Context, name string) (session.Repo, string, error) {
	repo := session.Repo{Platform: "github", Name: name, Key: "k:" + name}
	return repo, "main", f.ask("repository")
}

func (f *forge) Repositories(_ context.Context, n int) ([]string, error) {
	return f.names[:min(n, len(f.names))], f.ask("repositories")
}

func (f *forge) HasBranch(_ context.Context, _ session.Repo, branch string) (bool, error) {
	return f.branches[branch], f.ask("branch")
}

func (f *forge) May(_ context.Context, repo session.Repo, login string) (session.Person, bool, error) {
	return session.Person{}, f.may[login+" "+repo.Name], f.ask("may")
}

func (f *forge) Login(_ context.Context, _ session.Repo, email string) (string, error) {
	return f.logins[email], f.ask("login")
}

func TestRoute(t *testing.T) {
	t.Parallel()
	rules := RouteSettings{
		Labels:   map[string]string{"Backend": "acme/api", "server": "Acme/API", "Mobile App": "acme/app"},
		Projects: map[string]string{"Checkout": "acme/shop"},
		Teams:    map[string]string{"ENG": "acme/widgets", "Design": "acme/site"},
		Channels: map[string]string{"C1": "acme/chat"},
		Users:    map[string]string{"ada": "acme/ada"},
	}
	withDefault := rules
	withDefault.Default = "acme/default"
	for _, tt := range []struct {
		name       string
		rules      RouteSettings
		known      []string
		clues      Clues
		want       string
		candidates []string
	}{
		{"explicit first", rules, nil, Clues{Explicit: " o/r ", Labels: []string{"backend"}}, "o/r", nil},
		{"label", rules, nil, Clues{Labels: []string{"bug", " BACKEND "}, Project: []string{"Checkout"}}, "acme/api", nil},
		{"two labels, one repository", rules, nil, Clues{Labels: []string{"backend", "server"}}, "acme/api", nil},
		{"two labels, two repositories", withDefault, []string{"x/y"}, Clues{Labels: []string{"mobile app", "backend"}, Team: []string{"ENG"}}, "", []string{"acme/app", "acme/api"}},
		{"project", rules, nil, Clues{Labels: []string{"bug"}, Project: []string{"id", "checkout"}, Team: []string{"ENG"}}, "acme/shop", nil},
		{"team", rules, nil, Clues{Team: []string{"Engineering", "eng", "uuid"}, Channel: []string{"C1"}}, "acme/widgets", nil},
		{"channel", rules, nil, Clues{Channel: []string{"c1"}, User: []string{"ada"}}, "acme/chat", nil},
		{"channel before what is remembered", rules, nil, Clues{Channel: []string{"C1"}, Remembered: "acme/kept"}, "acme/chat", nil},
		{"remembered before the user", withDefault, nil, Clues{Channel: []string{"C2"}, Remembered: " acme/kept ", User: []string{"ada"}, Recent: []string{"acme/late"}}, "acme/kept", nil},
		{"user", withDefault, nil, Clues{User: []string{"Ada"}}, "acme/ada", nil},
		{"recent first", RouteSettings{}, []string{"o/r", "a/b"}, Clues{Recent: []string{"A/B", "c/d"}}, "", []string{"A/B", "c/d", "o/r"}},
		{"recent first among those of the rules", rules, nil, Clues{Labels: []string{"backend", "mobile app"}, Recent: []string{"x/y", "ACME/app"}}, "", []string{"acme/app", "acme/api"}},
		{"recent is no rule", withDefault, nil, Clues{Recent: []string{"acme/late"}}, "acme/default", nil},
		{"default", withDefault, []string{"x/y"}, Clues{Labels: []string{"bug", ""}}, "acme/default", nil},
		{"nothing matches", rules, []string{"acme/api", "o/r"}, Clues{}, "", []string{
			"acme/api", "o/r", "acme/app", "acme/shop", "acme/site", "acme/widgets", "acme/chat", "acme/ada",
		}},
		{"the only one", RouteSettings{}, []string{"o/r", "O/R"}, Clues{Team: []string{"ENG"}}, "o/r", nil},
		{"the only one of the rules", RouteSettings{Teams: map[string]string{"x": "o/r"}}, nil, Clues{}, "o/r", nil},
		{"none", RouteSettings{}, nil, Clues{}, "", nil},
		{"no empty name matches", RouteSettings{Labels: map[string]string{" ": "o/r"}}, []string{"a/b", "c/d"}, Clues{Labels: []string{"", " "}}, "", []string{"a/b", "c/d", "o/r"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			host := &forge{names: tt.known}
			g := Gate{Repositories: host, Rights: host, Routes: tt.rules}
			name, candidates, err := g.Route(t.Context(), tt.clues)
			if name != tt.want || !cmp.Equal(candidates, tt.candidates) || err != nil {
				t.Errorf("%q, %q, %v, want %q, %q", name, candidates, err, tt.want, tt.candidates)
			}
		})
	}
}

func TestRouteBounds(t *testing.T) {
	t.Parallel()
	host := &forge{names: strings.Fields(strings.Repeat("a/b c/d ", 20)), err: map[string]error{}}
	for i := range host.names {
		host.names[i] += strings.Repeat("x", i)
	}
	g := Gate{Repositories: host, Rights: host}
	if _, candidates, err := g.Route(t.Context(), Clues{}); len(candidates) != maxCandidates || err != nil {
		t.Errorf("%d candidates, %v", len(candidates), err)
	}
	host.err["repositories"] = errAway
	if name, candidates, err := g.Route(t.Context(), Clues{}); !errors.Is(err, errAway) || name != "" || candidates != nil {
		t.Errorf("%q, %q, %v", name, candidates, err)
	}
	if name, _, err := g.Route(t.Context(), Clues{Explicit: "o/r"}); name != "o/r" || err != nil {
		t.Errorf("asked for what was said: %q, %v", name, err)
	}
}

const adaID = "9a1f0c3e-0000-4000-8000-000000000001"

var ada = Asker{Platform: "linear", ID: adaID, Name: "Ada Lovelace", Email: "Ada@example.com"}

func TestPass(t *testing.T) {
	t.Parallel()
	repo := session.Repo{Platform: "github", Name: "acme/api", Key: "k:acme/api"}
	by := func(login string) session.Person {
		return session.Person{Login: login, Name: ada.Name}
	}
	people := func(key, login string) PeopleSettings {
		return PeopleSettings{People: map[string]string{"x@example.com": "mallory", key: login}, Unmatched: "refuse"}
	}
	open, closed := PeopleSettings{Unmatched: "allow"}, PeopleSettings{Unmatched: "refuse"}
	const mayNot = "Sorry, `ada` may not have me work in `acme/api`. Somebody who may can ask again, or a maintainer can give more access there."
	for _, tt := range []struct {
		name   string
		people PeopleSettings
		who    Asker
		branch string
		found  string // by the code host, for the address
		want   Passage
	}{
		{"by the code host", closed, ada, "", "ada", Passage{By: by("ada"), Repo: repo, Base: "main"}},
		{"by address", people(" ada@EXAMPLE.com", "ada"), ada, "", "other", Passage{By: by("ada"), Repo: repo, Base: "main"}},
		{"by account", people(strings.ToUpper(adaID), "ada"), ada, "", "other", Passage{By: by("ada"), Repo: repo, Base: "main"}},
		{"a branch", closed, ada, "next", "ada", Passage{By: by("ada"), Repo: repo, Base: "next"}},
		{"no such branch", closed, ada, "gone", "ada", Passage{By: by("ada"), Repo: repo, Refusal: "There is no branch `gone` in `acme/api`; name one that is there, or leave `branch=` out."}},
		{"no branch at all", closed, ada, "a..b", "ada", Passage{By: by("ada"), Repo: repo, Refusal: "There is no branch `a..b` in `acme/api`; name one that is there, or leave `branch=` out."}},
		{"nobody", closed, ada, "gone", "", Passage{By: by(adaID), Repo: repo, Stranger: true, Refusal: unmatched}},
		{"nobody by default", PeopleSettings{}, ada, "", "", Passage{By: by(adaID), Repo: repo, Stranger: true, Refusal: unmatched}},
		{"nobody, but all may", open, ada, "", "", Passage{By: session.Person{Login: "Ada Lovelace on Linear", Name: ada.Name, Account: adaID}, Repo: repo, Base: "main"}},
		{"all may, but not a login without rights", open, ada, "next", "eve", Passage{By: by("eve"), Repo: repo, Stranger: true, Refusal: strings.ReplaceAll(mayNot, "ada", "eve")}},
		{"without rights", people(adaID, "Ada2"), ada, "", "", Passage{By: by("Ada2"), Repo: repo, Stranger: true, Refusal: strings.ReplaceAll(mayNot, "ada", "Ada2")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			host := &forge{
				branches: map[string]bool{"next": true, "a..b": true},
				logins:   map[string]string{ada.Email: tt.found},
				may:      map[string]bool{"ada acme/api": true},
			}
			g := Gate{Repositories: host, Rights: host, People: tt.people}
			got, err := g.Pass(t.Context(), tt.who, "acme/api", tt.branch)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if strings.Contains(strings.ToLower(got.Refusal), "example.com") {
				t.Errorf("an address is shown: %s", got.Refusal)
			}
			if got.Stranger && cmp.Equal(host.asked[len(host.asked)-1], "branch") {
				t.Error("a stranger can ask for branches")
			}
		})
	}
}

func TestPassWithoutRepository(t *testing.T) {
	t.Parallel()
	host := &forge{}
	g := Gate{Repositories: host, Rights: host, People: PeopleSettings{People: map[string]string{"ada@example.com": "ada"}}}
	if p, err := g.Pass(t.Context(), ada, "", "next"); p.By.Login != "ada" || p.Refusal != "" || err != nil || len(host.asked) > 0 {
		t.Errorf("%+v, %v after %v", p, err, host.asked)
	}
}

func TestPassProblems(t *testing.T) {
	t.Parallel()
	lasting := &session.Problem{Say: "I cannot reach `acme/api`; install me there.", Err: errAway}
	for _, tt := range []struct {
		name, where string
		err         error
		refusal     string
	}{
		{"a repository that cannot be had", "repository", lasting, lasting.Say},
		{"one that may be had later", "repository", &session.Problem{Say: "GitHub is busy.", Err: errAway, Again: true}, ""},
		{"one that will be had later", "repository", &session.Problem{Say: "GitHub is away.", Err: errAway, Passing: true}, ""},
		{"a bare error", "repository", errAway, ""},
		{"login", "login", lasting, ""},
		{"rights", "may", errAway, ""},
		{"branch", "branch", errAway, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			host := &forge{
				logins: map[string]string{ada.Email: "ada"}, may: map[string]bool{"ada acme/api": true},
				err: map[string]error{tt.where: tt.err},
			}
			g := Gate{Repositories: host, Rights: host}
			p, err := g.Pass(t.Context(), ada, "acme/api", "next")
			if p.Refusal != tt.refusal || (tt.refusal == "") != errors.Is(err, errAway) || p.Stranger || p.Base != "" {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

// TestOnlyRealAddresses are searched for, and nobody gets in with one that looks
// like another's.
func TestOnlyRealAddresses(t *testing.T) {
	t.Parallel()
	host := &forge{logins: map[string]string{}}
	g := Gate{Repositories: host, Rights: host, People: PeopleSettings{
		People: map[string]string{"kim@example.com": "kim", "": "nobody", "not an address": "nobody"},
	}}
	for _, address := range []string{
		"", "\u212aim@example.com", "kim@example.com\u200b", "kim@example.com user:root", "kim@example", "@example.com", "a@b@example.com",
		"not an address", "kim@example.com\n", "kim@-example.com", strings.Repeat("k", 65) + "@example.com", "kim@" + strings.Repeat("e.", 130) + "com",
	} {
		host.asked = nil
		p, err := g.Pass(t.Context(), Asker{Platform: "linear", ID: adaID, Email: address}, "acme/api", "")
		if err != nil || !p.Stranger || !cmp.Equal(host.asked, []string{"repository"}) {
			t.Errorf("%q: %+v, %v after %v", address, p, err, host.asked)
		}
	}
	if p, err := g.Pass(t.Context(), Asker{}, "acme/api", ""); err != nil || !p.Stranger {
		t.Errorf("nobody at all: %+v, %v", p, err)
	}
}

func FuzzAsker(f *testing.F) {
	f.Add("Ada", "ada@example.com")
	f.Add("`@octocat`\n# x", "\u212aim@example.com")
	f.Add("\u202eevil", "a@b.c user:x")
	f.Fuzz(func(t *testing.T, name, address string) {
		who := Asker{Platform: "linear", ID: "1", Name: name, Email: address}
		if got := who.called(); ownerName.MatchString(got) || strings.ContainsAny(got, "`<>@[]\n\r") || len(got) > 80 {
			t.Errorf("called %q", got)
		}
		if validEmail(address) && (strings.ContainsAny(address, " \t\n\"<>:,;()\\") || strings.Count(address, "@") != 1 || !ascii(address)) {
			t.Errorf("%q is taken for an address", address)
		}
	})
}

func TestRouteSettingsValidate(t *testing.T) {
	t.Parallel()
	at := func(labels map[string]string) RouteSettings { return RouteSettings{Labels: labels} }
	for _, tt := range []struct {
		rules RouteSettings
		want  []string
	}{
		{RouteSettings{}, nil},
		{RouteSettings{Labels: map[string]string{"Mobile App": "acme/app"}, Default: "acme/api"}, nil},
		{at(map[string]string{"a": "api"}), []string{`labels.a: "api" is not the name of a repository; write it as OWNER/NAME`}},
		{at(map[string]string{"a": "https://github.com/acme/api"}), []string{"labels.a: "}},
		{at(map[string]string{"a": ""}), []string{`labels.a: "" is not`}},
		{at(map[string]string{" ": "acme/api"}), []string{"labels: has an entry without a name; name it, or leave it out"}},
		{at(map[string]string{"a": "acme/api", "A ": "acme/app"}), []string{`labels: has both "A " and "a", which are the same here; leave one out`}},
		{RouteSettings{Teams: map[string]string{"a": "x"}, Default: "y"}, []string{"teams.a: ", "default: "}},
	} {
		checkProblems(t, tt.rules.Validate(), tt.want)
	}
}

func TestPeopleSettingsValidate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key, login string
		want       []string
	}{
		{"ada@example.com", "ada", nil},
		{adaID, "ada_acme", nil},
		{"ada@example.com", "@ada", []string{`people.ada@example.com: "@ada" is not a login; write it as GitHub shows it, without the @`}},
		{"ada@example.com", "", []string{`"" is not a login`}},
		{"\u212aim@example.com", "kim", []string{"is neither an e-mail address nor an account's id"}},
	} {
		checkProblems(t, PeopleSettings{People: map[string]string{tt.key: tt.login}}.Validate(), tt.want)
	}
	twins := PeopleSettings{People: map[string]string{"ada@example.com": "ada", "ADA@example.com": "eve"}}
	checkProblems(t, twins.Validate(), []string{"people: has both"})
}

// TestGateSettings: both sections as they stand in ship.yaml and in variables.
func TestGateSettings(t *testing.T) {
	t.Parallel()
	type settings struct {
		Routes RouteSettings `yaml:"repositories"`
		Access struct {
			PeopleSettings `yaml:",inline"`
		} `yaml:"access"`
	}
	var s settings
	text := "repositories: {teams: {ENG: acme/widgets}}\naccess: {people: {ada@example.com: ada}}"
	err := config.Decode(config.Document{Text: []byte(text)}, []string{"SHIP_REPOSITORIES_LABELS=backend=acme/api,Mobile App=acme/app"}, &s)
	if err != nil || s.Access.Unmatched != "refuse" || s.Access.login(ada) != "ada" ||
		!cmp.Equal(s.Routes.follow(Clues{Labels: []string{"mobile app"}}), []string{"acme/app"}) {
		t.Errorf("%+v, %v", s, err)
	}
	for env, want := range map[string]string{
		"SHIP_REPOSITORIES_LABELS=backend=api":     "repositories.labels.backend: \"api\" is not the name of a repository",
		"SHIP_ACCESS_PEOPLE=ada@example.com=@ada":  "access.people.ada@example.com: \"@ada\" is not a login",
		"SHIP_ACCESS_UNMATCHED=maybe":              "use refuse or allow",
		"SHIP_ACCESS_PEOPLE_ADA_EXAMPLE_COM=ada":   "write all entries into SHIP_ACCESS_PEOPLE",
		"SHIP_REPOSITORIES_DEFAULT=acme/api/extra": "repositories.default: ",
	} {
		if err := config.Decode(config.Document{}, []string{env}, new(settings)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", env, err, want)
		}
	}
}

func checkProblems(t *testing.T, err error, want []string) {
	t.Helper()
	if err == nil {
		if len(want) > 0 {
			t.Errorf("accepted, want %q", want)
		}
		return
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%q, want %q", lines, want)
	}
	for i, line := range lines {
		if !strings.Contains(line, want[i]) {
			t.Errorf("%s, want %s", line, want[i])
		}
	}
}
