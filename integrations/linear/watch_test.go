package linear

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/integrations/linear/lineartest"
	"ship/session"
)

const permalink = "https://acme.slack.com/archives/C1/p1?thread_ts=1.0&cid=C1"

// watching is a stage whose issue is only named in a conversation elsewhere.
func watching(t *testing.T, issue lineartest.Issue) *stage {
	t.Helper()
	s := newStage(t, lineartest.Options{})
	issue.Team, issue.Title = "ENG", "Login test is flaky"
	s.issue = s.CreateIssue(issue)
	s.thread = thread{organization: s.OrganizationID(), issue: s.Issue(s.issue).ID}
	return s
}

// elsewhere is the state of the session that names it, in the middle of a turn.
func (s *stage) elsewhere() session.State {
	state := s.working()
	there := session.Thread{Platform: "slack", Key: "T1/C1/1.0"}
	state.ID, state.Title = "sl.T1.C1.1-0", "the words of the secret channel"
	state.Origin = &session.Origin{Name: "#secret-channel", URL: permalink}
	state.Turn.Requests[0].Thread, state.Turn.Requests[0].Text = there, "the words of the secret channel"
	state.Threads = []session.Voice{{Thread: s.thread.session(), Silent: true}, {Thread: there, Talks: true}}
	return state
}

// attached is what the issue shows of us, an attachment a line.
func (s *stage) attached() []string {
	var out []string
	for _, a := range s.Issue(s.issue).Attachments {
		out = append(out, strings.Trim(fmt.Sprintf("%s | %s | %s %s", a.Title, a.Subtitle, a.URL, a.Source), " "))
	}
	return out
}

// quiet fails if anything was said on the issue, or it was taken over.
func (s *stage) quiet() {
	s.t.Helper()
	i := s.Issue(s.issue)
	ours := func(c lineartest.Said) bool { return c.By == "ship" || c.By == "" }
	if i.Delegate != "" || len(s.Sessions(s.issue)) > 0 || slices.ContainsFunc(s.Comments(s.issue), ours) || s.Calls("CreateActivity") > 0 {
		s.t.Errorf("%+v, sessions %+v, comments %+v", i, s.Sessions(s.issue), s.Comments(s.issue))
	}
	if w := s.World(); strings.Contains(w, "secret") {
		s.t.Errorf("what was said elsewhere is shown:\n%s", w)
	}
}

// TestWatched: what an issue shows of each phase of a turn, and what it takes.
func TestWatched(t *testing.T) {
	t.Parallel()
	s := watching(t, lineartest.Issue{})
	state := s.elsewhere()
	pull := "acme/widgets #7 |  | https://github.com/acme/widgets/pull/7 github"
	card := func(standing string) string { return "ship: asked on acme.slack.com | " + standing + " | " + permalink }
	for i, step := range []struct {
		change func(*session.State)
		issue  string
		want   []string
		calls  int // for the card
	}{
		{func(s *session.State) { s.Turn.Stage, s.Turn.Progress.Place = session.Preparing, 2 }, "Todo", []string{card("Waiting for a sandbox")}, 1},
		{func(s *session.State) { s.Turn.Progress.Place = 1 }, "Todo", []string{card("Waiting for a sandbox")}, 1},
		{func(s *session.State) { s.Turn.Progress.Place = 0 }, "In Progress", []string{card("Setting up the sandbox")}, 2},
		{func(s *session.State) { s.Turn.Stage = session.Running }, "In Progress", []string{card("Working")}, 3},
		{func(s *session.State) { s.Turn.Progress.Steps = []string{"bash: ls secret"} }, "In Progress", []string{card("Working")}, 3},
		{func(s *session.State) { s.Turn.Stage = session.Publishing }, "In Progress", []string{card("Pushing the work")}, 4},
		{func(s *session.State) {
			o := completed()
			o.Answer = "the secret answer"
			s.PR = &session.PullRequest{Number: 7, URL: "https://github.com/acme/widgets/pull/7", Draft: true}
			s.Turn.Stage, s.Turn.Outcome, s.Turn.Changed = session.Ended, &o, true
		}, "In Progress", []string{card("Done, draft pull request #7 is up to date"), pull}, 5},
		{func(s *session.State) {
			s.Turns, s.Turn = 2, &session.Turn{N: 2, Stage: session.Running, Requests: s.Turn.Requests}
		}, "In Progress", []string{card("Working, pull request #7 is open"), pull}, 6},
		{func(s *session.State) {
			s.Turn.Stage, s.Turn.Outcome = session.Ended, &session.Outcome{Ending: session.Crashed, Say: "secret"}
		},
			"In Progress", []string{card("Something broke on the way"), pull}, 7},
	} {
		step.change(&state)
		for again := range 2 {
			state = s.report(10*i+again, state)
		}
		if diff := cmp.Diff(step.want, s.attached()); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
		if got := s.Issue(s.issue).State; got != step.issue || s.Calls("Attach") != step.calls {
			t.Errorf("step %d: %s, after %d requests", i, got, s.Calls("Attach"))
		}
	}
	if n := s.Calls("MoveIssue") + s.Calls("LinkPullRequest") + s.Calls("ReadIssue"); n != 3 {
		t.Errorf("%d requests besides", n)
	}
	s.quiet()
}

