package lineartest_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/google/go-cmp/cmp"

	"ship/graphql/linear"
	"ship/integrations/linear/lineartest"
	"ship/integrations/linear/lineartest/schema"
)

// TestStory does with the real client what an agent does, all operations, each
// held against Linear's schema in both directions.
func TestStory(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{})
	ctx := t.Context()
	session, _ := c.Delegate(c.issue, "ada")

	who, err := linear.ReadViewer(ctx, c)
	if err != nil || who.Viewer.Id != c.AppUserID() || !who.Viewer.App || who.Organization.Id != c.OrganizationID() {
		t.Errorf("viewer %+v, %v", who, err)
	}
	c.says(session, 1, linear.Thought("Looking into it."), false)
	before, err := linear.ReadIssue(ctx, c, c.issue)
	if err != nil || before.Issue.State.Name != "Todo" || before.Issue.Delegate == nil || before.Issue.Delegate.Id != c.AppUserID() {
		t.Errorf("issue %+v, %v", before, err)
	}
	c.startWork(ctx, before.Issue)
	c.choose(ctx, session)
	c.finish(ctx, session)
	c.readBack(ctx, session)

	want := "workspace acme installed=true\n" +
		`issue ENG-1 "Login test is flaky" state="In Progress" assignee=bob delegate=ship
  attachment "Fix the login test" "" https://github.com/acme/widgets/pull/7 github
  attachment "Session" "2 steps" https://ship.example/s/1 
  comment by  answer=false
    | This thread is for an agent session with ship.
  comment by ship answer=true
    | Which repository?
  comment by ada answer=true
    | acme/widgets
  comment by ship answer=true
    | Opened a pull request.
  session complete by ada
    plan completed "Find the flake"
    plan canceled "Write a novel"
    link "Pull request" https://github.com/acme/widgets/pull/7
    thought by ship signal=
      | Looking into it.
    elicitation by ship signal=select
      | Which repository?
      | {"options":[{"label":"Widgets","value":"acme/widgets"},{"value":"acme/tools"}]}
    prompt by ada signal=
      | acme/widgets
    action by ship signal=
      "Run" "go test ./..."
      | ok
    response by ship signal=
      | Opened a pull request.
`
	if diff := cmp.Diff(want, c.World()); diff != "" {
		t.Errorf("world (-want +got):\n%s", diff)
	}
	c.allCalled()
}

// startWork moves the issue to the first started state of its team.
func (c *client) startWork(ctx context.Context, issue linear.Issue) {
	c.t.Helper()
	states, err := linear.ReadStartedStates(ctx, c, issue.Team.Id)
	if err != nil || len(states.Team.States.Nodes) != 2 || states.Team.States.Nodes[0].Name != "In Review" {
		c.t.Fatalf("states %+v, %v", states, err)
	}
	first := slices.MinFunc(states.Team.States.Nodes, func(a, b linear.State) int { return int(a.Position - b.Position) })
	if _, err := linear.MoveIssue(ctx, c, issue.Id, first.Id); err != nil {
		c.t.Error(err)
	}
	if _, err := linear.DelegateIssue(ctx, c, issue.Id, c.AppUserID()); err != nil {
		c.t.Error(err)
	}
	if got := c.Issue(c.issue); got.State != "In Progress" || got.StateType != "started" || got.Delegate != "ship" || got.Assignee != "bob" {
		c.t.Errorf("issue %+v", got)
	}
}

// choose asks which repository it is and gets an answer.
func (c *client) choose(ctx context.Context, session string) {
	c.t.Helper()
	c.SetConfidence("acme/widgets", 0.8)
	candidates := []linear.Candidate{
		{Hostname: "github.com", RepositoryFullName: "acme/tools"}, {Hostname: "github.com", RepositoryFullName: "acme/widgets"},
	}
	got, err := linear.SuggestRepositories(ctx, c, c.issue, session, candidates)
	want := []linear.Suggestion{
		{RepositoryFullName: "acme/widgets", Hostname: "github.com", Confidence: 0.8}, {RepositoryFullName: "acme/tools", Hostname: "github.com"},
	}
	if err != nil || !cmp.Equal(want, got.IssueRepositorySuggestions.Suggestions) {
		c.t.Errorf("suggestions %+v, %v", got, err)
	}
	choices := linear.Choices{Options: []linear.Choice{{Label: "Widgets", Value: "acme/widgets"}, {Value: "acme/tools"}}}
	if _, err := linear.Ask(ctx, c, c.id(2), session, linear.Elicitation("Which repository?"), choices); err != nil {
		c.t.Error(err)
	}
	if got := c.Session(session).Status; got != linear.AgentSessionStatusAwaitinginput {
		c.t.Errorf("status %s", got)
	}
	c.Prompt(session, "ada", "acme/widgets")
}

