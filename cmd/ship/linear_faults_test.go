package main

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	ql "ship/graphql/linear"
	"ship/integrations/linear/lineartest"
	"ship/session"
)

// linearOperations are all that ship asks of Linear, without what Recover does.
func linearOperations() []string {
	return []string{
		"token", "ReadViewer", "ReadIssue", "ReadIssueComments", "ReadStartedStates", "SuggestRepositories",
		"CreateActivity", "Ask", "MoveIssue", "DelegateIssue", "SetPlan", "SetURLs", "LinkPullRequest",
	}
}

// asked is how often Linear was asked for anything.
func (r *linearRig) asked() (n int) {
	for _, name := range append(linearOperations(), "ReadUsers", "ReadActivity", "ReadActivities", "ReadSessions", "ReadComments", "Attach") {
		n += r.linear.Calls(name)
	}
	return n
}

// ends counts the ends and questions that the app has said.
func (r *linearRig) ends(id string) (n int) {
	return len(r.said(id, ql.TypeResponse)) + len(r.said(id, ql.TypeError)) + len(r.said(id, ql.TypeElicitation))
}

// settled waits until so many ends and questions were said, one of them last,
// and nothing is left to do; then it demands what holds after any fault.
func (r *linearRig) settled(id string, ends int, limit time.Duration) {
	r.t.Helper()
	r.await("the session to come to rest", limit, func() bool {
		return r.ends(id) >= ends && r.last(id).Content.Type != ql.TypeThought && r.last(id).Content.Type != ql.TypeAction && r.quiet()
	})
	if n := r.ends(id); n != ends {
		r.t.Errorf("%d ends and questions were said, want %d:\n%s", n, ends, r.linear.World())
	}
	for _, step := range r.linear.Session(id).Plan {
		if step.Status == ql.StepInProgress {
			r.t.Errorf("the plan goes on: %+v", step)
		}
	}
	if n := len(r.boxes()); n > len(r.states()) {
		r.t.Errorf("%d boxes are left", n)
	}
}

// calm demands that Linear is asked for nothing any more.
func (r *linearRig) calm() {
	r.t.Helper()
	before := r.asked()
	time.Sleep(3 * time.Second) // what is not to happen has no signal
	if n := r.asked() - before; n > 0 {
		r.t.Errorf("linear is asked for %d things more", n)
	}
}

// linearTour goes through all that there is: a question of ours, a turn with a
// plan, one that ends with the agent's question, and its answer.
func linearTour(t *testing.T, faults []lineartest.Fault) string {
	t.Helper()
	r := newLinearRig(t, linearOptions{unrouted: true})
	for _, f := range faults {
		r.linear.Inject(f)
	}
	r.start()
	id, d := r.linear.Mention(lineartest.Mention{Issue: r.issue, By: "ada", Body: "@ship PLAN to turn them"})
	r.tell(d)
	for i, text := range []string{rigRepo, "paint them ASK", "Blue"} {
		r.settled(id, i+1, patience)
		r.tell(r.linear.Prompt(id, "ada", text))
	}
	r.settled(id, 4, patience)
	for _, f := range faults {
		if n := r.linear.Calls(f.On); n <= f.Skip {
			t.Errorf("%s was asked for %d times, so nothing struck it", f.On, n)
		}
	}
	if n := r.asked(); n > 120 {
		t.Errorf("linear was asked for %d things", n)
	}
	r.work(t, 3)
	s := r.linear.Session(id)
	if len(s.Links) != 2 || cmp.Diff(ql.Plan{{Content: "Oil them", Status: ql.StepCompleted}}, s.Plan) != "" {
		t.Errorf("it shows %+v and %+v", s.Links, s.Plan)
	}
	r.calm()
	r.stop()
	return r.world()
}

