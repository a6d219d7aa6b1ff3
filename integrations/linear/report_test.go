package linear

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	ql "ship/graphql/linear"
	"ship/integrations/linear/lineartest"
	"ship/session"
	"ship/session/memory"
)

// reported is a state after a report on it: what was shown is remembered.
func reported(s session.State, done session.Performed) session.State {
	voices := append([]session.Voice{}, s.Threads...)
	voices[0].Ref, voices[0].Shown, voices[0].At = done.Ref, done.Shown, time.Now()
	s.Threads = voices
	return s
}

// report reports on a state under an id of its own.
func (s *stage) report(n int, state session.State) session.State {
	s.t.Helper()
	j := s.job(session.Report, state)
	j.Effect.ID = derived(j.Effect.ID, fmt.Sprint(n))
	done := s.do(j)
	if want := session.ViewOf(state).Digest(); done.Shown != want {
		s.t.Errorf("shown %q, want %q", done.Shown, want)
	}
	return reported(state, done)
}

// TestReport: what is shown of a turn in each of its phases.
func TestReport(t *testing.T) {
	t.Parallel()
	plan := ql.Plan{{Content: "Find the flake", Status: ql.StepCompleted}, {Content: "Fix it", Status: ql.StepInProgress}}
	for name, tt := range map[string]struct {
		change func(*session.State)
		want   []string
		plan   ql.Plan
	}{
		"working": {func(*session.State) {}, []string{`passing action "Running" "go test ./..."`}, plan},
		"setting up": {func(s *session.State) { s.Turn.Stage, s.Turn.Progress = session.Preparing, session.Progress{} },
			[]string{"passing thought: Setting up a sandbox with `acme/widgets`."}, nil},
		"queued": {func(s *session.State) { s.Turn.Stage, s.Turn.Progress = session.Preparing, session.Progress{Place: 3} },
			[]string{"passing thought: Waiting for a sandbox, number 3 in line. I begin as soon as there is room."}, nil},
		"no more than a word": {func(s *session.State) { s.Turn.Progress = session.Progress{Steps: []string{"thinking"}} },
			[]string{`passing action "Thinking about" "Login test is flaky"`}, nil},
		"nothing but a word": {func(s *session.State) {
			s.Title, s.Repo.Name, s.Turn.Progress = "", "", session.Progress{Doing: "finished"}
		}, []string{`passing action "Finishing" "the request"`}, nil},
		"hostile": {func(s *session.State) {
			s.Turn.Progress = session.Progress{
				Steps: []string{"bash: echo @bob https://linear.app/acme/profiles/bob\n\n# now"}, Todos: []session.Todo{{Text: "ask @bob"}, {Text: " \n"}},
			}
		}, []string{`passing action "Running" "echo @` + `\u200b` + `bob https://linear.` + `\u200b` + `app/acme/profiles/bob # now"`},
			ql.Plan{{Content: "ask @\u200bbob", Status: ql.StepPending}}},
		"stopping":   {func(s *session.State) { s.Turn.Stopping = "ada" }, nil, plan},
		"publishing": {func(s *session.State) { s.Turn.Stage = session.Publishing }, nil, plan},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, lineartest.Options{})
			state := s.working()
			tt.change(&state)
			state = s.report(1, state)
			if diff := cmp.Diff(tt.want, s.said()); diff != "" {
				t.Errorf("said (-want +got):\n%s", diff)
			}
			got := s.Session(s.thread.agentSession)
			if diff := cmp.Diff(tt.plan, got.Plan); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			before := s.requests()
			if s.report(2, state); s.requests() != before {
				t.Errorf("%d requests for what is shown already", s.requests()-before)
			}
		})
	}
}