// finish works, with a plan and links, and answers.
func (c *client) finish(ctx context.Context, session string) {
	c.t.Helper()
	const pull = "https://github.com/acme/widgets/pull/7"
	plan := linear.Plan{{Content: "Find the flake", Status: linear.StepCompleted}, {Content: "Write a novel", Status: linear.StepCanceled}}
	link := linear.URL{Label: "Session", Url: "https://ship.example/s/1"}
	errs := []error{}
	do := func(_ any, err error) { errs = append(errs, err) }
	do(linear.SetPlan(ctx, c, session, plan))
	do(linear.SetURLs(ctx, c, session, []linear.URL{link}))
	do(linear.AddURLs(ctx, c, session, []linear.URL{{Label: "Pull request", Url: pull}}))
	do(linear.RemoveURLs(ctx, c, session, []string{link.Url}))
	c.says(session, 3, linear.Action("Run", "go test ./...", ""), true)
	c.says(session, 4, linear.Action("Run", "go test ./...", "ok"), false)
	do(linear.Attach(ctx, c, c.issue, "Session", "1 step", link.Url))
	do(linear.Attach(ctx, c, c.issue, "Session", "2 steps", link.Url))
	do(linear.LinkPullRequest(ctx, c, c.issue, "Fix the login test", pull))
	c.says(session, 5, linear.Response("Opened a pull request."), false)
	for n, err := range errs {
		if err != nil {
			c.t.Errorf("%d: %v", n, err)
		}
	}
}

func TestAttachmentsByAddress(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{})
	attach := func(title, url string) string {
		t.Helper()
		got, err := linear.Attach(t.Context(), c, c.issue, title, "", url)
		if err != nil {
			t.Fatal(err)
		}
		return got.AttachmentCreate.Attachment.Id
	}
	one := attach("One", "https://ship.example/1")
	if attach("Two", "https://ship.example/2") == one || attach("First", "https://ship.example/1") != one {
		t.Error("an attachment is what its address says")
	}
	want := []lineartest.Attachment{{Title: "First", URL: "https://ship.example/1"}, {Title: "Two", URL: "https://ship.example/2"}}
	if diff := cmp.Diff(want, c.Issue(c.issue).Attachments); diff != "" {
		t.Error(diff)
	}
}

