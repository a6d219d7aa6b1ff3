package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"ship/integrations/github/githubtest"
)

// comments counts those in a conversation that ship wrote and that contain a
// text.
func (r *rig) said(number int, text string) (n int) {
	for _, c := range r.host.Comments(rigRepo, number) {
		if strings.HasSuffix(c.Author, "[bot]") && strings.Contains(c.Body, text) {
			n++
		}
	}
	return n
}

// replies counts those in a diff.
func (r *rig) replies(number int, to int64) (n int) {
	for _, c := range r.host.ReviewComments(rigRepo, number) {
		if c.InReplyTo == to {
			n++
		}
	}
	return n
}

// turns counts the turns of all sessions.
func (r *rig) turns() (n int) {
	r.t.Helper()
	for _, s := range r.states() {
		n += s.Turns
	}
	return n
}

// endedTurns waits until so many turns have begun, and all have ended.
func (r *rig) endedTurns(n int, limit time.Duration) {
	r.t.Helper()
	r.await("the turns to end", limit, func() bool { return r.turns() == n && r.quiet() })
}

// draft is a draft pull request by a person, on a branch of the repository.
func (r *rig) draft() githubtest.PullRequest {
	r.t.Helper()
	if _, err := r.host.Commit(rigRepo, "topic", map[string]string{"topic.md": "work in progress\n"}, "begin"); err != nil {
		r.t.Fatal(err)
	}
	number := r.host.CreatePull(rigRepo, githubtest.Pull{User: "mona", Title: "Make them turn", Head: "topic", Draft: true})
	for _, p := range r.host.PullRequests(rigRepo) {
		if p.Number == number {
			return p
		}
	}
	r.t.Fatal("the draft is not there")
	return githubtest.PullRequest{}
}

// TestLabel: the label on an issue is a bare /ship.
func TestLabel(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	r.start()
	r.deliver(r.host.Label(rigRepo, r.issue, "mona", "bug"))
	d := r.host.Label(rigRepo, r.issue, "mona", "ship")
	r.deliver(d)
	r.deliver(d)
	r.ended(r.issue, patience)
	r.checkOutcome(t, 1)
	r.stop()
}

// TestOnAPullRequest: in the diff, in a review, in the conversation: each is
// answered where it was asked, once, and the work goes onto the branch.
func TestOnAPullRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	pr := r.draft()
	r.start()

	inline := githubtest.ReviewComment{User: "mona", Body: "/ship turn faster", Path: "topic.md", Line: 1, Hunk: "@@ -0,0 +1 @@\n+work in progress"}
	d := r.host.ReviewComment(rigRepo, pr.Number, inline)
	root := r.host.ReviewComments(rigRepo, pr.Number)[0].ID
	r.deliver(d)
	r.deliver(d)
	r.endedTurns(1, patience)
	if n := r.replies(pr.Number, root); n != 1 {
		t.Errorf("%d replies in the diff", n)
	}

	inline.Body, inline.InReplyTo = "/ship status", root
	r.deliver(r.host.ReviewComment(rigRepo, pr.Number, inline))
	r.await("the status in the diff", patience, func() bool { return r.replies(pr.Number, root) == 3 })

	r.deliver(r.host.Review(rigRepo, pr.Number, "mona", "changes_requested", "Nearly.\n\n/ship oil it"))
	r.endedTurns(2, patience)
	r.deliver(r.says(pr.Number, "/ship"))
	r.await("the draft mark to go", patience, func() bool { return !r.host.PullRequests(rigRepo)[0].Draft })
	r.endedTurns(3, patience)

	work, _ := r.host.File(rigRepo, "topic", "WORK.md")
	if got := strings.Split(strings.TrimSpace(work), "\n"); len(got) != 3 || got[0] != "turn faster" || got[1] != "oil it" || !strings.HasPrefix(got[2], "Get this pull request") {
		t.Errorf("the branch holds %q", work)
	}
	if n := len(r.host.PullRequests(rigRepo)); n != 1 {
		t.Errorf("%d pull requests", n)
	}
	for _, k := range r.host.Checks(rigRepo, "") {
		if k.Status != "completed" {
			t.Errorf("check %+v", k)
		}
	}
	eyes := strings.Join(r.host.Reactions(rigRepo, pr.Number), ", ")
	for _, on := range []string{"review comment 1: ship[bot] eyes", "review 1: ship[bot] eyes", "comment 2: ship[bot] eyes"} {
		if !strings.Contains(eyes, on) {
			t.Errorf("no %q in %s", on, eyes)
		}
	}
	r.stop()
}

