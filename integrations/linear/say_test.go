package linear

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	ql "ship/graphql/linear"
	"ship/integrations/linear/lineartest"
	"ship/session"
)

// speech is one thing that is said, and what Linear makes of it.
type speech struct {
	job    func(*stage) session.Job
	want   []string
	status ql.AgentSessionStatus
}

func acknowledged(verb session.Verb, ref string) func(*stage) session.Job {
	return func(s *stage) session.Job {
		j := s.job(session.Acknowledge, session.State{ID: s.thread.id()})
		j.Effect.Request, j.Effect.Ref = &session.Request{Verb: verb}, ref
		return j
	}
}

// saying is an effect with words, in a state that the function changes.
func saying(kind session.EffectKind, text string, change func(*stage, *session.Job)) func(*stage) session.Job {
	return func(s *stage) session.Job {
		j := s.job(kind, session.State{ID: s.thread.id()})
		j.Effect.Text = text
		if change != nil {
			change(s, &j)
		}
		return j
	}
}

func answering(o session.Outcome, change func(*session.State)) func(*stage) session.Job {
	return func(s *stage) session.Job {
		state := s.ended(o)
		if change != nil {
			change(&state)
		}
		return s.job(session.Answer, state)
	}
}

var where = []session.Choice{{Label: "acme/widgets", Value: "acme/widgets"}, {Value: "acme/api"}}

func asking(s *stage, j *session.Job) {
	j.State.Asking = &session.Asking{Request: s.asked(), Question: session.Question{Text: "Where?", Choices: where}}
}

const (
	whereSelect = ` select {"options":[{"label":"acme/widgets","value":"acme/widgets"},{"value":"acme/api"}]}`
	place       = "**[Draft pull request #7](https://github.com/acme/widgets/pull/7)** in `acme/widgets`, 2 files changed."
	price       = "`acme/large` · 3 model calls · $0.50 · 12 min"
)

func speeches() map[string]speech {
	question := completed()
	question.Question = &session.Question{Text: "Which one?", Choices: []session.Choice{{Label: "Harmless", Value: "the first"}}}
	return map[string]speech{
		"the first request": {acknowledged(session.Instruct, ""),
			[]string{"thought: Thanks, I'm looking into this. First I read it through and find the right repository."}, ql.AgentSessionStatusActive},
		"a later request": {acknowledged(session.Instruct, "a/c"), []string{"passing thought: Got it, I look into this now."}, ql.AgentSessionStatusActive},
		"stop": {func(s *stage) session.Job {
			j := acknowledged(session.Stop, "a/c")(s)
			j.State = s.working()
			return j
		}, []string{"passing thought: Stopping."}, ql.AgentSessionStatusActive},
		"stop when idle": {acknowledged(session.Stop, "a/c"), []string{"passing thought: One moment."}, ql.AgentSessionStatusActive},
		"a word in between": {saying(session.Say, "Working: `/ship stop` stops me.", func(s *stage, j *session.Job) { j.State = s.working() }),
			[]string{"thought: Working: `stop` stops me."}, ql.AgentSessionStatusActive},
		"a word when idle": {saying(session.Say, "Nothing is running here.", nil), []string{"response: Nothing is running here."}, ql.AgentSessionStatusComplete},
		"a refusal": {saying(session.Say, "You may not.", func(_ *stage, j *session.Job) { j.Effect.Refusal = true }),
			[]string{"error: You may not."}, ql.AgentSessionStatusError},
		"a word while we ask": {saying(session.Say, "Still waiting.", asking), []string{"elicitation: Still waiting." + whereSelect}, ql.AgentSessionStatusAwaitinginput},
		"a question": {saying(session.Ask, "Where?", func(_ *stage, j *session.Job) { j.Effect.Choices = where }),
			[]string{"elicitation: Where?" + whereSelect}, ql.AgentSessionStatusAwaitinginput},
		"a question without choices": {saying(session.Ask, "Where?", nil), []string{"elicitation: Where?"}, ql.AgentSessionStatusAwaitinginput},
		"done": {answering(completed(), nil),
			[]string{"response: " + place + " / The test waits for the server now. / Have a look. Reply with what to change, or `ready` to ask for review. / " + price}, ql.AgentSessionStatusComplete},
		"done, and no file changed": {answering(session.Outcome{Ending: session.Completed}, func(s *session.State) { s.PR, s.Turn.Changed = nil, false }),
			[]string{"response: Done, and no file had to change. / Reply if you want to know more, or with what to change. / `acme/large` · 12 min"}, ql.AgentSessionStatusComplete},
		"stopped": {answering(session.Outcome{Ending: session.Stopped, Say: "Stopped by ada. `/ship retry` starts it again."}, func(s *session.State) { s.PR, s.Turn.Changed = nil, false }),
			[]string{"response: Stopped by ada. / No file was changed. / Reply `retry` to go on, or with what to do instead. / `acme/large` · 12 min"}, ql.AgentSessionStatusComplete},
		"stuck": {answering(session.Outcome{Ending: session.Stuck, Say: "The same call failed three times.", Answer: "Hm."}, nil),
			[]string{"error: The same call failed three times. / What was done so far is in draft pull request [#7](https://github.com/acme/widgets/pull/7). / The agent's last words: / > Hm. / Reply with what to try differently, or `retry` to let it try again. / `acme/large` · 12 min"}, ql.AgentSessionStatusError},
		"the agent asks": {answering(question, nil),
			[]string{"elicitation: The test waits for the server now. / Which one? / - `the first`: Harmless / Reply with one of the choices, or in your own words. / " + place + " / " + price + ` select {"options":[{"value":"the first"}]}`}, ql.AgentSessionStatusAwaitinginput},
		"asked elsewhere": {answering(completed(), func(s *session.State) { s.Turn.Requests[0].Thread = session.Thread{Platform: "github", Key: "x"} }),
			[]string{"response: What was asked of me elsewhere is done. / " + place + " / " + price}, ql.AgentSessionStatusComplete},
		"mentions": {answering(session.Outcome{Ending: session.Completed, Answer: "Ask @bob, https://linear.app/acme/profiles/bob"}, func(s *session.State) { s.PR, s.Turn.Changed = nil, false }),
			[]string{"response: Ask @\u200bbob, https://linear.\u200bapp/acme/profiles/bob / Reply if you want to know more, or with what to change. / `acme/large` · 12 min"}, ql.AgentSessionStatusComplete},
	}
}