// TestReportShowsWhatDiffers, and nothing else.
func TestReportShowsWhatDiffers(t *testing.T) {
	t.Parallel()
	s := newStage(t, lineartest.Options{})
	state := s.report(1, s.working())
	calls := func() (n [4]int) {
		for i, o := range []string{"CreateActivity", "SetPlan", "SetURLs", "LinkPullRequest"} {
			n[i] = s.Calls(o)
		}
		return n
	}
	for i, tt := range []struct {
		change func(*session.State)
		want   [4]int
	}{
		{func(s *session.State) { s.Turn.Progress.Usage.Calls++ }, [4]int{1, 1, 0, 0}},
		{func(s *session.State) { s.Turn.Progress.Steps = []string{"edit: login_test.go"} }, [4]int{2, 1, 0, 0}},
		{func(s *session.State) { s.Turn.Progress.Todos = []session.Todo{{Text: "Fix it"}} }, [4]int{2, 2, 0, 0}},
		{func(s *session.State) {
			s.PR = &session.PullRequest{Number: 7, URL: "https://github.com/acme/widgets/pull/7"}
		}, [4]int{2, 2, 1, 1}},
		{func(s *session.State) { s.Threads[0].Shown = "" }, [4]int{2, 3, 2, 1}}, // as after a sweep
		{func(s *session.State) {
			s.PR = &session.PullRequest{Number: 8, URL: "https://github.com/acme/widgets/pull/8"}
		}, [4]int{2, 3, 3, 2}},
		{func(s *session.State) { s.PR = &session.PullRequest{Number: 9, URL: "javascript:alert(1)"} }, [4]int{2, 3, 3, 2}},
		{func(s *session.State) { s.Turn.Progress.Todos = nil }, [4]int{2, 3, 3, 2}},
	} {
		tt.change(&state)
		state = s.report(i+2, state)
		if got := calls(); got != tt.want {
			t.Errorf("change %d: calls %v, want %v", i, got, tt.want)
		}
	}
	issue := s.Issue(s.issue)
	if len(issue.Attachments) != 2 || issue.Attachments[0].Title != "acme/widgets #7" || issue.Attachments[0].Source != "github" {
		t.Errorf("attachments %+v", issue.Attachments)
	}
	want := []ql.Link{{Label: "Pull request #8", Url: "https://github.com/acme/widgets/pull/8"}, {Label: "Checks", Url: "https://github.com/acme/widgets/pull/8/checks"}}
	if diff := cmp.Diff(want, s.Session(s.thread.agentSession).Links); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

// TestReportOnce: performed again after an answer that was lost, whichever it
// was.
func TestReportOnce(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"CreateActivity", "SetPlan", "SetURLs", "LinkPullRequest"} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, lineartest.Options{})
			state := s.working()
			state.PR = &session.PullRequest{Number: 7, URL: "https://github.com/acme/widgets/pull/7"}
			s.Inject(lineartest.Fault{On: operation, Lost: true})
			j := s.job(session.Report, state)
			if p := s.fails(j); !p.Again || p.Gone {
				t.Errorf("problem %+v", p)
			}
			j.Repeat = true
			s.do(j)
			s.do(j)
			got := s.Session(s.thread.agentSession)
			if len(s.said()) != 1 || len(got.Plan) != 2 || len(got.Links) != 2 || len(s.Issue(s.issue).Attachments) != 1 {
				t.Errorf("said %q, session %+v", s.said(), got)
			}
		})
	}
}

// TestHeartbeat: Linear must not take a long step for death.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	s := newStage(t, lineartest.Options{})
	state := s.report(1, s.working())
	state.Turn.Started = time.Now().Add(-72 * time.Minute)
	ago := func(d time.Duration) {
		has := parseShown(state.Threads[0].Ref)
		has.spoke = time.Now().Add(-d)
		state.Threads[0].Ref = has.String()
	}
	ago(5 * time.Minute)
	state = s.report(2, state)
	if n := len(s.said()); n != 1 {
		t.Errorf("after five minutes: %q", s.said())
	}
	ago(silence)
	s.drain(0.2) // not enough for progress, but for a sign of life
	state = s.report(3, state)
	s.report(4, state)
	want := "passing thought: Still running `go test ./...`, 1 h 12 min so far."
	if said := s.said(); len(said) != 2 || said[1] != want {
		t.Errorf("said %q", said)
	}
}

// TestReportAfterTheEnd shows what is left, and says nothing: the answer stays
// the last.
func TestReportAfterTheEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t, lineartest.Options{})
	state := s.report(1, s.working())
	over := s.ended(completed())
	over.Threads = state.Threads
	s.do(s.job(session.Answer, over))
	s.drain(0.2)
	over = s.report(2, over)
	over.Threads[0].Ref = "" // and when nothing is remembered
	over.Turn.Started = time.Now().Add(-time.Hour)
	s.report(3, over)
	got := s.Session(s.thread.agentSession)
	if last := got.Activities[len(got.Activities)-1]; last.Content.Type != ql.TypeResponse || got.Status != ql.AgentSessionStatusComplete {
		t.Errorf("status %s, last %+v", got.Status, last)
	}
	if len(got.Links) != 2 || got.Plan[1].Status != ql.StepPending {
		t.Errorf("links %+v, plan %+v", got.Links, got.Plan)
	}
}

// TestNoRoomForProgress: it is skipped at once, and the answer goes through. What
// is left must be shown at the end, so it waits.
func TestNoRoomForProgress(t *testing.T) {
	t.Parallel()
	s := newStage(t, lineartest.Options{})
	s.drain(0.3)
	begun := time.Now()
	s.report(1, s.working())
	if n := s.requests(); n != 0 || time.Since(begun) > patience/2 {
		t.Errorf("%d requests in %s", n, time.Since(begun))
	}
	s.drain(0.01)
	s.do(s.job(session.Answer, s.ended(completed())))
	if said := s.said(); len(said) != 1 || !strings.HasPrefix(said[0], "response: ") {
		t.Errorf("said %q", said)
	}
}

