package linear

import (
	"errors"
	"strings"
	"testing"

	"ship/graphql/linear"
	"ship/integrations/linear/lineartest"
	"ship/session"
)

// underWay is a desk with a turn that somebody asked for in the session.
func underWay(t *testing.T, issue lineartest.Issue, by string) (d *desk, id string) {
	t.Helper()
	d = newDesk(t)
	d.gate.Routes.Default = "acme/widgets"
	d.gate.People.Unmatched = "allow"
	issue.Team, issue.Title = "ENG", "Something"
	d.issue = d.CreateIssue(issue)
	id, hook := d.Delegate(d.issue, by)
	r := d.request(hook)
	d.learn(r, d.admit(r))
	return d, id
}

func (d *desk) begin() error {
	th := d.state.Threads[0].Thread
	_, err := d.perform(session.Effect{Kind: session.Begin, By: Platform, Thread: &th})
	return err
}

// TestCareMoves: where an issue goes when work on it begins.
func TestCareMoves(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ state, by, want string }{
		"todo":                    {"Todo", "ada", "In Progress"},
		"backlog":                 {"Backlog", "ada", "In Progress"},
		"triage by a person":      {"Triage", "ada", "In Progress"},
		"triage by an automation": {"Triage", "", "Triage"},
		"todo by an automation":   {"Todo", "", "In Progress"},
		"under way":               {"In Review", "ada", "In Review"},
		"completed":               {"Done", "ada", "Done"},
		"canceled":                {"Canceled", "ada", "Canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, id := underWay(t, lineartest.Issue{State: test.state}, test.by)
			for range 2 {
				if err := d.begin(); err != nil {
					t.Fatal(err)
				}
			}
			if got := d.Issue(d.issue); got.State != test.want || got.Delegate != "ship" {
				t.Errorf("%+v", got)
			}
			if n := d.Calls("MoveIssue"); n > 1 {
				t.Errorf("moved %d times", n)
			}
			if said := d.Session(id).Activities; len(said) != 0 {
				t.Errorf("said %+v", said)
			}
		})
	}
}

// TestCareDelegates: a mention makes us the delegate, unless there is one.
func TestCareDelegates(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.gate.Routes.Default = "acme/widgets"
	_, hook := d.Mention(lineartest.Mention{Issue: d.issue, By: "ada", Body: "@ship fix it"})
	r := d.request(hook)
	d.learn(r, d.admit(r))
	for range 2 {
		if err := d.begin(); err != nil {
			t.Fatal(err)
		}
	}
	if got := d.Issue(d.issue); got.Delegate != "ship" || d.Calls("DelegateIssue") != 1 {
		t.Errorf("%+v after %d", got, d.Calls("DelegateIssue"))
	}
}

// TestCareElsewhere: when a turn was asked for in a pull request, the
// conversation hears who did, and none of the words.
func TestCareElsewhere(t *testing.T) {
	t.Parallel()
	d, id := underWay(t, lineartest.Issue{}, "ada")
	d.Unassign(d.issue, "ada")
	d.state.Turns++
	d.state.PR = &session.PullRequest{Number: 7, URL: "https://github.com/acme/widgets/pull/7"}
	d.state.Turn = &session.Turn{N: 2, Requests: []session.Request{{
		Thread: session.Thread{Platform: "github", Key: "x"}, By: session.Person{Login: "`@bob`\n![x](y)"}, Text: "the secret plan",
	}}}
	for range 2 {
		if err := d.begin(); err != nil {
			t.Fatal(err)
		}
	}
	said := d.Session(id).Activities
	if len(said) != 1 || said[0].Content.Type != linear.TypeThought || said[0].Ephemeral {
		t.Fatalf("%+v", said)
	}
	body := said[0].Content.Body
	if !strings.Contains(body, "[#7](https://github.com/acme/widgets/pull/7)") || !strings.Contains(body, "bob") ||
		strings.Contains(body, "secret plan") || strings.ContainsAny(body, "\n") || strings.Contains(body, "@bob") || strings.Contains(body, "![") {
		t.Errorf("%q", body)
	}
	if got := d.Issue(d.issue); got.Delegate != "" || got.State != "In Progress" {
		t.Errorf("%+v", got)
	}
	// One asked here besides: then everybody knows.
	d.state.Turns++
	d.state.Turn.Requests = append(d.state.Turn.Requests, session.Request{Thread: d.state.Threads[0].Thread})
	if err := d.begin(); err != nil || len(d.Session(id).Activities) != 1 {
		t.Errorf("%v: %+v", err, d.Session(id).Activities)
	}
}

// TestCareWithoutRight: work goes on when Linear forbids the care, and what
// passes is tried again.
func TestCareWithoutRight(t *testing.T) {
	t.Parallel()
	d, _ := underWay(t, lineartest.Issue{}, "ada")
	d.Unassign(d.issue, "bob")
	d.Inject(lineartest.Failing("MoveIssue", 403, "FORBIDDEN", "Invalid scope: `write` required"))
	if err := d.begin(); err != nil {
		t.Fatal(err)
	}
	if got := d.Issue(d.issue); got.State != "Todo" || got.Delegate != "ship" || !strings.Contains(d.log.String(), "was not taken care of") {
		t.Errorf("%+v\n%s", got, d.log.String())
	}
	for _, fault := range []lineartest.Fault{
		{On: "ReadIssue", Status: 502},
		{On: "ReadStartedStates", Status: 502},
		{On: "MoveIssue", Lost: true},
	} {
		d.Inject(fault)
		err := d.begin()
		var p *session.Problem
		if !errors.As(err, &p) || !p.Again {
			t.Errorf("%s: %v", fault.On, err)
		}
	}
	if err := d.begin(); err != nil || d.Issue(d.issue).State != "In Progress" || d.Calls("MoveIssue") != 2 {
		t.Errorf("%v: %+v", err, d.Issue(d.issue))
	}
}

// TestCareTooLate: what was stopped before it began leaves the issue alone.
func TestCareTooLate(t *testing.T) {
	t.Parallel()
	d, _ := underWay(t, lineartest.Issue{}, "ada")
	d.Unassign(d.issue, "ada")
	before := d.calls()
	for _, turn := range []*session.Turn{
		nil,
		{Stopping: "ada-gh", Stage: session.Preparing, Requests: d.state.Turn.Requests},
		{Stage: session.Ended, Requests: d.state.Turn.Requests},
	} {
		d.state.Turn = turn
		if err := d.begin(); err != nil {
			t.Fatal(err)
		}
	}
	if got := d.Issue(d.issue); got.State != "Todo" || got.Delegate != "" || d.calls() != before {
		t.Errorf("%+v", got)
	}
}

// TestCareNoIssue: there is nothing to take care of on a document.
func TestCareNoIssue(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.gate.Routes.Default = "acme/widgets"
	_, hook := d.Mention(lineartest.Mention{By: "ada", Body: "@ship write the readme"})
	r := d.request(hook)
	d.learn(r, d.admit(r))
	before := d.calls()
	if err := d.begin(); err != nil || d.calls() != before {
		t.Errorf("%v after %d calls", err, d.calls()-before)
	}
}