// readBack reads everything that there is now.
func (c *client) readBack(ctx context.Context, session string) {
	c.t.Helper()
	one, err := linear.ReadSession(ctx, c, session)
	if err != nil || one.AgentSession.Status != linear.AgentSessionStatusComplete || one.AgentSession.EndedAt.IsZero() ||
		one.AgentSession.Creator.Email != "ada@acme.example" || !strings.Contains(string(one.AgentSession.Plan), "Write a novel") {
		c.t.Errorf("session %+v, %v", one, err)
	}
	all, err := linear.ReadSessions(ctx, c, "")
	if err != nil || len(all.AgentSessions.Nodes) != 1 || !cmp.Equal(all.AgentSessions.Nodes[0], one.AgentSession.SessionHead) {
		c.t.Errorf("sessions %+v, %v", all, err)
	}
	said, err := linear.ReadActivities(ctx, c, session, "")
	if err != nil || len(said.AgentSession.Activities.Nodes) != 5 { // the ephemeral one is gone
		c.t.Fatalf("activities %+v, %v", said, err)
	}
	newest := said.AgentSession.Activities.Nodes[0]
	activity, err := linear.ReadActivity(ctx, c, newest.Id)
	if err != nil || !cmp.Equal(newest, activity.AgentActivity) || newest.Content != linear.Response("Opened a pull request.") {
		c.t.Errorf("activity %+v and %+v, %v", newest, activity, err)
	}
	issue, err := linear.ReadIssue(ctx, c, c.issue)
	if err != nil || len(issue.Issue.Attachments.Nodes) != 2 || issue.Issue.Labels.Nodes[1].Parent.Name != "repo" || issue.Issue.Project.Name != "Quality" {
		c.t.Errorf("issue %+v, %v", issue, err)
	}
	users, err := linear.ReadUsers(ctx, c, []string{c.PersonID("bob"), c.AppUserID(), "unknown"})
	if err != nil || len(users.Users.Nodes) != 2 || users.Users.Nodes[0].Email != "bob@acme.example" {
		c.t.Errorf("users %+v, %v", users, err)
	}
	reader, err := linear.ReadReader(ctx, c, "Bob@acme.example", issue.Issue.Team.Id)
	if err != nil || len(reader.Users.Nodes) != 1 || !reader.Users.Nodes[0].Active || reader.Team.Visibility != linear.TeamVisibilityPublic {
		c.t.Errorf("reader %+v, %v", reader, err)
	}
	limits, err := linear.ReadRateLimits(ctx, c)
	if err != nil || limits.RateLimitStatus.Limits[0].RemainingAmount >= 5000 {
		c.t.Errorf("limits %+v, %v", limits, err)
	}
	now := time.Now()
	there, err := linear.ReadIssueComments(ctx, c, c.issue, now.Add(-hour), now.Add(hour), "")
	if err != nil || len(there.Issue.Comments.Nodes) != 4 {
		c.t.Errorf("comments %+v, %v", there, err)
	}
	none, err := linear.ReadComments(ctx, c, now.Add(-2*hour), now.Add(-hour), "")
	if err != nil || len(none.Comments.Nodes) != 0 {
		c.t.Errorf("comments %+v, %v", none, err)
	}
}