// TestEndIsShownLater: what there was no room for, but nobody is kept waiting
// for it.
func TestEndIsShownLater(t *testing.T) {
	t.Parallel()
	s := newStage(t, lineartest.Options{})
	state := s.ended(completed())
	digest := session.ViewOf(state).Digest()
	s.drain(0.05)
	done := s.do(s.job(session.Report, state))
	if phase, _, ok := strings.Cut(done.Shown, ":"); done.Shown == digest || !ok || phase != string(session.PhaseEnded) {
		t.Errorf("shown %q of %q", done.Shown, digest)
	}
	state = reported(state, done)
	waited := state
	waited.Waiting = []session.Admitted{{Request: s.asked()}}
	if done := s.do(s.job(session.Report, waited)); done.Shown != digest || s.requests() != 0 {
		t.Errorf("shown %q of %q, %d requests", done.Shown, digest, s.requests())
	}
	s.Inject(lineartest.Limited("LinkPullRequest", time.Now()))
	s.quota = &memory.Quota{}
	s.performer = s.gateway(&http.Transport{DisableKeepAlives: true})
	state = reported(state, s.do(s.job(session.Report, state)))
	s.quota = &memory.Quota{}
	s.performer = s.gateway(&http.Transport{DisableKeepAlives: true})
	if done := s.do(s.job(session.Report, state)); done.Shown != digest {
		t.Errorf("shown %q of %q", done.Shown, digest)
	}
	if s.Calls("SetURLs") != 1 || s.Calls("SetPlan") != 1 || len(s.Issue(s.issue).Attachments) != 1 {
		t.Errorf("%d requests for links, %d for the plan, attachments %+v", s.Calls("SetURLs"), s.Calls("SetPlan"), s.Issue(s.issue).Attachments)
	}
}

// TestProgressRefusedForTheRate is skipped like progress that there is no room
// for.
func TestProgressRefusedForTheRate(t *testing.T) {
	t.Parallel()
	s := newStage(t, lineartest.Options{})
	s.Inject(lineartest.Limited("SetPlan", time.Now().Add(time.Hour)))
	s.report(1, s.working())
	if n := s.requests(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestPlanRefused: Linear may change its mind about plans. The rest is shown,
// and it is not asked again and again.
func TestPlanRefused(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
		s := newStage(t, lineartest.Options{})
		s.Inject(lineartest.Failing("SetPlan", status, "INPUT_ERROR", "plan must be an object"))
		s.Inject(lineartest.Failing("LinkPullRequest", status, "INPUT_ERROR", "no integration"))
		state := s.working()
		state.PR = &session.PullRequest{Number: 7, URL: "https://git.acme.example/acme/widgets/pull/7"}
		state = s.report(1, state)
		s.report(2, state)
		if n := s.Calls("SetPlan"); n != 1 || len(s.said()) != 1 {
			t.Errorf("%d requests, said %q", n, s.said())
		}
		if a := s.Issue(s.issue).Attachments; len(a) != 1 || a[0].Subtitle != "Pull request" {
			t.Errorf("attachments %+v", a)
		}
	}
}

// TestWholeTurn: what Linear shows of one, from the request to the answer.
func TestWholeTurn(t *testing.T) {
	t.Parallel()
	s := newStage(t, lineartest.Options{})
	s.do(acknowledged(session.Instruct, "")(s))
	state := s.working()
	state.Turn.Stage, state.Turn.Progress = session.Preparing, session.Progress{}
	state = s.report(1, state)
	state.Turn.Stage, state.Turn.Progress = session.Running, s.working().Turn.Progress
	state = s.report(2, state)
	if got := s.Session(s.thread.agentSession).Status; got != ql.AgentSessionStatusActive {
		t.Errorf("status %s", got)
	}
	over := s.ended(completed())
	over.Threads = state.Threads
	s.do(s.job(session.Answer, over))
	s.report(3, over)

	var left []string
	for _, a := range s.Session(s.thread.agentSession).Activities {
		if !a.Gone {
			left = append(left, string(a.Content.Type))
		}
	}
	if diff := cmp.Diff([]string{"thought", "response"}, left); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	if got := s.Session(s.thread.agentSession); got.Status != ql.AgentSessionStatusComplete || got.Answered > time.Second {
		t.Errorf("status %s, answered after %s", got.Status, got.Answered)
	}
}

func TestShown(t *testing.T) {
	t.Parallel()
	for _, s := range []shown{{}, {plan: "a", links: "b", step: "c", pull: "d", spoke: time.Unix(1794787200, 0)}} {
		if got := parseShown(s.String()); got != s {
			t.Errorf("got %+v, want %+v", got, s)
		}
	}
}

func FuzzShown(f *testing.F) {
	for _, seed := range []string{"", "....", "a.b.c.d.tk2c00", "a.b.c.d.-1", "a.b.c.d.!", "a.b", "a.b.c.d.e.f"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		s := parseShown(ref)
		if again := parseShown(s.String()); again != s {
			t.Errorf("%+v became %+v", s, again)
		}
	})
}

func TestPace(t *testing.T) {
	t.Parallel()
	for running, want := range map[time.Duration]time.Duration{
		0: 10 * time.Second, 2 * time.Minute: 30 * time.Second, 10 * time.Minute: 75 * time.Second, 5 * time.Hour: 75 * time.Second,
	} {
		if got := Pace(running); got.Every != want || got.Silence != 9*time.Minute {
			t.Errorf("after %s: %+v", running, got)
		}
	}
}
