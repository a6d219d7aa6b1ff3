package main

import (
	"strings"
	"testing"

	"ship/sandbox/agent/modeltest"
)

// TestTheAgentAsks: the real agent ends its turn with a question, people see
// it, and their answer reaches an agent that can tell what it answers.
func TestTheAgentAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{opencode: true, script: func(c modeltest.Conversation) modeltest.Reply {
		switch c.Answers() {
		case 0:
			return modeltest.Say("Either is possible. %s\n\n```ask\nWhich colour should the widgets have?\n- Red\n- Blue\n```", modeltest.Note)
		case 1:
			return modeltest.Use(modeltest.Write("HEARD.md", c.LastUser()))
		default:
			return modeltest.Say("They are blue.")
		}
	}})
	r.start()
	r.deliver(r.says(r.issue, "/ship paint them"))
	r.endedTurns(1, patience)
	text := r.sticky(r.issue)
	for _, word := range []string{"Which colour should the widgets have?", "Red", "Blue", "/ship"} {
		if !strings.Contains(text, word) {
			t.Errorf("the comment does not ask, for there is no %q:\n%s", word, text)
		}
	}
	if strings.Contains(text, "```ask") {
		t.Errorf("the comment shows how the question was written down:\n%s", text)
	}
	r.deliver(r.says(r.issue, "/ship B"))
	r.endedTurns(2, patience)
	prs := r.host.PullRequests(rigRepo)
	if len(prs) != 1 {
		t.Fatalf("pull requests: %+v", prs)
	}
	heard, _ := r.host.File(rigRepo, prs[0].Head, "HEARD.md")
	for _, word := range []string{"You had asked", "Which colour should the widgets have?\n1. Red\n2. Blue", "The answer, or what is wanted instead:\nB"} {
		if !strings.Contains(heard, word) {
			t.Errorf("the agent does not hear %q:\n%s", word, heard)
		}
	}
	if text := r.sticky(r.issue); strings.Contains(text, "Which colour") {
		t.Errorf("the question is still open:\n%s", text)
	}
	r.stop()
}
