package linear

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ship/bot"
	"ship/bot/bottest"
	"ship/integrations/linear/lineartest"
	"ship/session"
)

// TestRouting: which repository is meant, by what an issue tells.
func TestRouting(t *testing.T) {
	t.Parallel()
	rules := bot.RouteSettings{
		Labels:   map[string]string{"backend": "acme/api", "repo/site": "acme/widgets", "Stack": "acme/api"},
		Projects: map[string]string{"Quality": "acme/widgets"},
		Teams:    map[string]string{"ENG": "acme/api"},
	}
	for name, test := range map[string]struct {
		issue  lineartest.Issue
		asked  string
		routes bot.RouteSettings
		want   string
	}{
		"asked for":             {asked: "acme/widgets", routes: rules, want: "acme/widgets"},
		"label":                 {issue: lineartest.Issue{Labels: []lineartest.Label{{Name: "Backend"}}, Project: "Quality"}, routes: rules, want: "acme/api"},
		"label in a group":      {issue: lineartest.Issue{Labels: []lineartest.Label{{Group: "repo", Name: "site"}}}, routes: rules, want: "acme/widgets"},
		"group of a label":      {issue: lineartest.Issue{Labels: []lineartest.Label{{Group: "stack", Name: "go"}}}, routes: rules, want: "acme/api"},
		"project":               {issue: lineartest.Issue{Project: "Quality"}, routes: rules, want: "acme/widgets"},
		"team":                  {routes: rules, want: "acme/api"},
		"team by name":          {routes: bot.RouteSettings{Teams: map[string]string{"engineering": "acme/api"}}, want: "acme/api"},
		"default":               {routes: bot.RouteSettings{Default: "acme/widgets"}, want: "acme/widgets"},
		"nothing":               {want: ""},
		"labels that disagree":  {issue: lineartest.Issue{Labels: []lineartest.Label{{Name: "backend"}, {Group: "repo", Name: "site"}}}, routes: rules, want: ""},
		"a rule that is closed": {routes: bot.RouteSettings{Default: "acme/secret"}, want: "I have no access to that repository."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.gate.Routes = test.routes
			test.issue.Team, test.issue.Title = "ENG", "Something"
			_, hook := d.Delegate(d.CreateIssue(test.issue), "ada")
			r := d.request(hook)
			r.Repo = test.asked
			a := d.admit(r)
			if got := a.Repo.Name + a.Refusal; got != test.want || (a.Question != nil) != (test.want == "") {
				t.Errorf("%q, question %+v; want %q", got, a.Question, test.want)
			}
		})
	}
}

// TestQuestion: what Linear takes to be meant comes first, and nothing is named
// in which the person may not command, whatever its place.
func TestQuestion(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for n := range 12 {
		name := fmt.Sprintf("acme/part%d", n)
		d.host.Repos = append(d.host.Repos, name)
		d.host.Allowed["ada-gh "+name] = true
	}
	d.host.Repos = append(d.host.Repos, "acme/secret", "acme/vault")
	d.SetConfidence("acme/secret", 1)
	d.SetConfidence("acme/part7", 0.9)
	d.SetConfidence("acme/vault", 0.8)
	d.SetConfidence("acme/api", 0.4)
	_, hook := d.Delegate(d.issue, "ada")
	r := d.request(hook)
	a := d.admit(r)
	if a.Question == nil || !a.Talks || a.Repo.Key != "" {
		t.Fatalf("%+v", a)
	}
	var offered []string
	for _, c := range a.Question.Choices {
		if c.Label != c.Value {
			t.Errorf("%q stands for %q", c.Label, c.Value)
		}
		offered = append(offered, c.Value)
	}
	if len(offered) != 10 || !slices.Equal(offered[:3], []string{"acme/part7", "acme/api", "acme/widgets"}) || slices.Contains(offered, "acme/secret") || slices.Contains(offered, "acme/vault") {
		t.Errorf("offered: %v", offered)
	}
	if n := d.calls(); n > 3 || d.host.Lookups() > 10+2 {
		t.Errorf("%d calls, %d of the code host", n, d.host.Lookups())
	}
	r.Repo, r.Ref = "acme/part7", "answer/"
	if a := d.admit(r); a.Repo.Name != "acme/part7" || !strings.Contains(a.Context, "Fails one run") {
		t.Errorf("after the answer: %+v", a)
	}
}