// TestWatchedMovesOnce: an issue is moved when work begins, and not when that is
// against what people made of it.
func TestWatchedMovesOnce(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"Todo": "In Progress", "Backlog": "In Progress", "Triage": "In Progress",
		"In Review": "In Review", "Done": "Done", "Canceled": "Canceled",
	} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			s := watching(t, lineartest.Issue{State: from})
			state := s.report(1, s.elsewhere())
			if got := s.Issue(s.issue).State; got != want {
				t.Fatalf("it is in %s, not in %s", got, want)
			}
			if from == "In Review" {
				return
			}
			s.Move(s.issue, "ada", "Backlog")
			state.Turns = 2
			state.Turn = &session.Turn{N: 2, Stage: session.Preparing, Requests: state.Turn.Requests}
			state.Threads[0].Shown = "" // as after a sweep
			s.report(2, state)
			if got := s.Issue(s.issue).State; got != "Backlog" {
				t.Errorf("moved again, to %s", got)
			}
			s.quiet()
		})
	}
}

// TestWatchedOnce: performed again after an answer that was lost, whichever it
// was.
func TestWatchedOnce(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"ReadIssue", "ReadStartedStates", "MoveIssue", "Attach", "LinkPullRequest"} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			s := watching(t, lineartest.Issue{})
			state := s.elsewhere()
			state.PR = &session.PullRequest{Number: 7, URL: "https://github.com/acme/widgets/pull/7"}
			s.Inject(lineartest.Fault{On: operation, Lost: true})
			j := s.job(session.Report, state)
			if p := s.fails(j); !p.Again || p.Gone {
				t.Errorf("problem %+v", p)
			}
			j.Repeat = true
			s.do(j)
			s.do(j)
			if got := s.attached(); len(got) != 2 || s.Issue(s.issue).State != "In Progress" || s.Calls("MoveIssue") != 1 {
				t.Errorf("%q in %s, moved %d times", got, s.Issue(s.issue).State, s.Calls("MoveIssue"))
			}
			s.quiet()
		})
	}
}

// TestWatchedWithoutAddress: where there is none that people can open, the pull
// request is all that is shown.
func TestWatchedWithoutAddress(t *testing.T) {
	t.Parallel()
	for name, origin := range map[string]*session.Origin{
		"none": nil, "empty": {}, "plain": {URL: "http://acme.slack.com/x"}, "script": {URL: "javascript:alert(1)"},
		"relative": {URL: "/archives"}, "user": {URL: "https://ada:pw@acme.slack.com/x"}, "broken": {URL: "https://%zz"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := watching(t, lineartest.Issue{})
			state := s.elsewhere()
			state.Origin = origin
			state = s.report(1, state)
			if got := s.attached(); len(got) != 0 || s.Issue(s.issue).State != "In Progress" {
				t.Errorf("%q", got)
			}
			state.PR = &session.PullRequest{Number: 7, URL: "https://github.com/acme/widgets/pull/7"}
			s.report(2, state)
			if got := s.attached(); len(got) != 1 || !strings.HasPrefix(got[0], "acme/widgets #7 ") {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestWatchedRefused: what Linear does not take is not sent again, and the rest
// is shown.
func TestWatchedRefused(t *testing.T) {
	t.Parallel()
	s := watching(t, lineartest.Issue{})
	s.Inject(lineartest.Failing("MoveIssue", 200, "FORBIDDEN", "no"))
	s.Inject(lineartest.Failing("Attach", 400, "INPUT_ERROR", "no such address"))
	state := s.elsewhere()
	state.PR = &session.PullRequest{Number: 7, URL: "https://github.com/acme/widgets/pull/7"}
	state = s.report(1, state)
	s.report(2, state)
	if got := s.attached(); len(got) != 1 || s.Calls("MoveIssue") != 1 || s.Calls("Attach") != 1 {
		t.Errorf("%q after %d and %d requests", got, s.Calls("MoveIssue"), s.Calls("Attach"))
	}
}

// TestWatchedGone: an issue that is not there for us any more is let go of.
func TestWatchedGone(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]bool{"before it is moved": false, "afterwards": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := watching(t, lineartest.Issue{})
			state := s.elsewhere()
			if begun {
				state = s.report(1, state)
				state.Turn.Stage = session.Publishing
			}
			s.ChangeAccess(nil, []string{"ENG"})
			if p := s.fails(s.job(session.Report, state)); !p.Gone {
				t.Errorf("problem %+v", p)
			}
		})
	}
}

// TestWatchedNoRoom: what there is no room for is left to the next report, and at
// the end owned up to.
func TestWatchedNoRoom(t *testing.T) {
	t.Parallel()
	s := watching(t, lineartest.Issue{State: "In Progress"})
	state := s.report(1, s.elsewhere())
	s.drain(0.05)
	o := completed()
	state.Turn.Stage, state.Turn.Outcome = session.Ended, &o
	done := s.do(s.job(session.Report, state))
	if phase, rest, _ := strings.Cut(done.Shown, ":"); phase != string(session.PhaseEnded) || rest != "" || s.Calls("Attach") != 1 {
		t.Errorf("shown %q", done.Shown)
	}
}

// TestWatchedOnly: nothing else is done there, and it is not tried again.
func TestWatchedOnly(t *testing.T) {
	t.Parallel()
	s := watching(t, lineartest.Issue{})
	state := s.elsewhere()
	s.do(s.job(session.Sweep, state))
	for _, k := range []session.EffectKind{
		session.Admit, session.Begin, session.Acknowledge, session.Say, session.Ask, session.Answer, session.Open, session.Reply,
	} {
		if p := s.fails(s.job(k, state)); p.Again || p.Gone || p.Say == "" {
			t.Errorf("%s: %+v", k, p)
		}
	}
	if n := s.requests() + s.Calls("ReadIssue"); n != 0 {
		t.Errorf("%d requests", n)
	}
	s.quiet()
}
