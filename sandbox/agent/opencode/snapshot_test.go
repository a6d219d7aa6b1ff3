package opencode

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ship/sandbox/agent"
)

// snapshotCase is what the server shows, and what is made of it.
type snapshotCase struct {
	name     string
	status   wireStatus
	messages []string
	want     agent.Snapshot
}

// perAnswer is what answerJSON says that it cost.
var perAnswer = agent.Usage{Calls: 1, Input: 15, Output: 6, USD: 0.01}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	for _, tt := range slices.Concat(progressCases(), failureCases(), toolCases()) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *started) {
				s.srv.set(func() {
					s.srv.messages[s.ses] = append([]string{answerJSON("msg_0", stopped, textJSON("an earlier turn")), userJSON("msg_ship_p")}, tt.messages...)
					if tt.status.Type != "" {
						s.srv.statuses[s.ses] = tt.status
					}
				})
				got, err := s.Snapshot(t.Context(), s.ses, "p")
				if err != nil {
					t.Fatal(err)
				}
				tt.want.Prompted = true
				if tt.want.Status.Phase == "" {
					tt.want.Status.Phase = agent.Idle
				}
				opts := cmp.Options{
					cmpopts.IgnoreFields(agent.Snapshot{}, "Fingerprint"),
					cmpopts.IgnoreFields(agent.Call{}, "ID", "Digest"),
				}
				if diff := cmp.Diff(tt.want, got, opts); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// progressCases: finished, cut, or on the way.
func progressCases() []snapshotCase {
	usage := perAnswer
	return []snapshotCase{
		{"nothing yet", wireStatus{}, nil, agent.Snapshot{}},
		{"nothing yet, busy", wireStatus{Type: "busy"}, nil, agent.Snapshot{Status: agent.Status{Phase: agent.Busy}}},
		{
			"finished", wireStatus{}, []string{answerJSON("msg_1", stopped, textJSON("hello"))},
			agent.Snapshot{Started: true, Finished: true, Text: "hello", Usage: usage},
		},
		{
			"finished, but busy", wireStatus{Type: "busy"}, []string{answerJSON("msg_1", stopped, textJSON("hello"))},
			agent.Snapshot{Status: agent.Status{Phase: agent.Busy}, Started: true, Text: "hello", Usage: usage},
		},
		{
			"the answer became too long", wireStatus{}, []string{answerJSON("msg_1", `"finish":"length"`)},
			agent.Snapshot{Started: true, Finished: true, Usage: usage},
		},
		{
			"cut between steps", wireStatus{}, []string{answerJSON("msg_1", continues, textJSON("let me see"))},
			agent.Snapshot{Started: true, Cut: true, Text: "let me see", Usage: usage},
		},
		{"cut within an answer", wireStatus{}, []string{answerJSON("msg_1", "")}, agent.Snapshot{Started: true, Cut: true, Usage: usage}},
		{"unknown finish", wireStatus{}, []string{answerJSON("msg_1", `"finish":"unknown"`)}, agent.Snapshot{Started: true, Cut: true, Usage: usage}},
		{
			"a later word is not answered", wireStatus{},
			[]string{answerJSON("msg_1", stopped), userJSON("msg_ship_more_5fwords"), userJSON("msg_other")},
			agent.Snapshot{Started: true, Cut: true, Prompts: []string{"more_words"}, Usage: usage},
		},
		{
			"only a summary at the end", wireStatus{},
			[]string{answerJSON("msg_1", continues, textJSON("a")), answerJSON("msg_2", stopped+`,"summary":true`, textJSON("summary"))},
			agent.Snapshot{Started: true, Cut: true, Text: "a", Usage: usage.Add(usage)},
		},
		{
			"waits for the model", wireStatus{Type: "retry", Attempt: 3, Message: "busy"}, []string{answerJSON("msg_1", "")},
			agent.Snapshot{Status: agent.Status{Phase: agent.Retrying, Attempt: 3, Message: "busy"}, Started: true, Usage: usage},
		},
	}
}

// failureCases: the last answer, or an earlier one, has an error.
func failureCases() []snapshotCase {
	usage := perAnswer
	apiError := `"error":{"name":"APIError","data":{"message":"spent","statusCode":403,"isRetryable":false,` +
		`"responseBody":"{\"error\":{\"code\":\"ship_calls_spent\"}}"}}`
	return []snapshotCase{
		{
			"aborted", wireStatus{}, []string{answerJSON("msg_1", `"error":{"name":"MessageAbortedError","data":{"message":"Aborted"}}`)},
			agent.Snapshot{Started: true, Finished: true, Aborted: true, Usage: usage},
		},
		{
			"budget spent", wireStatus{}, []string{answerJSON("msg_1", apiError)},
			agent.Snapshot{Started: true, Finished: true, Usage: usage, Failure: &agent.Failure{
				Name: "APIError", Status: 403, Code: agent.CodeCallsSpent, Message: "spent",
			}},
		},
		{
			"failed earlier, went on", wireStatus{}, []string{answerJSON("msg_1", apiError), answerJSON("msg_2", stopped)},
			agent.Snapshot{Started: true, Finished: true, Usage: usage.Add(usage)},
		},
		{
			"filtered", wireStatus{}, []string{answerJSON("msg_1", `"finish":"content-filter"`)},
			agent.Snapshot{Started: true, Finished: true, Usage: usage, Failure: &agent.Failure{
				Name: "content-filter", Message: "the answer was filtered", Final: true,
			}},
		},
		{
			"memory full", wireStatus{}, []string{answerJSON("msg_1", `"error":{"name":"ContextOverflowError","data":{"message":"too long"}}`)},
			agent.Snapshot{Started: true, Finished: true, Usage: usage, Failure: &agent.Failure{
				Name: "ContextOverflowError", Message: "too long", Final: true,
			}},
		},
	}
}

// toolCases: every state of a call.
func toolCases() []snapshotCase {
	usage := perAnswer
	return []snapshotCase{
		{
			"tools", wireStatus{Type: "busy"}, []string{answerJSON("msg_1", continues,
				toolJSON("todowrite", "completed", `{"todos":[{"content":"a","status":"pending","priority":"low"}]}`, ""),
				toolJSON("todowrite", "error", `"broken"`, `"error":"bad arguments"`),
				toolJSON("bash", "completed", `{"command":"make"}`, `"title":"make","metadata":{"exit":2}`),
				toolJSON("bash", "completed", `{"command":"true"}`, `"metadata":{"exit":0}`),
				toolJSON("bash", "completed", `{"command":"x"}`, `"metadata":{"exit":null}`),
				toolJSON("read", "running", `{"filePath":"/a"}`, ""),
				toolJSON("grep", "pending", `{}`, ""),
				toolJSON("edit", "error", `{"filePath":"/a"}`, `"error":"not found"`),
			)},
			agent.Snapshot{
				Status: agent.Status{Phase: agent.Busy}, Started: true, Usage: usage,
				Todos: []agent.Todo{{Text: "a", Status: "pending"}},
				Calls: []agent.Call{
					{Tool: "todowrite", Status: agent.CallDone},
					{Tool: "todowrite", Status: agent.CallFailed, Error: "bad arguments"},
					{Tool: "bash", Title: "make", Command: "make", Status: agent.CallFailed, Error: "exit code 2"},
					{Tool: "bash", Title: "true", Command: "true", Status: agent.CallDone},
					{Tool: "bash", Title: "x", Command: "x", Status: agent.CallDone},
					{Tool: "read", Title: "/a", Status: agent.CallRunning},
					{Tool: "grep", Status: agent.CallPending},
					{Tool: "edit", Title: "/a", Status: agent.CallFailed, Error: "not found"},
				},
			},
		},
	}
}

// TestLongTurnIsReadOnce: a look costs one page, however long the turn is.
func TestLongTurnIsReadOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *started) {
		list := []string{userJSON("msg_ship_old")}
		for i := range 50 {
			list = append(list, answerJSON(fmt.Sprint("msg_old", i), continues))
		}
		list = append(list, userJSON("msg_ship_p"))
		for i := range 350 {
			list = append(list, answerJSON(fmt.Sprint("msg_", i), continues, toolJSON("bash", "completed", `{}`, "")))
		}
		s.srv.set(func() { s.srv.messages[s.ses] = list })
		path := "GET /session/" + s.ses + "/message"
		look := func(calls, pages int) string {
			t.Helper()
			before := s.srv.count(path)
			snap, err := s.Snapshot(t.Context(), s.ses, "p")
			if err != nil || len(snap.Calls) != calls || snap.Usage.Calls != calls {
				t.Fatalf("%d calls, usage %+v, %v; want %d", len(snap.Calls), snap.Usage, err, calls)
			}
			if got := s.srv.count(path) - before; got != pages {
				t.Errorf("read %d pages, want %d", got, pages)
			}
			return snap.Fingerprint
		}
		first := look(350, 5)
		if again := look(350, 1); again != first {
			t.Error("the fingerprint changed although nothing moved")
		}
		s.srv.set(func() {
			s.srv.messages[s.ses] = append(list, answerJSON("msg_350", continues, toolJSON("bash", "running", `{}`, "")))
		})
		second := look(351, 1)
		s.srv.set(func() {
			s.srv.messages[s.ses] = append(list, answerJSON("msg_350", continues, toolJSON("bash", "running", `{}`, `"metadata":{"output":"more"}`)))
		})
		third := look(351, 1)
		if first == second || second == third {
			t.Error("the fingerprint did not change with a new message, or with a tool's output")
		}
		// The memory was put back to an older state.
		s.srv.set(func() { s.srv.messages[s.ses] = list[:60] })
		snap, err := s.Snapshot(t.Context(), s.ses, "p")
		if err != nil || snap.Prompted {
			t.Errorf("an anchor that is gone: %+v, %v", snap, err)
		}
		look(8, 1)
	})
}

