package bot

import (
	"strings"
	"testing"

	"ship/session"
)

// TestStanding: each phase has its words, and none of them is anybody else's.
func TestStanding(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*session.View){
		"Waiting to hear which repository is meant": func(v *session.View) { v.Phase = session.PhaseAsking },
		"Waiting for a sandbox":                     func(v *session.View) { v.Phase, v.Place = session.PhaseQueued, 3 },
		"Setting up the sandbox":                    func(v *session.View) { v.Phase = session.PhasePreparing },
		"Working":                                   func(v *session.View) { v.Phase, v.PR = session.PhaseWorking, nil },
		"Working, pull request #7 is open":          func(v *session.View) { v.Phase = session.PhaseWorking },
		"Stopping":                                  func(v *session.View) { v.Phase = session.PhaseStopping },
		"Pushing the work":                          func(v *session.View) { v.Phase = session.PhasePublishing },
		"Done, pull request #7 is up to date":       func(*session.View) {},
		"Waiting for an answer": func(v *session.View) {
			v.Outcome.Question = &session.Question{Text: "secret?", Choices: []session.Choice{{Value: "secret"}}}
		},
		"Something broke on the way": func(v *session.View) { v.Outcome.Ending = session.Crashed },
		"Stopped":                    func(v *session.View) { v.Outcome.Ending = session.Stopped },
	} {
		v := session.View{
			Phase: session.PhaseEnded, Turn: 1, Changed: true, Title: "secret", By: []string{"secret"}, Doing: "bash: secret",
			Steps: []string{"bash: secret"}, Todos: []session.Todo{{Text: "secret"}}, Repo: "acme/secret", Branch: "secret",
			PR:      &session.PullRequest{Number: 7, URL: "https://github.com/acme/secret/pull/7"},
			Outcome: &session.Outcome{Ending: session.Completed, Answer: "secret", Say: "secret"},
		}
		change(&v)
		if got := Standing(v); got != want || strings.Contains(got, "secret") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
