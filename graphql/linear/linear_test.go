package linear_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/google/go-cmp/cmp"

	"ship/graphql/linear"
)

// wire keeps the last request and answers with what it was given.
type wire struct {
	request struct {
		OperationName string
		Variables     json.RawMessage
	}
	answer string
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	if err := json.NewDecoder(r.Body).Decode(&w.request); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(w.answer)),
	}, nil
}

// TestVariables: what is not set is not sent, and nothing goes as null.
func TestVariables(t *testing.T) {
	t.Parallel()
	type call func(context.Context, graphql.Client) error
	from := time.Date(2026, 11, 16, 1, 2, 3, 0, time.UTC)
	urls := []linear.URL{{Label: "Pull request", Url: "https://github.com/acme/widgets/pull/1"}}
	for _, tt := range []struct {
		name string
		call call
		want string
	}{
		{"ReadSessions", func(ctx context.Context, c graphql.Client) error {
			_, err := linear.ReadSessions(ctx, c, "")
			return err
		}, `{}`},
		{"ReadActivities", func(ctx context.Context, c graphql.Client) error {
			_, err := linear.ReadActivities(ctx, c, "s", "")
			return err
		}, `{"session":"s"}`},
		{"ReadComments", func(ctx context.Context, c graphql.Client) error {
			_, err := linear.ReadComments(ctx, c, from, from.Add(time.Hour), "")
			return err
		}, `{"from":"2026-11-16T01:02:03Z","to":"2026-11-16T02:02:03Z"}`},
		{"ReadIssueComments", func(ctx context.Context, c graphql.Client) error {
			_, err := linear.ReadIssueComments(ctx, c, "ENG-1", from, from, "next")
			return err
		}, `{"issue":"ENG-1","from":"2026-11-16T01:02:03Z","to":"2026-11-16T01:02:03Z","after":"next"}`},
		{"CreateActivity", func(ctx context.Context, c graphql.Client) error {
			_, err := linear.CreateActivity(ctx, c, "i", "s", linear.Thought("hm"), true)
			return err
		}, `{"id":"i","session":"s","content":{"type":"thought","body":"hm"},"ephemeral":true}`},
		{"CreateActivity", func(ctx context.Context, c graphql.Client) error {
			_, err := linear.CreateActivity(ctx, c, "i", "s", linear.Action("Read", "a.go", ""), false)
			return err
		}, `{"id":"i","session":"s","content":{"type":"action","action":"Read","parameter":"a.go"},"ephemeral":false}`},
		{"Ask", func(ctx context.Context, c graphql.Client) error {
			choices := linear.Choices{Options: []linear.Choice{{Label: "Widgets", Value: "acme/widgets"}, {Value: "acme/tools"}}}
			_, err := linear.Ask(ctx, c, "i", "s", linear.Elicitation("Which?"), choices)
			return err
		}, `{"id":"i","session":"s","content":{"type":"elicitation","body":"Which?"},"choices":{"options":[{"label":"Widgets","value":"acme/widgets"},{"value":"acme/tools"}]}}`},
		{"SetPlan", func(ctx context.Context, c graphql.Client) error {
			_, err := linear.SetPlan(ctx, c, "s", linear.Plan{{Content: "Look", Status: linear.StepInProgress}})
			return err
		}, `{"session":"s","plan":[{"content":"Look","status":"inProgress"}]}`},
		{"SetPlan", func(ctx context.Context, c graphql.Client) error {
			_, err := linear.SetPlan(ctx, c, "s", nil)
			return err
		}, `{"session":"s","plan":[]}`},
		{"AddURLs", func(ctx context.Context, c graphql.Client) error {
			_, err := linear.AddURLs(ctx, c, "s", urls)
			return err
		}, `{"session":"s","urls":[{"label":"Pull request","url":"https://github.com/acme/widgets/pull/1"}]}`},
		{"MoveIssue", func(ctx context.Context, c graphql.Client) error {
			_, err := linear.MoveIssue(ctx, c, "i", "s")
			return err
		}, `{"id":"i","state":"s"}`},
	} {
		w := &wire{answer: `{"data":{}}`}
		if err := tt.call(t.Context(), linear.New(w, "http://linear.test/graphql")); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if w.request.OperationName != tt.name {
			t.Errorf("%s was sent as %s", tt.name, w.request.OperationName)
		}
		if diff := cmp.Diff(tt.want, string(w.request.Variables)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestReadActivities: each kind of content is read, and one that is not known
// spoils nothing.
func TestReadActivities(t *testing.T) {
	t.Parallel()
	w := &wire{answer: `{"data":{"agentSession":{"id":"s","status":"awaitingInput","activities":{
		"pageInfo":{"hasNextPage":true,"endCursor":"next"},
		"nodes":[
			{"id":"1","createdAt":"2026-11-16T00:00:00.000Z","ephemeral":false,"signal":"stop","signalMetadata":null,"sourceComment":{"id":"c"},
			 "agentSession":{"id":"s"},"user":{"id":"u","name":"Ada","app":false},"content":{"__typename":"AgentActivityPromptContent","type":"prompt","body":"stop"}},
			{"id":"2","createdAt":"2026-11-16T00:00:01.000Z","ephemeral":true,"signal":null,"signalMetadata":{"options":[]},"sourceComment":null,
			 "agentSession":{"id":"s"},"user":{"id":"a","name":"ship","app":true},"content":{"__typename":"AgentActivityActionContent","type":"action","action":"Read","parameter":"a.go","result":null}},
			{"id":"3","createdAt":"2026-11-16T00:00:02.000Z","ephemeral":false,"signal":null,"signalMetadata":null,"sourceComment":null,
			 "agentSession":{"id":"s"},"user":{"id":"a","name":"ship","app":true},"content":{"__typename":"AgentActivitySongContent"}}]}}}}`}
	got, err := linear.ReadActivities(t.Context(), linear.New(w, "http://linear.test/graphql"), "s", "")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	person, app := linear.Author{Id: "u", Name: "Ada"}, linear.Author{Id: "a", Name: "ship", App: true}
	session := linear.SessionReference{Id: "s"}
	null := json.RawMessage("null")
	want := linear.SessionActivities{Id: "s", Status: linear.AgentSessionStatusAwaitinginput, Activities: linear.Activities{
		PageInfo: linear.Page{HasNextPage: true, EndCursor: "next"},
		Nodes: []linear.Activity{
			{
				Id: "1", CreatedAt: at, Signal: linear.AgentActivitySignalStop, SignalMetadata: null, AgentSession: session, User: person,
				SourceComment: &linear.CommentReference{Id: "c"}, Content: linear.Content{Type: linear.TypePrompt, Body: "stop"},
			},
			{
				Id: "2", CreatedAt: at.Add(time.Second), Ephemeral: true, SignalMetadata: json.RawMessage(`{"options":[]}`), AgentSession: session,
				User: app, Content: linear.Action("Read", "a.go", ""),
			},
			{Id: "3", CreatedAt: at.Add(2 * time.Second), SignalMetadata: null, AgentSession: session, User: app},
		},
	}}
	if diff := cmp.Diff(want, got.AgentSession); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReadIssue(t *testing.T) {
	t.Parallel()
	w := &wire{answer: `{"data":{"issue":{"id":"i","identifier":"ENG-1","title":"T","description":null,"url":"u","branchName":"b",
		"team":{"id":"t","key":"ENG","name":"Engineering"},"state":{"id":"s","name":"Todo","type":"unstarted","position":1.5},
		"creator":null,"assignee":{"id":"p","name":"Ada","email":"ada@acme.example","app":false},"delegate":null,"project":null,
		"labels":{"nodes":[{"id":"l","name":"widgets","parent":{"id":"g","name":"repo"}},{"id":"m","name":"bug","parent":null}]},
		"attachments":{"nodes":[]}}}}`}
	got, err := linear.ReadIssue(t.Context(), linear.New(w, "http://linear.test/graphql"), "ENG-1")
	if err != nil {
		t.Fatal(err)
	}
	want := linear.Issue{
		Id: "i", Identifier: "ENG-1", Title: "T", Url: "u", BranchName: "b",
		Team:     linear.Team{Id: "t", Key: "ENG", Name: "Engineering"},
		State:    linear.State{Id: "s", Name: "Todo", Type: "unstarted", Position: 1.5},
		Assignee: &linear.Person{Id: "p", Name: "Ada", Email: "ada@acme.example"},
		Labels: linear.Labels{Nodes: []linear.Label{
			{Id: "l", Name: "widgets", Parent: &linear.LabelGroup{Id: "g", Name: "repo"}}, {Id: "m", Name: "bug"},
		}},
		Attachments: linear.Attachments{Nodes: []linear.Attachment{}},
	}
	if diff := cmp.Diff(want, got.Issue); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