// TestFaultsOfLinear: every operation fails in each way that there is, and the
// world is as if nothing had.
func TestFaultsOfLinear(t *testing.T) {
	t.Parallel()
	every := func(kinds ...lineartest.Fault) (all []lineartest.Fault) {
		for i, name := range linearOperations() {
			f := kinds[i%len(kinds)]
			f.On = name
			all = append(all, f)
		}
		return all
	}
	soon := http.Header{}
	soon.Set("X-RateLimit-Endpoint-Requests-Remaining", "0")
	soon.Set("X-RateLimit-Endpoint-Requests-Reset", strconv.FormatInt(time.Now().UnixMilli(), 10))
	limited := lineartest.Limited("", time.Now())
	limited.Header = soon
	tours(t, linearTour, map[string][]lineartest.Fault{
		"clean":       nil,
		"answer lost": every(lineartest.Fault{Lost: true}),
		"trouble": every(
			lineartest.Fault{Status: http.StatusBadGateway, Body: "<html>Bad Gateway</html>"},
			lineartest.Failing("", http.StatusOK, "INTERNAL_SERVER_ERROR", "lock timeout"),
		),
		"rate": every(limited)[1:], // the token address has no such limit
	})
}

// slowly has ada ask for work that takes until it is stopped, or as the words
// say, and waits until the agent is at it.
func (r *linearRig) slowly(words string) (id string) {
	r.t.Helper()
	id, d := r.linear.Mention(lineartest.Mention{Issue: r.issue, By: "ada", Body: "@ship " + words})
	r.tell(d)
	r.await("the agent to work", patience, func() bool { return r.working() })
	return id
}

// TestLinearDown: Linear is away from before the answer until after. Nothing is
// lost, and it is not asked without end.
func TestLinearDown(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{})
	r.start()
	id := r.slowly("PLAN TAKING 3s")
	r.linear.Inject(lineartest.Fault{Status: http.StatusServiceUnavailable, Times: -1})
	before := r.asked()
	r.await("the turn to end", patience, func() bool { s := r.states()[0]; return s.Turn.Stage == session.Ended })
	time.Sleep(6 * time.Second)
	if n := r.asked() - before; n < 2 || n > 20 {
		t.Errorf("linear was asked for %d things while it was away", n)
	}
	r.linear.ClearFaults()
	r.settled(id, 1, patience)
	r.work(t, 2)
	if s := r.linear.Session(id); len(s.Links) != 2 || len(s.Plan) != 1 {
		t.Errorf("it shows %+v and %+v", s.Links, s.Plan)
	}
	r.tell(r.linear.Prompt(id, "ada", "oil them"))
	r.settled(id, 2, patience)
	r.calm()
	r.stop()
}

// TestLinearDownAtTheStart: what was missed is found when Linear is back, not
// at the next of the rare looks.
func TestLinearDownAtTheStart(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{})
	r.linear.Inject(lineartest.Fault{Status: http.StatusServiceUnavailable, Times: -1})
	id, _ := r.linear.Mention(lineartest.Mention{Issue: r.issue, By: "ada", Body: "@ship turn them"})
	r.start()
	r.await("the first look", patience, func() bool { return r.asked() > 0 })
	r.linear.ClearFaults()
	r.settled(id, 1, patience)
	r.work(t, 1)
	r.stop()
}

// TestLinearToken: in mid-turn the token is refused, and nobody hands out
// another for a while.
func TestLinearToken(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{})
	r.start()
	id := r.slowly("TAKING 3s")
	r.linear.Inject(lineartest.Fault{On: "token", Status: http.StatusServiceUnavailable, Times: 2})
	r.linear.ExpireTokens()
	r.settled(id, 1, patience)
	if n := r.linear.Calls("token"); n > 5 {
		t.Errorf("a token was asked for %d times", n)
	}
	r.work(t, 2)
	r.stop()
}

// TestLinearSecretRotated in mid-turn: the answer is said when the settings have
// the new secret.
func TestLinearSecretRotated(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{})
	r.start()
	id := r.slowly("TAKING 3s")
	old := r.linear.ClientSecret()
	r.linear.RotateSecret()
	r.await("the turn to end", patience, func() bool { s := r.states()[0]; return s.Turn.Stage == session.Ended })
	time.Sleep(3 * time.Second)
	if n := r.linear.Calls("token"); n > 5 {
		t.Errorf("a token was asked for %d times", n)
	}
	r.stop()
	r.edit(old, r.linear.ClientSecret())
	r.start()
	r.settled(id, 1, patience)
	r.work(t, 2)
	r.stop()
}