// TestButtons: what the check run offers at each moment works when pressed.
func TestButtons(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	pr := r.draft()
	r.start()

	r.deliver(r.says(pr.Number, "/ship FAIL at it"))
	r.endedTurns(1, patience)
	check := r.check(t, "failure", "retry", "ready")
	r.deliver(r.host.CheckRerequest(rigRepo, check.ID, "mona"))
	r.endedTurns(2, patience)
	check = r.check(t, "failure", "retry", "ready")
	retry := r.host.CheckAction(rigRepo, check.ID, "mona", "retry")
	r.deliver(retry)
	r.deliver(retry)
	r.endedTurns(3, patience)

	r.deliver(r.says(pr.Number, "/ship SLOWLY now"))
	r.await("the agent to be at work", patience, func() bool { return r.working(4) })
	check = r.check(t, "", "stop")
	r.deliver(r.host.CheckAction(rigRepo, check.ID, "mona", "stop"))
	r.endedTurns(4, patience)
	check = r.check(t, "cancelled", "retry", "ready")
	if work, _ := r.host.File(rigRepo, "topic", "WORK.md"); work != "began: SLOWLY now" {
		t.Errorf("the work so far is %q", work)
	}

	r.deliver(r.host.CheckAction(rigRepo, check.ID, "mona", "ready"))
	r.await("the draft mark to go", patience, func() bool { return !r.host.PullRequests(rigRepo)[0].Draft })
	r.await("all sessions to be quiet", patience, r.quiet)
	r.stop()
}

// working tells whether the agent is at work on the n-th turn.
func (r *rig) working(n int) bool {
	for _, s := range r.states() {
		if s.Turn != nil && s.Turn.N == n && s.Conversation != "" && s.Turn.Progress.Doing != "" && s.Turn.Stage == "running" {
			return true
		}
	}
	return false
}

// check is the newest check run, which must be in some state and have these
// buttons.
func (r *rig) check(t *testing.T, conclusion string, buttons ...string) githubtest.Check {
	t.Helper()
	all := r.host.Checks(rigRepo, "")
	if len(all) == 0 {
		t.Fatalf("there is no check run:\n%s", r.host.World())
	}
	last := all[len(all)-1]
	var got []string
	for _, a := range last.Actions {
		got = append(got, a.Identifier)
	}
	if last.Conclusion != conclusion || !slices.Equal(got, buttons) {
		t.Errorf("the check is %q with the buttons %v; want %q, %v", last.Conclusion, got, conclusion, buttons)
	}
	return last
}

