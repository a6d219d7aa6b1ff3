package slack

import (
	"testing"

	"ship/session"
)

// TestStalePresses: what was pressed too late does nothing but to say so.
func TestStalePresses(t *testing.T) {
	t.Parallel()
	running := session.State{Turns: 3, Turn: &session.Turn{N: 3, Stage: session.Running}, Repo: session.Repo{Name: "acme/widgets", Key: "k"}, Base: "main"}
	ended, asking := running, running
	ended.Turn = &session.Turn{N: 3, Stage: session.Ended, Outcome: &session.Outcome{Ending: session.Completed}}
	asking.Turn = &session.Turn{N: 3, Stage: session.Ended, Outcome: &session.Outcome{Ending: session.Completed, Question: &session.Question{Text: "Keep it?"}}}
	first := session.State{Turns: 1, Turn: &session.Turn{N: 1, Stage: session.Running}, Repo: running.Repo}
	for _, tt := range []struct {
		name  string
		state session.State
		block string
		verb  session.Verb
		want  string
	}{
		{"the turn that runs", running, "do-3", session.Stop, ""},
		{"an earlier turn", running, "do-2", session.Stop, sayTurnOver},
		{"an earlier turn, after the end of the last", ended, "do-2", session.Retry, sayTurnOver},
		{"the last turn", ended, "do-3", session.Retry, ""},
		{"before the first turn", session.State{}, "do-0", session.Stop, ""},
		{"pressed before the first turn began", first, "do-0", session.Stop, ""},
		{"a message of the beginning", running, "do-0", session.Stop, sayTurnOver},
		{"the open question", asking, "choose-3", session.Instruct, ""},
		{"a question that was answered", running, "choose-2", session.Instruct, sayAnswered},
		{"a question that was let go", ended, "choose-3", session.Instruct, sayAnswered},
		{"a question of the past while another is open", asking, "choose-2", session.Instruct, sayAnswered},
		{"a repository when none is asked for", first, "repo", session.Instruct, sayNotAsked},
		{"another name", running, "open", session.Instruct, ""},
		{"no name", running, "", session.Instruct, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil)
			d.gate.Routes.Default = "acme/widgets"
			r := d.asks("ada", "fix it")
			d.state = tt.state
			r.Verb, r.Text, r.Early = tt.verb, "acme/widgets", false
			r.Ref = ref{kind: refButton, ts: nextTS, name: tt.block, user: d.PersonID("ada")}.String()
			if a := d.admit(r); a.Note != tt.want || a.Refusal != "" || !a.Talks {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestAnswerIsNotStale: the answer to a question comes with the repository.
func TestAnswerIsNotStale(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	r := d.asks("ada", "fix it")
	if a := d.admit(r); a.Question == nil || len(a.Question.Choices) != 2 {
		t.Fatalf("%+v", a)
	}
	r.Repo, r.Ref = "acme/api", ref{kind: refButton, ts: nextTS, name: nameRepo, user: d.PersonID("ada")}.String()
	if a := d.admit(r); a.Note != "" || a.Repo.Name != "acme/api" || a.Context != "" || a.Quote != "" {
		t.Errorf("%+v", a)
	}
}