// edit changes the settings.
func (r *rig) edit(old, with string) {
	r.t.Helper()
	text, err := os.ReadFile(r.config)
	if err == nil {
		err = os.WriteFile(r.config, []byte(strings.ReplaceAll(string(text), old, with)), 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// TestLinearKilledInAQuestion: ship dies while a question is open, and again
// while its answer is under way.
func TestLinearKilledInAQuestion(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{unrouted: true})
	r.start()
	id, d := r.assign()
	r.tell(d)
	r.settled(id, 1, patience)
	r.kill()
	asked, dead := make(chan struct{}), make(chan struct{})
	r.linear.Inject(lineartest.Fault{On: "ReadIssue", Do: func(*http.Request) { close(asked); <-dead }})
	choice := r.linear.Prompt(id, "ada", rigRepo)
	r.start()
	r.tell(choice)
	<-asked
	r.kill()
	close(dead)
	r.start()
	r.settled(id, 2, patience)
	r.work(t, 1)
	r.calm()
	r.stop()
}

// TestLinearRedisDies in mid-turn, for longer than the owner may go on.
func TestLinearRedisDies(t *testing.T) {
	t.Parallel()
	r := newLinearRig(t, linearOptions{})
	r.start()
	id := r.slowly("PLAN TAKING 18s")
	r.redis.Kill()
	steer := r.linear.Prompt(id, "ada", "and oil them")
	if status := r.post(steer); status != http.StatusServiceUnavailable {
		t.Errorf("a webhook that nobody can keep is answered with %d", status)
	}
	time.Sleep(12 * time.Second)
	r.redis.Restart()
	r.tell(steer)
	r.settled(id, 1, patience)
	r.work(t, 3)
	r.stop()
}

// TestLinearHangs: what is never answered is given up and repeated, and a stop
// does not wait for progress that is.
func TestLinearHangs(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"CreateActivity", "ReadIssue", "SetPlan", "LinkPullRequest", "token"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := newLinearRig(t, linearOptions{})
			r.linear.Inject(lineartest.Fault{On: what, Hang: true})
			r.start()
			id, d := r.linear.Mention(lineartest.Mention{Issue: r.issue, By: "ada", Body: "@ship PLAN SLOWLY"})
			r.tell(d)
			r.await("the agent to work", patience, func() bool { return r.working() })
			r.tell(r.linear.Stop(id, "ada"))
			r.settled(id, 1, patience)
			r.work(t, 1)
			r.stop()
		})
	}
}

// TestLinearStopWhileDown: a stop needs nothing of Linear. The work ends while
// nobody can be told, and people hear of it afterwards.
func TestLinearStopWhileDown(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]struct{ goes, comes func(*lineartest.Server) }{
		"away": {
			func(s *lineartest.Server) {
				s.Inject(lineartest.Fault{Status: http.StatusServiceUnavailable, Times: -1})
			},
			func(s *lineartest.Server) { s.ClearFaults() },
		},
		"used up": {
			func(s *lineartest.Server) { s.Spend(5000, 0) },
			func(s *lineartest.Server) { s.Advance(time.Hour) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newLinearRig(t, linearOptions{})
			r.start()
			id := r.slowly("SLOWLY turn them")
			away.goes(r.linear)
			r.tell(r.linear.Stop(id, "ada"))
			r.await("the work to end", patience, func() bool { return r.states()[0].Turn.Stage == session.Ended })
			away.comes(r.linear)
			// Links take from what is held back for ends, and may come later.
			r.await("the end to be told", patience, func() bool { return r.last(id).Content.Type == ql.TypeResponse })
			if n := r.ends(id); n != 1 || r.asked() > 40 {
				t.Errorf("%d ends were said, linear was asked for %d things", n, r.asked())
			}
			r.work(t, 1)
			r.stop()
		})
	}
}