// TestSpeech: what is said, as what, and what the session looks like then.
func TestSpeech(t *testing.T) {
	t.Parallel()
	for name, tt := range speeches() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, lineartest.Options{})
			s.do(tt.job(s))
			if diff := cmp.Diff(tt.want, s.said()); diff != "" {
				t.Errorf("said (-want +got):\n%s", diff)
			}
			if got := s.Session(s.thread.agentSession).Status; got != tt.status {
				t.Errorf("status %s, want %s", got, tt.status)
			}
		})
	}
}

// TestSpeechOnce: performed again, after success and after an answer that was
// lost, and whichever status Linear refuses inputs with.
func TestSpeechOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range speeches() {
		for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newStage(t, lineartest.Options{InputStatus: status})
				j := tt.job(s)
				for _, operation := range []string{"CreateActivity", "Ask"} {
					s.Inject(lineartest.Fault{On: operation, Lost: true})
				}
				if p := s.fails(j); !p.Again || p.Gone {
					t.Errorf("problem %+v", p)
				}
				j.Repeat = true
				s.do(j)
				s.do(j)
				if diff := cmp.Diff(tt.want, s.said()); diff != "" {
					t.Errorf("said (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestPassingWordsMayBeGone: what made way for something else was said, all the
// same.
func TestPassingWordsMayBeGone(t *testing.T) {
	t.Parallel()
	for kind, repeated := range map[session.EffectKind]bool{session.Acknowledge: true, session.Say: false} {
		s := newStage(t, lineartest.Options{})
		j := saying(kind, "Hello.", func(_ *stage, j *session.Job) { j.Effect.Ref = "a/c" })(s)
		s.do(j)
		s.Inject(lineartest.Failing("ReadActivity", http.StatusOK, "INPUT_ERROR", "Entity not found: AgentActivity"))
		j.Repeat = true
		if _, err := s.performer.Perform(t.Context(), j); repeated != (err == nil) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestChoicesAreWrittenOut where Linear does not take them.
func TestChoicesAreWrittenOut(t *testing.T) {
	t.Parallel()
	s := newStage(t, lineartest.Options{})
	s.Inject(lineartest.Failing("Ask", http.StatusOK, "INPUT_ERROR", "signal is not supported"))
	j := s.job(session.Ask, session.State{})
	j.Effect.Text, j.Effect.Choices = "Where?", where
	s.do(j)
	s.do(j)
	want := []string{"elicitation: Where? / - `acme/widgets`\n- `acme/api`"}
	if diff := cmp.Diff(want, s.said()); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
}

// TestProblems: which refusals are for good.
func TestProblems(t *testing.T) {
	t.Parallel()
	type verdict struct{ Again, Gone bool }
	for name, tt := range map[string]struct {
		fault lineartest.Fault
		want  verdict
		calls int
	}{
		"bad input":          {lineartest.Failing("CreateActivity", 200, "INPUT_ERROR", "content is too long"), verdict{}, 2},
		"bad input, 400":     {lineartest.Failing("CreateActivity", 400, "INPUT_ERROR", "content is too long"), verdict{}, 2},
		"no session":         {lineartest.Failing("CreateActivity", 200, "INPUT_ERROR", "Entity not found: AgentSession"), verdict{Gone: true}, 1},
		"no issue":           {lineartest.Failing("CreateActivity", 400, "INPUT_ERROR", "Entity not found: Issue"), verdict{Gone: true}, 1},
		"a scope is lacking": {lineartest.Failing("CreateActivity", 403, "FORBIDDEN", "Invalid scope: `write` required"), verdict{}, 1},
		"too fast":           {lineartest.Limited("CreateActivity", time.Now().Add(time.Hour)), verdict{Again: true}, 1},
		"lock":               {lineartest.Failing("CreateActivity", 200, "OTHER", "lock timeout"), verdict{Again: true}, 1},
		"internal":           {lineartest.Failing("CreateActivity", 200, "INPUT_ERROR", "Internal error"), verdict{Again: true}, 1},
		"server":             {lineartest.Fault{On: "CreateActivity", Status: 502, Body: "bad gateway"}, verdict{Again: true}, 1},
		"page":               {lineartest.Fault{On: "CreateActivity", Status: 404, Body: "<html>"}, verdict{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, lineartest.Options{})
			s.Inject(tt.fault)
			p := s.fails(saying(session.Say, "Hello.", nil)(s))
			if got := (verdict{p.Again, p.Gone}); got != tt.want || p.Say == "" || strings.Contains(p.Say, "\n") {
				t.Errorf("problem %+v", p)
			}
			if n := s.requests(); n != tt.calls || len(s.said()) != 0 {
				t.Errorf("%d requests, said %q", n, s.said())
			}
		})
	}
}

// TestAccessLost: the team was taken away, or the app.
func TestAccessLost(t *testing.T) {
	t.Parallel()
	s := newStage(t, lineartest.Options{})
	s.ChangeAccess(nil, []string{"ENG"})
	for _, kind := range []session.EffectKind{session.Acknowledge, session.Say, session.Ask, session.Answer, session.Report, session.Sweep} {
		j := s.job(kind, s.ended(completed()))
		j.State.PR = nil
		j.State.Threads[0].Shown = ""
		j.Effect.Text = "Hello."
		if p := s.fails(j); !p.Gone || p.Again {
			t.Errorf("%s: %+v", kind, p)
		}
	}
	for _, err := range []error{ErrNotInstalled, ErrReinstall} {
		if p := classify(problem(err)); !p.Gone || p.Again || p.Say == "" {
			t.Errorf("%v: %+v", err, p)
		}
	}
}

// TestAcknowledgedOrNot: what comes too late to be worth it is let go of, so
// that nothing waits behind it.
func TestAcknowledgedOrNot(t *testing.T) {
	t.Parallel()
	limited := lineartest.Limited("CreateActivity", time.Now().Add(time.Hour))
	broken := lineartest.Fault{On: "CreateActivity", Status: http.StatusBadGateway}
	for name, tt := range map[string]struct {
		fault    lineartest.Fault
		ref      string
		attempts int
		insists  bool
	}{
		"no room":               {limited, "activity", 0, false},
		"broken":                {broken, "activity", 0, true},
		"broken for long":       {broken, "activity", manyTries, false},
		"no room at first":      {limited, "", 0, true},
		"no room for long":      {limited, "", manyTries, false},
		"broken at first, long": {broken, "", manyTries, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, lineartest.Options{})
			s.Inject(tt.fault)
			j := s.job(session.Acknowledge, session.State{})
			j.Effect.Ref, j.Effect.Attempts = tt.ref, tt.attempts
			if tt.insists {
				if p := s.fails(j); !p.Again {
					t.Errorf("problem %+v", p)
				}
				return
			}
			s.do(j)
			if n := s.requests(); n != 1 || len(s.said()) != 0 {
				t.Errorf("%d requests, said %q", n, s.said())
			}
		})
	}
}