func (c *client) allCalled() {
	c.t.Helper()
	v, err := schema.Parse("schema.graphql", linear.Schema)
	if err != nil {
		c.t.Fatal(err)
	}
	names, err := v.Operations(linear.Operations)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, name := range names {
		if c.Calls(name) == 0 {
			c.t.Errorf("%s was not tried", name)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{})
	ctx := t.Context()
	session, _ := c.Delegate(c.issue, "ada")
	c.says(session, 1, linear.Thought("first"), false)
	say := func(id string, content linear.Content, ephemeral bool) error {
		_, err := linear.CreateActivity(ctx, c, id, session, content, ephemeral)
		return err
	}
	failed := func(_ any, err error) error { return err }
	link := linear.URL{Label: "x", Url: "https://ship.example/"}
	for name, err := range map[string]error{
		"an id that is taken":       say(c.id(1), linear.Thought("second"), false),
		"an id that is no UUID":     say("first", linear.Thought("second"), false),
		"an id of version 5":        say("6f0f1a52-0000-5000-8000-000000000002", linear.Thought("second"), false),
		"an empty body":             say(c.id(2), linear.Response(" \n"), false),
		"a prompt":                  say(c.id(2), linear.Content{Type: linear.TypePrompt, Body: "x"}, false),
		"an unknown type":           say(c.id(2), linear.Content{Type: "song", Body: "x"}, false),
		"an action without object":  say(c.id(2), linear.Action("Run", "", ""), false),
		"a thought with a result":   say(c.id(2), linear.Content{Type: linear.TypeThought, Body: "x", Result: "y"}, false),
		"an ephemeral response":     say(c.id(2), linear.Response("x"), true),
		"a choice on a thought":     failed(linear.Ask(ctx, c, c.id(2), session, linear.Thought("x"), linear.Choices{Options: []linear.Choice{{Value: "a"}}})),
		"no choice":                 failed(linear.Ask(ctx, c, c.id(2), session, linear.Elicitation("x"), linear.Choices{})),
		"an unknown session":        failed(linear.CreateActivity(ctx, c, c.id(2), c.id(3), linear.Thought("x"), false)),
		"a step without words":      failed(linear.SetPlan(ctx, c, session, linear.Plan{{Status: linear.StepPending}})),
		"a step of unknown status":  failed(linear.SetPlan(ctx, c, session, linear.Plan{{Content: "x", Status: "done"}})),
		"a link twice":              failed(linear.SetURLs(ctx, c, session, []linear.URL{link, link})),
		"a link to nowhere":         failed(linear.SetURLs(ctx, c, session, []linear.URL{{Label: "x", Url: "/s/1"}})),
		"a state of no team":        failed(linear.MoveIssue(ctx, c, c.issue, c.id(3))),
		"a person as delegate":      failed(linear.DelegateIssue(ctx, c, c.issue, c.PersonID("ada"))),
		"an unknown issue":          failed(linear.ReadIssue(ctx, c, "ENG-99")),
		"an unknown activity":       failed(linear.ReadActivity(ctx, c, c.id(3))),
		"an attachment to nowhere":  failed(linear.Attach(ctx, c, c.issue, "x", "", "pull/1")),
		"a pull request that is no": failed(linear.LinkPullRequest(ctx, c, c.issue, "x", "https://github.com/acme/widgets/issues/1")),
		"an unknown cursor":         failed(linear.ReadSessions(ctx, c, "zzz")),
	} {
		if code(err) != "INPUT_ERROR" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(c.Session(session).Activities); n != 1 {
		t.Errorf("%d activities", n)
	}
}

// TestInputStatus: the same refusal comes with either status.
func TestInputStatus(t *testing.T) {
	t.Parallel()
	for _, status := range []int{0, http.StatusBadRequest} {
		c := newClient(t, lineartest.Options{InputStatus: status})
		_, err := linear.ReadIssue(t.Context(), c, "ENG-99")
		c.mustFail(err, "INPUT_ERROR")
		if isHTTP := strings.Contains(err.Error(), "returned error 400"); isHTTP != (status == 400) {
			t.Errorf("status %d: %v", status, err)
		}
	}
}

// TestLoud: what the stand-in does not know is refused and kept.
func TestLoud(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]*graphql.Request{
		"an unknown operation":   {OpName: "Delete", Query: "mutation Delete { issueDelete(id: \"x\") { success } }"},
		"another document":       {OpName: "ReadViewer", Query: "query ReadViewer { viewer { id } }"},
		"a null":                 {OpName: "ReadSessions", Query: linear.ReadSessions_Operation, Variables: map[string]any{"after": nil}},
		"a variable too many":    {OpName: "ReadViewer", Query: linear.ReadViewer_Operation, Variables: map[string]any{"id": "x"}},
		"a variable of no type":  {OpName: "ReadIssue", Query: linear.ReadIssue_Operation, Variables: map[string]any{"id": []int{1}}},
		"a variable that is not": {OpName: "ReadIssue", Query: linear.ReadIssue_Operation, Variables: map[string]any{"id": nil}},
	} {
		c := newWildClient(t, lineartest.Options{})
		err := c.MakeRequest(t.Context(), request, &graphql.Response{Data: &struct{}{}})
		c.mustFail(err, "GRAPHQL_VALIDATION_FAILED")
		if len(c.Violations()) != 1 {
			t.Errorf("%s: violations %v", name, c.Violations())
		}
	}
}

func TestAccess(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{})
	session, _ := c.Delegate(c.issue, "ada")
	ctx := t.Context()
	c.ChangeAccess(nil, []string{"ENG"})
	_, err := linear.ReadIssue(ctx, c, c.issue)
	c.mustFail(err, "INPUT_ERROR")
	_, err = linear.CreateActivity(ctx, c, c.id(1), session, linear.Thought("x"), false)
	c.mustFail(err, "INPUT_ERROR")
	if got, err := linear.ReadSessions(ctx, c, ""); err != nil || len(got.AgentSessions.Nodes) != 0 {
		t.Errorf("sessions %+v, %v", got, err)
	}
	c.ChangeAccess([]string{"ENG"}, nil)
	c.says(session, 1, linear.Thought("x"), false)
	c.Revoke()
	_, err = linear.ReadIssue(ctx, c, c.issue)
	c.mustFail(err, "AUTHENTICATION_ERROR")
}
