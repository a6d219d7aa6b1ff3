package slacktest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"ship/integrations/slack/slacktest"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	c := quick(t)
	root, _ := c.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix it"})
	ctx := t.Context()
	set := func(status string) error {
		_, err := c.SetAgentSessionStatusContext(ctx, slack.AgentSessionSetStatusParameters{
			Status: status, ChannelID: c.eng, ThreadTS: root, Title: "Fix it", InitiatorUserID: c.PersonID("ada"),
		})
		return err
	}
	on := slacktest.Change{Channel: "eng", TS: root, By: "bob"}
	if _, err := c.StopSession(on); err == nil {
		t.Error("there is nothing to stop")
	}
	if err := set("processing"); err != nil {
		t.Fatal(err)
	}
	c.post(text("at it"), slack.MsgOptionTS(root))
	if got := c.Session("eng", root); got.Status != "processing" || got.Title != "Fix it" || got.By != "ada" {
		t.Errorf("session %+v", got)
	}
	d, err := c.StopSession(on)
	if err != nil || c.Session("eng", root).Status != "processing" {
		t.Fatalf("stop: %v, %+v", err, c.Session("eng", root))
	}
	if got := read(t, d); got.Event.Type != "agent_session_stopped" || got.Event.ThreadTS != root {
		t.Errorf("told %s", d.Body)
	}
	c.Advance(time.Hour)
	if got := c.Session("eng", root).Status; got != "active" {
		t.Errorf("it lapses, got %s", got)
	}
	if _, err := c.RenameAgentSessionContext(ctx, slack.AgentSessionRenameParameters{Title: "Fixed", ChannelID: c.eng, ThreadTS: root}); err != nil {
		t.Fatal(err)
	}
	if ds := c.RenameSession(on, "Ours"); len(ds) != 1 || c.Session("eng", root).Title != "Ours" {
		t.Errorf("told %v, %+v", ds, c.Session("eng", root))
	}
	c.fails(set("resting"), "invalid_arguments")
	root = "1700000000.000001"
	c.fails(set("active"), "thread_not_found")
}

// TestBridge: the older call still works, and ends with the next message.
func TestBridge(t *testing.T) {
	t.Parallel()
	c := quick(t)
	root, _ := c.DM("ada", "hi")
	channel := c.ChannelID("@ada")
	set := func() {
		t.Helper()
		err := c.SetAssistantThreadsStatusContext(t.Context(), slack.AssistantThreadsSetStatusParameters{ChannelID: channel, ThreadTS: root, Status: "is thinking"})
		if err != nil || c.Session("@ada", root).Status != "processing" {
			t.Errorf("%v, %+v", err, c.Session("@ada", root))
		}
	}
	set()
	c.Advance(2 * time.Minute)
	if got := c.Session("@ada", root).Status; got != "active" {
		t.Errorf("it lapses, got %s", got)
	}
	set()
	if _, _, err := c.PostMessageContext(t.Context(), c.PersonID("ada"), text("hello"), slack.MsgOptionTS(root)); err != nil {
		t.Fatal(err)
	}
	if got := c.Session("@ada", root).Status; got != "active" {
		t.Errorf("it ends with a message, got %s", got)
	}
	err := c.SetAssistantThreadsSuggestedPromptsContext(t.Context(), slack.AssistantThreadsSetSuggestedPromptsParameters{
		ChannelID: channel, ThreadTS: root, Prompts: []slack.AssistantThreadsPrompt{{Title: "Fix", Message: strings.Repeat("x", 10)}},
	})
	if err != nil {
		t.Error(err)
	}
}
