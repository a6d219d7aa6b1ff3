package main

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	ql "ship/graphql/linear"
	"ship/integrations/linear/lineartest"
	"ship/sandbox/agent/modeltest"
	"ship/session"
)

// TestLinearAssignment: an issue that is handed over becomes a draft pull
// request, by the real agent, and the workspace sees how: a thought at once,
// the agent's own plan, what it does, and a response as the last word.
func TestLinearAssignment(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{rigOptions: rigOptions{opencode: true, script: modeltest.Steps(
		modeltest.Use(modeltest.Todos(modeltest.Todo{Text: "Oil them", Status: "in_progress"})),
		modeltest.Use(modeltest.Bash("sleep 12; echo oil >> WORK.md")),
		modeltest.Use(modeltest.Todos(modeltest.Todo{Text: "Oil them", Status: "completed"})),
		modeltest.Say("The widgets turn."),
	)}})
	r.start()
	id, d := r.assign()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if status := r.post(d); status != http.StatusOK {
				t.Errorf("a delivery was answered with %d", status)
			}
		})
	}
	wg.Wait()
	last := r.answered(id, patience)
	if last.Content.Type != ql.TypeResponse || !strings.Contains(last.Content.Body, "The widgets turn.") {
		t.Errorf("the last word is %+v", last.Content)
	}
	r.checkLinear(t, id)
	before := r.world()
	r.tell(d.Again())
	if after := r.world(); after != before || !r.quiet() || r.seq() != 1 {
		t.Errorf("the redelivery changed the world (%d events):\n%s", r.seq(), cmp.Diff(before, after))
	}
	r.stop()
}

// checkLinear: what a workspace sees after one turn that changed something.
func (r *linearRig) checkLinear(t *testing.T, id string) {
	t.Helper()
	s := r.linear.Session(id)
	if s.Answered < 0 || s.Answered > crowded*10*time.Second {
		t.Errorf("the first sign of life took %s", s.Answered)
	}
	if s.Status != ql.AgentSessionStatusComplete {
		t.Errorf("the session is %s", s.Status)
	}
	if diff := cmp.Diff(ql.Plan{{Content: "Oil them", Status: ql.StepCompleted}}, s.Plan); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	if n := len(r.said(id, ql.TypeResponse)); n != 1 {
		t.Errorf("%d responses", n)
	}
	if len(r.said(id, ql.TypeAction)) == 0 {
		t.Error("nobody heard what the agent did")
	}
	prs := r.host.PullRequests(rigRepo)
	if len(prs) != 1 || !prs[0].Draft {
		t.Fatalf("pull requests: %+v", prs)
	}
	if !slices.ContainsFunc(s.Links, func(l ql.Link) bool { return strings.Contains(l.Url, "/pull/") }) {
		t.Errorf("the links lack the pull request: %+v", s.Links)
	}
	issue := r.linear.Issue(r.issue)
	if issue.State != "In Progress" || issue.Delegate != "ship" || len(issue.Attachments) != 1 {
		t.Errorf("the issue: %+v", issue)
	}
	checks := r.host.Checks(rigRepo, prs[0].HeadSHA)
	if len(checks) != 1 || checks[0].Conclusion != "success" {
		t.Errorf("checks: %+v", checks)
	}
}

// TestLinearConversation: a prompt while the agent works steers the turn, one
// after the end starts another on the same branch and pull request, and so does
// a comment there, of which the session in Linear hears.
func TestLinearConversation(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{})
	r.start()
	id, d := r.assign()
	r.tell(d)
	steer := r.linear.Prompt(id, "ada", "and oil them")
	r.tell(steer)
	r.tell(steer.Again())
	r.answered(id, patience)
	pr := r.work(t, 2)
	if n := len(r.said(id, ql.TypeResponse)); n != 1 {
		t.Errorf("one turn has %d responses", n)
	}

	r.tell(r.linear.Prompt(id, "ada", "paint them too"))
	r.await("the second turn", patience, func() bool { return r.finished(id) && len(r.said(id, ql.TypeResponse)) == 2 })
	r.work(t, 3)

	r.deliver(r.says(pr, "/ship polish them as well"))
	r.await("the third turn", patience, func() bool { return r.finished(id) && len(r.said(id, ql.TypeResponse)) == 3 })
	r.work(t, 4)
	if strings.Contains(r.linear.World(), "polish") {
		t.Errorf("what was said on GitHub is repeated in Linear:\n%s", r.linear.World())
	}
	r.stop()
}

// work demands one pull request with the work of so many prompts, and returns
// its number.
func (r *rig) work(t *testing.T, prompts int) int {
	t.Helper()
	prs := r.host.PullRequests(rigRepo)
	if len(prs) != 1 {
		t.Fatalf("pull requests: %+v", prs)
	}
	text, _ := r.host.File(rigRepo, prs[0].Head, "WORK.md")
	if n := len(strings.Split(strings.TrimSpace(text), "\n")); n != prompts {
		t.Errorf("the branch holds the work of %d prompts, want %d:\n%s", n, prompts, text)
	}
	return prs[0].Number
}

// TestLinearOutOfOrder: a prompt that overtakes the webhook of its session is
// carried out, and so is the assignment.
func TestLinearOutOfOrder(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{})
	r.start()
	id, created := r.assign()
	r.tell(r.linear.Prompt(id, "ada", "and oil them"))
	r.tell(created)
	r.answered(id, patience)
	r.work(t, 2)
	r.stop()
}

