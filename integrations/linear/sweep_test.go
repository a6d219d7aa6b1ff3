package linear

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	ql "ship/graphql/linear"
	"ship/integrations/linear/lineartest"
	"ship/session"
)

// late has a frozen owner speak after the end.
func (s *stage) late(n int) {
	s.t.Helper()
	w := &work{Performer: s.performer, workspace: s.performer.app.workspace(s.thread.organization), thread: s.thread}
	u := utterance{id: derived("late", fmt.Sprint(n)), content: ql.Action("Running", "go test ./...", ""), ephemeral: true, priority: Settling}
	if err := w.create(s.t.Context(), u); err != nil {
		s.t.Fatal(err)
	}
}

// TestSweep: who spoke late is spoken over, once.
func TestSweep(t *testing.T) {
	t.Parallel()
	question := completed()
	question.Question = &session.Question{Text: "Which one?"}
	for name, tt := range map[string]struct {
		state  func(*stage) session.State
		want   ql.ContentType // of what the sweep says; empty: nothing
		status ql.AgentSessionStatus
	}{
		"done": {func(s *stage) session.State { return s.ended(completed()) }, ql.TypeResponse, ql.AgentSessionStatusComplete},
		"failed": {func(s *stage) session.State {
			return s.ended(session.Outcome{Ending: session.Stalled, Say: "Nothing moved."})
		},
			ql.TypeError, ql.AgentSessionStatusError},
		"the agent asked": {func(s *stage) session.State { return s.ended(question) }, ql.TypeElicitation, ql.AgentSessionStatusAwaitinginput},
		"we asked": {func(s *stage) session.State {
			j := session.Job{State: s.ended(completed())}
			asking(s, &j)
			return j.State
		}, ql.TypeElicitation, ql.AgentSessionStatusAwaitinginput},
		"at work": {func(s *stage) session.State { return s.working() }, "", ql.AgentSessionStatusActive},
		"an answer is on its way": {func(s *stage) session.State {
			state, thread := s.ended(completed()), s.thread.session()
			state.Pending = []session.Effect{{ID: "x", Kind: session.Answer, Thread: &thread}}
			return state
		}, "", ql.AgentSessionStatusActive},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, lineartest.Options{})
			s.late(1)
			j := s.job(session.Sweep, tt.state(s))
			s.Inject(lineartest.Fault{On: "CreateActivity", Lost: true})
			s.Inject(lineartest.Fault{On: "Ask", Lost: true})
			if tt.want != "" {
				s.fails(j)
			}
			s.do(j)
			s.do(j)
			want := []ql.ContentType{ql.TypeAction}
			if tt.want != "" {
				want = append(want, tt.want)
			}
			var got []ql.ContentType
			for _, a := range s.Session(s.thread.agentSession).Activities {
				got = append(got, a.Content.Type)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("said (-want +got):\n%s\n%q", diff, s.said())
			}
			if got := s.Session(s.thread.agentSession).Status; got != tt.status {
				t.Errorf("status %s, want %s", got, tt.status)
			}
		})
	}
}

// TestSweepLeavesTheEnd where it is the last, also behind many pages and with
// words of others after it.
func TestSweepLeavesTheEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t, lineartest.Options{})
	for i := range 60 {
		w := &work{Performer: s.performer, workspace: s.performer.app.workspace(s.thread.organization), thread: s.thread}
		if err := w.create(t.Context(), utterance{id: derived("talk", fmt.Sprint(i)), content: ql.Thought("Hm."), priority: Settling}); err != nil {
			t.Fatal(err)
		}
	}
	s.do(s.job(session.Answer, s.ended(completed())))
	for range 55 {
		s.Prompt(s.thread.agentSession, "ada", "Thanks.")
	}
	n := len(s.said())
	s.do(s.job(session.Sweep, s.ended(completed())))
	if said := s.said(); len(said) != n {
		t.Errorf("said %q", said[n:])
	}
}

// TestSweepOfSilence: where we never spoke there is nothing to set right.
func TestSweepOfSilence(t *testing.T) {
	t.Parallel()
	s := newStage(t, lineartest.Options{})
	s.do(s.job(session.Sweep, s.ended(completed())))
	if said := s.said(); len(said) != 0 {
		t.Errorf("said %q", said)
	}
}