// TestQuestionUnranked: the question is asked without Linear's opinion, too.
func TestQuestionUnranked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.Inject(lineartest.Fault{On: "SuggestRepositories", Status: 500, Times: -1})
	_, hook := d.Delegate(d.issue, "ada")
	a := d.admit(d.request(hook))
	if a.Question == nil || len(a.Question.Choices) != 2 || !strings.Contains(d.log.String(), "did not rank") {
		t.Errorf("%+v\n%s", a, d.log.String())
	}
}

// TestOneLeft: the only repository in which somebody may command is taken.
func TestOneLeft(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, hook := d.Delegate(d.issue, "bob")
	if a := d.admit(d.request(hook)); a.Repo.Name != "acme/api" || a.By.Login != "bob-gh" {
		t.Errorf("%+v", a)
	}
}

// TestStrangersAreOfferedNothing: who may command nowhere reads no names.
func TestStrangersAreOfferedNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*bottest.Host){
		"no login":      func(*bottest.Host) {},
		"no right":      func(h *bottest.Host) { h.Logins["eve@acme.example"] = "eve-gh" },
		"nothing there": func(h *bottest.Host) { h.Hidden = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			change(d.host)
			_, hook := d.Delegate(d.issue, "eve")
			a := d.admit(d.request(hook))
			if a.Refusal == "" || a.Stranger == d.host.Hidden || a.Question != nil || strings.Contains(a.Refusal, "acme/") {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestKnownBeforeTheFirstTurn: a repository that was chosen for a setting is
// not asked for again.
func TestKnownBeforeTheFirstTurn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, hook := d.Delegate(d.issue, "ada")
	r := d.request(hook)
	d.state.Repo = session.Repo{Platform: "github", Name: "acme/api", Key: "key of acme/api"}
	if a := d.admit(r); a.Repo.Name != "acme/api" {
		t.Errorf("%+v", a)
	}
	r.Repo = "acme/widgets"
	if a := d.admit(r); a.Repo.Name != "acme/widgets" {
		t.Errorf("another: %+v", a)
	}
}

func TestNowhere(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.host.Repos = nil
	_, hook := d.Delegate(d.issue, "ada")
	if a := d.admit(d.request(hook)); !strings.Contains(a.Refusal, "none that I may work in") || a.Question != nil {
		t.Errorf("%+v", a)
	}
}

// TestSettled: a session that has begun stays where it is.
func TestSettled(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.gate.Routes.Default = "acme/widgets"
	id, hook := d.Delegate(d.issue, "ada")
	r := d.request(hook)
	r.Branch = "release"
	a := d.admit(r)
	if a.Base != "release" {
		t.Fatalf("%+v", a)
	}
	d.learn(r, a)
	d.gate.Routes.Default = "acme/api"
	if a := d.admit(d.request(d.Prompt(id, "ada", "go on"))); a.Repo.Name != "acme/widgets" || a.Base != "release" {
		t.Errorf("%+v", a)
	}
	if a := d.admit(d.request(d.Prompt(id, "ada", "[repo=ACME/widgets] go on"))); a.Repo.Name != "acme/widgets" {
		t.Errorf("the same: %+v", a)
	}
	if a := d.admit(d.request(d.Prompt(id, "ada", "[repo=acme/api] go on"))); !strings.Contains(a.Refusal, "`acme/widgets`") || a.Stranger {
		t.Errorf("another: %+v", a)
	}
	d.state.PR = &session.PullRequest{Number: 7, URL: "https://github.com/acme/widgets/pull/7"}
	if a := d.admit(d.request(d.Prompt(id, "ada", "[branch=main] go on"))); !strings.Contains(a.Refusal, "#7") {
		t.Errorf("another branch: %+v", a)
	}
	before := d.calls()
	if a := d.admit(d.request(d.Prompt(id, "ada", "budget 7"))); a.Repo.Name != "acme/widgets" || d.calls() != before {
		t.Errorf("%d calls for %+v", d.calls()-before, a)
	}
}
