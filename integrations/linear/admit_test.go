package linear

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/bot"
	"ship/config"
	ql "ship/graphql/linear"
	"ship/integrations/linear/lineartest"
	"ship/session"
)

// host is a code host: what it has, and what people may.
type host struct {
	mu      sync.Mutex
	repos   []string
	logins  map[string]string // by e-mail
	may     map[string]bool   // by "login repository"
	broken  error
	lookups int
}

func (h *host) Repository(_ context.Context, name string) (session.Repo, string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lookups++
	if h.broken != nil {
		return session.Repo{}, "", h.broken
	}
	for _, r := range h.repos {
		if strings.EqualFold(r, name) {
			return session.Repo{Platform: "github", Name: r, Key: "key of " + r}, "main", nil
		}
	}
	return session.Repo{}, "", &session.Problem{Say: "I have no access to that repository.", Err: errors.New("not found")}
}

func (h *host) Repositories(context.Context, int) ([]string, error) { return h.repos, h.broken }

func (h *host) HasBranch(_ context.Context, _ session.Repo, branch string) (bool, error) {
	return branch == "main" || branch == "release", nil
}

func (h *host) May(_ context.Context, repo session.Repo, login string) (bool, error) {
	return h.may[login+" "+repo.Name], nil
}

func (h *host) Login(_ context.Context, _ session.Repo, email string) (string, error) {
	return h.logins[email], nil
}

// desk is a workspace with one issue, and ship's side of it.
type desk struct {
	*lineartest.Server
	t        *testing.T
	host     *host
	gate     *bot.Gate
	receiver *Receiver
	linear   *Performer
	skew     time.Duration
	issue    string
	state    session.State
	log      strings.Builder
}