func TestSubagents(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *started) {
		s.srv.set(func() {
			s.srv.messages[s.ses] = []string{userJSON("msg_ship_p"), answerJSON("msg_1", continues, toolJSON("task", "running", `{}`, ""))}
			old, kid := wireSession{ID: "ses_old"}, wireSession{ID: "ses_kid"}
			old.Time.Created, kid.Time.Created = 1, 7
			s.srv.children[s.ses] = []wireSession{old, kid}
			s.srv.messages["ses_old"] = []string{userJSON("msg_a"), answerJSON("msg_b", stopped)}
			s.srv.messages["ses_kid"] = []string{userJSON("msg_c"), answerJSON("msg_d", continues)}
			s.srv.statuses[s.ses] = wireStatus{Type: "busy"}
			s.srv.statuses["ses_kid"] = wireStatus{Type: "retry", Attempt: 2, Message: "later"}
		})
		snap, err := s.Snapshot(t.Context(), s.ses, "p")
		if err != nil || snap.Usage.Calls != 2 || snap.Usage.Input != 30 {
			t.Errorf("usage %+v, %v", snap.Usage, err)
		}
		if want := (agent.Status{Phase: agent.Retrying, Attempt: 2, Message: "later"}); snap.Status != want {
			t.Errorf("status %+v", snap.Status)
		}
		s.srv.set(func() { s.srv.messages["ses_kid"] = append(s.srv.messages["ses_kid"], answerJSON("msg_e", stopped)) })
		next, err := s.Snapshot(t.Context(), s.ses, "p")
		if err != nil || next.Fingerprint == snap.Fingerprint || next.Usage.Calls != 3 {
			t.Errorf("after the subagent's step: %+v, %v", next, err)
		}
	})
}