// TestRefusals: what cannot be done is said in the thread, with what would
// help, and nothing runs.
func TestRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{more: "limits: {max_budget_usd: 20}\n"})
	fork, err := r.host.Fork(rigRepo, "octofork")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.host.Commit(fork, "patch", map[string]string{"patch.md": "from outside\n"}, "patch"); err != nil {
		t.Fatal(err)
	}
	outside := r.host.CreatePull(rigRepo, githubtest.Pull{User: "octofork", Title: "From a fork", Head: "patch", HeadRepo: fork})
	closed := r.draft().Number
	r.host.ClosePull(rigRepo, closed, false)
	r.start()
	for _, c := range []struct {
		number     int
		say, wants string
	}{
		{outside, "/ship fix it", "Push the branch there"},
		{closed, "/ship fix it", "Reopen it"},
		{r.issue, "/ship model nope", "`stand-in/scripted`"},
		{r.issue, "/ship [model=nope] fix it", "Choose one of"},
		{r.issue, "/ship [branch=nope] fix it", "no branch `nope`"},
		{r.issue, "/ship [repo=acme/other] fix it", "`acme/other`"},
		{r.issue, "/ship budget 50", "$20.00"},
		{r.issue, "/ship budget lots", "/ship budget"},
		{r.issue, "/ship ready", "no open pull request"},
		{r.issue, "/ship stop", "nothing to stop"},
		{r.issue, "/ship retry", "nothing to retry"},
	} {
		before := r.said(c.number, "")
		r.deliver(r.says(c.number, c.say))
		r.await("the answer to "+c.say, patience, func() bool { return r.said(c.number, "") == before+1 })
		if all := r.host.Comments(rigRepo, c.number); !strings.Contains(all[len(all)-1].Body, c.wants) {
			t.Errorf("%s was answered with\n%s\nwithout %q", c.say, all[len(all)-1].Body, c.wants)
		}
	}
	if n := r.turns(); n != 0 {
		t.Errorf("%d turns", n)
	}
	r.stop()
}

// TestSettingsByComment: a model and a budget are taken for the turns to come,
// and two commands in one comment are carried out both.
func TestSettingsByComment(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	r.start()
	r.deliver(r.says(r.issue, "/ship budget $7.50\n\n/ship model scripted"))
	r.await("both answers", patience, func() bool { return r.said(r.issue, "$7.50") == 1 && r.said(r.issue, "`stand-in/scripted`") == 1 })
	r.deliver(r.says(r.issue, "Both please:\n/ship fix the widgets\n/ship [model=stand-in/scripted] and oil them"))
	r.ended(r.issue, patience)
	r.checkOutcome(t, 2)
	if s := r.states()[0]; s.Budget != 7.5 || s.Turns != 1 {
		t.Errorf("%d turns, and each may spend $%.2f", s.Turns, s.Budget)
	}
	r.stop()
}

// TestNotForUs: what a bot says, what ship itself says, what is quoted and what
// is code starts nothing, and neither does an edit.
func TestNotForUs(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	r.host.SetPermission(rigRepo, "robot[bot]", "write")
	r.start()
	edited := r.says(r.issue, "/ship fix it")
	edited.Body = []byte(strings.Replace(string(edited.Body), `"action":"created"`, `"action":"edited"`, 1))
	for _, d := range []githubtest.Delivery{
		r.host.IssueComment(rigRepo, r.issue, "robot[bot]", "/ship fix it"),
		r.host.IssueComment(rigRepo, r.issue, r.host.BotLogin(), "/ship fix it"),
		r.says(r.issue, "<!-- ship:say=1 -->\n/ship fix it"),
		r.says(r.issue, "> /ship fix it"),
		r.says(r.issue, "```\n/ship fix it\n```"),
		r.says(r.issue, "    /ship fix it"),
		r.says(r.issue, "please /ship fix it"),
		r.says(r.issue, "/shipping is hard"),
		edited,
	} {
		if status := r.send(d); status != http.StatusOK {
			t.Errorf("answered with %d: %s", status, d.Body)
		}
	}
	if n := r.seq(); n != 0 {
		t.Errorf("%d events came of it:\n%s", n, r.host.World())
	}
	r.stop()
}

// TestQuestion: where nothing had to change, there is an answer and nothing
// else.
func TestQuestion(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{})
	r.start()
	r.deliver(r.says(r.issue, "/ship WHY do they not turn?"))
	text := r.ended(r.issue, patience)
	if !strings.Contains(text, "✅") || !strings.Contains(text, "Did: WHY do they not turn?") {
		t.Errorf("the comment does not answer:\n%s", text)
	}
	if len(r.host.PullRequests(rigRepo)) > 0 || len(r.host.Branches(rigRepo)) != 1 || len(r.host.Checks(rigRepo, "")) > 0 {
		t.Errorf("there is more than an answer:\n%s", r.host.World())
	}
	r.stop()
}