// newDesk makes one in which ada may command in both repositories of acme's, and
// is known by her address.
func newDesk(t *testing.T) *desk {
	t.Helper()
	s, err := lineartest.New(lineartest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, v := range s.Violations() {
			t.Error(v)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &desk{Server: s, t: t, host: &host{
		repos:  []string{"acme/widgets", "acme/api"},
		logins: map[string]string{"ada@acme.example": "ada-gh", "bob@acme.example": "bob-gh"},
		may:    map[string]bool{"ada-gh acme/widgets": true, "ada-gh acme/api": true, "bob-gh acme/api": true},
	}}
	d.gate = &bot.Gate{Repositories: d.host, Rights: d.host, People: bot.PeopleSettings{Unmatched: "refuse"}}
	vault := &MemoryVault{}
	made, err := New(Config{
		Settings: Settings{
			ClientID: s.ClientID(), ClientSecret: config.NewSecret(s.ClientSecret()), WebhookSecret: config.NewSecrets("hook"),
			APIURL: s.APIURL(), TokenURL: s.TokenURL(),
		},
		Gate: d.gate, Vault: vault, Locker: vault, Quota: &MemoryQuota{},
		Transport: &http.Transport{DisableKeepAlives: true}, Logger: slog.New(slog.NewTextHandler(&d.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	d.linear, d.receiver = made.Performer, made.Receiver
	d.receiver.now = func() time.Time { return time.Now().Add(d.skew) }
	s.CreateTeam("ENG", "Engineering")
	d.issue = s.CreateIssue(lineartest.Issue{Team: "ENG", Title: "Login test is flaky", Description: "Fails one run in five.", Creator: "ada"})
	return d
}

// wait lets time pass, in Linear and here.
func (d *desk) wait(by time.Duration) {
	d.Advance(by)
	d.skew += by
}

// request is what ship makes of a webhook.
func (d *desk) request(hook lineartest.Delivery) session.Request {
	d.t.Helper()
	got, err := d.receiver.Receive(d.t.Context(), hook.Sign("hook").Header, hook.Body)
	if err != nil || len(got.Deliveries) != 1 {
		d.t.Fatalf("%+v: %v", got, err)
	}
	return *got.Deliveries[0].Event.Request
}

func (d *desk) perform(e session.Effect) (session.Performed, error) {
	e.ID = derived("effect", fmt.Sprint(e.Kind, e.Request, d.state.Turns))
	return d.linear.Perform(d.t.Context(), session.Job{Effect: e, State: d.state})
}

func (d *desk) try(r session.Request) (session.Admission, error) {
	p, err := d.perform(session.Effect{Kind: session.Admit, By: Platform, Thread: &r.Thread, Request: &r})
	if err != nil {
		return session.Admission{}, err
	}
	return *p.Admission, nil
}

func (d *desk) admit(r session.Request) session.Admission {
	d.t.Helper()
	a, err := d.try(r)
	if err != nil {
		d.t.Fatal(err)
	}
	return a
}

// learn has the session take over what an admission says, with a turn begun.
func (d *desk) learn(r session.Request, a session.Admission) {
	d.state.Threads = []session.Voice{{Thread: r.Thread, Talks: true, Heard: r.At}}
	d.state.Repo, d.state.Base, d.state.Title = a.Repo, a.Base, a.Title
	d.state.Turns++
	r.By, r.Quote = a.By, a.Quote
	d.state.Turn = &session.Turn{N: d.state.Turns, Stage: session.Running, Requests: []session.Request{r}}
}

// calls counts what Linear was asked, but for tokens.
func (d *desk) calls() int {
	n := 0
	for _, name := range []string{
		"ReadViewer", "ReadUsers", "ReadIssue", "ReadStartedStates", "ReadIssueComments", "SuggestRepositories", "ReadActivity",
		"CreateActivity", "Ask", "MoveIssue", "DelegateIssue",
	} {
		n += d.Calls(name)
	}
	return n
}

func TestAdmitCreated(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.gate.Routes.Teams = map[string]string{"ENG": "acme/widgets"}
	_, hook := d.Delegate(d.issue, "ada")
	a := d.admit(d.request(hook))
	if !strings.HasPrefix(a.Context, "What Linear tells of this:\n> <issue identifier=") || !strings.Contains(a.Context, "Fails one run in five.") {
		t.Errorf("context:\n%s", a.Context)
	}
	if a.Origin == nil || !strings.HasPrefix(a.Origin.URL, "https://linear.app/") {
		t.Errorf("origin: %+v", a.Origin)
	}
	want := session.Admission{
		Talks: true, By: session.Person{Login: "ada-gh", Name: "Ada", Email: "ada@acme.example"},
		Repo: session.Repo{Platform: "github", Name: "acme/widgets", Key: "key of acme/widgets"}, Base: "main",
		Title: "ENG-1: Login test is flaky", Context: a.Context, Origin: &session.Origin{Name: "ENG-1", URL: a.Origin.URL},
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
	if n := d.calls(); n != 1 {
		t.Errorf("%d calls", n)
	}
}

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

// TestQuestion: what Linear takes to be meant comes first, but for what is known
// to be closed to the person. The code host is not asked about each.
func TestQuestion(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for n := range 12 {
		name := fmt.Sprintf("acme/part%d", n)
		d.host.repos = append(d.host.repos, name)
		d.host.may["ada-gh "+name] = true
	}
	d.host.repos = append(d.host.repos, "acme/secret")
	d.SetConfidence("acme/secret", 1)
	d.SetConfidence("acme/part7", 0.9)
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
	if len(offered) != maxChoices || !slices.Equal(offered[:3], []string{"acme/part7", "acme/api", "acme/widgets"}) || slices.Contains(offered, "acme/secret") {
		t.Errorf("offered: %v", offered)
	}
	if n := d.calls(); n > 3 || d.host.lookups > 2 {
		t.Errorf("%d calls, %d of the code host", n, d.host.lookups)
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
	d.Inject(lineartest.Fault{Operation: "SuggestRepositories", Status: 500, Times: -1})
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
	d := newDesk(t)
	_, hook := d.Delegate(d.issue, "eve")
	a := d.admit(d.request(hook))
	if !a.Stranger || a.Question != nil || strings.Contains(a.Refusal, "acme/") {
		t.Errorf("%+v", a)
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
	d.host.repos = nil
	_, hook := d.Delegate(d.issue, "ada")
	if a := d.admit(d.request(hook)); a.Refusal != nowhere || a.Question != nil {
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

// TestReadAlong: what was said beside the conversation since the last request
// comes with the next, once, and what was said before is the context.
func TestReadAlong(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.gate.Routes.Default = "acme/widgets"
	id, hook := d.Delegate(d.issue, "ada")
	r := d.request(hook)
	d.learn(r, d.admit(r))
	d.wait(time.Minute)
	d.Comment(d.issue, "bob", "it is the clock")
	d.Comment(d.issue, "ada", "no, the cache")
	d.wait(time.Minute)
	before := d.calls()
	second := d.request(d.Prompt(id, "ada", "what do you think?"))
	d.Comment(d.issue, "bob", "said after the request")
	a := d.admit(second)
	want := "Said on the issue since the last request:\n\nComment by Bob:\n> it is the clock\n\nComment by Ada:\n> no, the cache\n\n"
	if diff := cmp.Diff(want, a.Quote); diff != "" {
		t.Error(diff)
	}
	if want := "Issue ENG-1 (Todo), written by Ada:\n> Login test is flaky\n> \n> Fails one run in five.\n\n"; a.Context != want {
		t.Errorf("context: %q", a.Context)
	}
	if n := d.calls() - before; n != 2 {
		t.Errorf("%d calls", n)
	}
	d.learn(second, a)
	d.wait(time.Minute)
	a = d.admit(d.request(d.Prompt(id, "ada", "well?")))
	if want := "Said on the issue since the last request:\n\nComment by Bob:\n> said after the request\n\n"; a.Quote != want {
		t.Errorf("third: %q", a.Quote)
	}
	for _, said := range []string{"it is the clock", "what do you think?"} {
		if !strings.Contains(a.Context, "> "+said) {
			t.Errorf("%q is not in the context:\n%s", said, a.Context)
		}
	}
	if strings.Contains(a.Context+a.Quote, "well?") {
		t.Error("the request is quoted to itself")
	}
}

// TestOwnWordsAreLeftOut: what ship said is not read back to it.
func TestOwnWordsAreLeftOut(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.gate.Routes.Default = "acme/widgets"
	id, hook := d.Delegate(d.issue, "ada")
	r := d.request(hook)
	d.learn(r, d.admit(r))
	d.state.Turn.Stage = session.Ended
	if _, err := d.perform(session.Effect{Kind: session.Say, By: Platform, Thread: &r.Thread, Text: "I am done here."}); err != nil {
		t.Fatal(err)
	}
	d.wait(time.Second)
	a := d.admit(d.request(d.Prompt(id, "ada", "more")))
	if strings.Contains(a.Context+a.Quote, "done here") || strings.Contains(a.Context+a.Quote, "agent session with") {
		t.Errorf("%s\n%s", a.Context, a.Quote)
	}
}

// TestCommandsNeedNoRight: anybody may stop the work or ask how it is, and is
// never shown by an id.
func TestCommandsNeedNoRight(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.host.broken = &session.Problem{Say: "GitHub is away.", Err: errors.New("away"), Again: true}
	d.AddPerson(lineartest.Person{Handle: "eve", Name: "Eve `x` [y](z)", Guest: true})
	id, _ := d.Delegate(d.issue, "ada")
	for _, text := range []string{"stop", "status", "help", "model", "budget lots"} {
		a := d.admit(d.request(d.Prompt(id, "eve", text)))
		if !a.Talks || a.Refusal != "" || a.Repo.Key != "" || strings.Contains(a.By.Login, d.PersonID("eve")) || strings.ContainsAny(a.By.Login, "`[]()") {
			t.Errorf("%s: %+v", text, a)
		}
	}
	if a := d.admit(d.request(d.Stop(id, "eve"))); !a.Talks || !strings.HasPrefix(a.By.Login, "Eve x y") {
		t.Errorf("%+v", a)
	}
	if n := d.calls(); n != 0 {
		t.Errorf("%d calls", n)
	}
}

// TestWithdraw: an issue that was taken away, or that is over.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, hook := d.Delegate(d.issue, "ada")
	r := d.request(hook)
	r.Verb, r.By = session.Withdraw, session.Person{Login: d.PersonID("bob")}
	if a := d.admit(r); a.Void || !strings.HasPrefix(a.By.Login, "Bob") {
		t.Errorf("taken away: %+v", a)
	}
	r.Ref = refStatus
	for state, over := range map[string]bool{"In Progress": false, "Todo": false, "Done": true, "Canceled": true} {
		d.Move(d.issue, "bob", state)
		if a := d.admit(r); a.Void == over || a.Talks != over {
			t.Errorf("%s: %+v", state, a)
		}
	}
	// Who it was does not matter enough to fail.
	d.Inject(lineartest.Fault{Operation: "ReadUsers", Status: 500, Times: -1})
	r.Ref = ""
	if a := d.admit(r); a.Void || a.By.Login == "" || strings.Contains(a.By.Login, r.By.Login) {
		t.Errorf("unknown: %+v", a)
	}
}

// TestFinished: all types of states that Linear's schema lists.
func TestFinished(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{
		"triage": false, "backlog": false, "unstarted": false, "started": false, "completed": true, "canceled": true, "duplicate": true,
	} {
		if finished(ql.State{Type: kind}) != want {
			t.Errorf("%s is not %t", kind, want)
		}
	}
}

// TestCrowd: of many sessions on an issue the newest is refused, and those
// before it go on.
func TestCrowd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.gate.Routes.Default = "acme/widgets"
	var asked []session.Request
	for range maxStarted + 1 {
		_, hook := d.Delegate(d.issue, "ada")
		r := d.request(hook)
		asked = append(asked, r)
	}
	for i, r := range asked {
		if a := d.admit(r); (a.Refusal == tooMany) != (i == maxStarted) {
			t.Errorf("session %d: %+v", i+1, a)
		}
	}
	d.wait(2 * time.Hour)
	_, hook := d.Delegate(d.issue, "ada")
	if a := d.admit(d.request(hook)); a.Refusal != "" {
		t.Errorf("later: %+v", a)
	}
}

// TestNoIssue: a session on a document knows only what Linear tells.
func TestNoIssue(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.gate.Routes.Default = "acme/widgets"
	id, hook := d.Mention(lineartest.Mention{By: "ada", Body: "@ship write the readme"})
	r := d.request(hook)
	a := d.admit(r)
	if a.Repo.Name != "acme/widgets" || a.Title != "" || a.Origin != nil || !strings.Contains(a.Context, "write the readme") {
		t.Errorf("%+v", a)
	}
	d.learn(r, a)
	if a := d.admit(d.request(d.Prompt(id, "ada", "shorter"))); a.Repo.Name != "acme/widgets" || a.Refusal != "" {
		t.Errorf("%+v", a)
	}
	d.gate.Routes.Default, d.state = "", session.State{}
	if a := d.admit(r); a.Question == nil || len(a.Question.Choices) != 2 {
		t.Errorf("%+v", a)
	}
	if n := d.calls(); n != 0 {
		t.Errorf("%d calls", n)
	}
}

// TestAdmitFails: what passes is tried again, and what is gone ends it.
func TestAdmitFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault       lineartest.Fault
		host        error
		again, gone bool
	}{
		"linear away":   {fault: lineartest.Fault{Operation: "ReadIssue", Status: 502}, again: true},
		"lost answer":   {fault: lineartest.Fault{Operation: "ReadIssue", Lost: true}, again: true},
		"issue gone":    {fault: lineartest.Failing("ReadIssue", 200, "INPUT_ERROR", "Entity not found: Issue"), gone: true},
		"code host off": {host: &session.Problem{Say: "GitHub is away.", Err: errors.New("away"), Again: true}, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.gate.Routes.Default = "acme/widgets"
			d.host.broken = test.host
			if test.fault.Operation != "" {
				d.Inject(test.fault)
			}
			_, hook := d.Delegate(d.issue, "ada")
			r := d.request(hook)
			_, err := d.try(r)
			var p *session.Problem
			if !errors.As(err, &p) || p.Again != test.again || p.Gone != test.gone || p.Say == "" {
				t.Fatalf("%+v", err)
			}
			d.host.broken = nil
			if test.again && d.admit(r).Repo.Name != "acme/widgets" {
				t.Error("not admitted the second time")
			}
		})
	}
}

// TestAdmitTwice: a repeat says the same.
func TestAdmitTwice(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.gate.Routes.Default = "acme/widgets"
	id, hook := d.Delegate(d.issue, "ada")
	r := d.request(hook)
	first := d.admit(r)
	if diff := cmp.Diff(first, d.admit(r)); diff != "" {
		t.Error(diff)
	}
	d.learn(r, first)
	d.wait(time.Second)
	d.Comment(d.issue, "bob", "by the way")
	d.wait(time.Second)
	r = d.request(d.Prompt(id, "ada", "go on"))
	first = d.admit(r)
	d.Comment(d.issue, "bob", "and another thing")
	if diff := cmp.Diff(first, d.admit(r)); diff != "" {
		t.Error(diff)
	}
}