// TestLinearStop: the signal ends the agent at once, and the last word says
// where things stand.
func TestLinearStop(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{})
	r.start()
	id, d := r.linear.Mention(lineartest.Mention{Issue: r.issue, By: "ada", Body: "@ship SLOWLY turn them"})
	r.tell(d)
	r.await("the agent to work", patience, func() bool { return r.working() })
	stop := r.linear.Stop(id, "ada")
	r.tell(stop)
	r.tell(stop.Again())
	last := r.answered(id, patience)
	if last.Content.Type != ql.TypeResponse || !strings.Contains(last.Content.Body, "topped") {
		t.Errorf("the last word is %+v", last.Content)
	}
	r.stop()
}

// working: the agent has been given the words, and was seen to be at it.
func (r *linearRig) working() bool {
	for _, s := range r.states() {
		if s.Turn != nil && s.Turn.Stage == "running" && s.Turn.Progress.Doing != "" {
			return true
		}
	}
	return false
}

// TestLinearUnassigned: to take the issue away is to stop.
func TestLinearUnassigned(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{})
	r.start()
	id, d := r.linear.Mention(lineartest.Mention{Issue: r.issue, By: "ada", Body: "@ship SLOWLY turn them"})
	r.tell(d)
	r.await("the agent to work", patience, func() bool { return r.working() })
	r.tell(r.linear.Unassign(r.issue, "ada"))
	r.answered(id, patience)
	r.stop()
}

// TestLinearRevoked: when the workspace removes ship, what runs ends, and what
// was done is kept.
func TestLinearRevoked(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{})
	r.start()
	_, d := r.linear.Mention(lineartest.Mention{Issue: r.issue, By: "ada", Body: "@ship SLOWLY turn them"})
	r.tell(d)
	r.await("the agent to work", patience, func() bool { return r.working() })
	r.tell(r.linear.Revoke())
	r.await("the turn to end", patience, r.quiet)
	s := r.states()[0]
	if s.Turn == nil || s.Turn.Stage != "ended" || slices.ContainsFunc(s.Threads, func(v session.Voice) bool { return v.Talks }) {
		t.Errorf("the session goes on: %+v", s)
	}
	r.stop()
}

// TestLinearQuestion: where the repository is unclear the person chooses.
func TestLinearQuestion(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{unrouted: true})
	r.linear.SetConfidence("acme/gadgets", 0.9)
	r.start()
	id, d := r.assign()
	r.tell(d)
	r.await("the question", patience, func() bool { return r.last(id).Content.Type == ql.TypeElicitation && r.quiet() })
	asked := r.last(id)
	if asked.Signal != ql.AgentActivitySignalSelect || !strings.Contains(string(asked.Metadata), "acme/gadgets") {
		t.Errorf("the question: %+v %s", asked.Content, asked.Metadata)
	}
	if first := strings.Index(string(asked.Metadata), "acme/gadgets"); first > strings.Index(string(asked.Metadata), rigRepo) {
		t.Errorf("what Linear is sure of comes first: %s", asked.Metadata)
	}
	r.tell(r.linear.Prompt(id, "ada", "acme/gadgets"))
	r.answered(id, patience)
	if n := len(r.host.PullRequests("acme/gadgets")); n != 1 {
		t.Errorf("%d pull requests where the work belongs:\n%s", n, r.world())
	}
	r.stop()
}

// TestLinearStranger: who is not known on the code host gets a polite error as
// the last word, and nothing runs.
func TestLinearStranger(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{})
	r.start()
	id, d := r.linear.Delegate(r.issue, "mallory")
	r.tell(d)
	last := r.answered(id, patience)
	if last.Content.Type != ql.TypeError || r.linear.Issue(r.issue).State == "In Progress" {
		t.Errorf("the last word is %+v\n%s", last.Content, r.linear.World())
	}
	if r.states()[0].Turn != nil {
		t.Error("a turn has begun")
	}
	r.stop()
}

// TestLinearQueue: when no box is free the first thought comes all the same,
// and then the place in the queue.
func TestLinearQueue(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{rigOptions: rigOptions{more: "sandbox: {max: 1}\n"}})
	r.start()
	first, d := r.linear.Mention(lineartest.Mention{Issue: r.issue, By: "ada", Body: "@ship SLOWLY turn them"})
	r.tell(d)
	r.await("the first turn to work", patience, func() bool { return r.working() })
	other := r.linear.CreateIssue(lineartest.Issue{Team: "ENG", Title: "Gadgets are broken"})
	id, d := r.linear.Delegate(other, "ada")
	r.tell(d)
	r.await("the place in the queue", patience, func() bool {
		return slices.ContainsFunc(r.said(id, ql.TypeThought), func(s string) bool { return strings.Contains(s, "line") })
	})
	if s := r.linear.Session(id); s.Answered < 0 || s.Answered > crowded*10*time.Second {
		t.Errorf("the first sign of life took %s", s.Answered)
	}
	r.tell(r.linear.Stop(first, "ada"))
	r.answered(first, patience)
	r.answered(id, patience)
	r.stop()
}

// TestLinearWhileDown: what was asked while ship was away, and whose webhooks
// are lost for good, is found at the next start.
func TestLinearWhileDown(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{})
	id, d := r.assign()
	r.start()
	r.answered(id, patience)
	r.work(t, 1)
	r.tell(d) // late after all
	if !r.quiet() || r.seq() != 1 {
		t.Errorf("the late webhook was taken for another request: %d events", r.seq())
	}
	r.stop()
}
