package linear

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	ql "ship/graphql/linear"
	"ship/integrations/linear/lineartest"
	"ship/session"
)

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
		Talks: true, By: session.Person{Login: "ada-gh", Name: "Ada", Email: "ada-gh@users.noreply.github.example"},
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
	d.host.Broken = &session.Problem{Say: "GitHub is away.", Err: errors.New("away"), Again: true}
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
	d.Inject(lineartest.Fault{On: "ReadUsers", Status: 500, Times: -1})
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
		"linear away":   {fault: lineartest.Fault{On: "ReadIssue", Status: 502}, again: true},
		"lost answer":   {fault: lineartest.Fault{On: "ReadIssue", Lost: true}, again: true},
		"issue gone":    {fault: lineartest.Failing("ReadIssue", 200, "INPUT_ERROR", "Entity not found: Issue"), gone: true},
		"code host off": {host: &session.Problem{Say: "GitHub is away.", Err: errors.New("away"), Again: true}, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.gate.Routes.Default = "acme/widgets"
			d.host.Broken = test.host
			if test.fault.On != "" {
				d.Inject(test.fault)
			}
			_, hook := d.Delegate(d.issue, "ada")
			r := d.request(hook)
			_, err := d.try(r)
			var p *session.Problem
			if !errors.As(err, &p) || p.Again != test.again || p.Gone != test.gone || p.Say == "" {
				t.Fatalf("%+v", err)
			}
			d.host.Broken = nil
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
