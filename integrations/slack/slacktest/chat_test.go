package slacktest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"ship/integrations/slack/slacktest"
)

func TestMessages(t *testing.T) {
	t.Parallel()
	c := quick(t)
	root, _ := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "hello @bob & all"})
	meta := slack.SlackMetadata{EventType: "ship_report", EventPayload: map[string]any{"outbox_id": "o1"}}
	ts := c.post(text("On it, <@"+c.PersonID("ada")+"> &amp; co"), slack.MsgOptionBlocks(section("*On it*")), slack.MsgOptionTS(root),
		slack.MsgOptionMetadata(meta))
	got := c.Message("eng", ts)
	if got.Thread != root || got.By != "ship" || got.Plain != "*On it*" || string(got.Metadata) != `{"event_type":"ship_report","event_payload":{"outbox_id":"o1"}}` {
		t.Errorf("posted %+v", got)
	}
	if err := c.update(ts, text("Done"), slack.MsgOptionBlocks(section("_Done_"))); err != nil {
		t.Fatal(err)
	}
	if got := c.Message("eng", ts); got.Plain != "_Done_" || got.Edited || got.Metadata == nil || got.Updates != 1 {
		t.Errorf("updated with blocks: %+v", got)
	}
	if err := c.update(ts, text("for <@"+c.PersonID("ada")+"> &amp; co: <https://x.example|the log>")); err != nil {
		t.Fatal(err)
	}
	if got := c.Message("eng", ts); got.Plain != "for @ada & co: the log (https://x.example)" || got.Blocks != nil || !got.Edited || got.Metadata == nil {
		t.Errorf("text removes blocks and keeps metadata: %+v", got)
	}
	link, err := c.GetPermalinkContext(t.Context(), &slack.PermalinkParameters{Channel: c.eng, Ts: ts})
	if err != nil || !strings.HasPrefix(link, "https://acme.slack.com/archives/"+c.eng+"/p") || !strings.Contains(link, "thread_ts="+root) {
		t.Errorf("permalink %s, %v", link, err)
	}
	if _, _, err := c.DeleteMessageContext(t.Context(), c.eng, ts); err != nil || len(c.Thread("eng", root)) != 1 {
		t.Errorf("deleted: %v, %+v", err, c.Thread("eng", root))
	}
}

// TestReadBack: what is read is not just what was sent.
func TestReadBack(t *testing.T) {
	t.Parallel()
	c := quick(t)
	ts := c.post(text("a & b &lt; <https://x.example|c> https://y.example/d"))
	got, _, _, err := c.GetConversationRepliesContext(t.Context(), &slack.GetConversationRepliesParameters{ChannelID: c.eng, Timestamp: ts})
	const want = "a &amp; b &lt; <https://x.example|c> <https://y.example/d>"
	if err != nil || len(got) != 1 || got[0].Text != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	c := quick(t)
	root, _ := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "hello"})
	reply := c.post(text("yes"), slack.MsgOptionTS(root))
	away := c.CreateChannel(slacktest.Channel{Name: "away", NoApp: true})
	secret := c.CreateChannel(slacktest.Channel{Name: "secret", Private: true, NoApp: true})
	old := c.CreateChannel(slacktest.Channel{Name: "old"})
	c.Archive("old")
	long := strings.Repeat("x", 4001)
	for name, tt := range map[string]struct {
		channel string
		options []slack.MsgOption
		want    string
	}{
		"nowhere":         {"C0NONE", []slack.MsgOption{text("x")}, "channel_not_found"},
		"by name":         {"#eng", []slack.MsgOption{text("x")}, "channel_not_found"},
		"not a member":    {away, []slack.MsgOption{text("x")}, "not_in_channel"},
		"not to be seen":  {secret, []slack.MsgOption{text("x")}, "channel_not_found"},
		"archived":        {old, []slack.MsgOption{text("x")}, "is_archived"},
		"nothing":         {c.eng, nil, "no_text"},
		"long":            {c.eng, []slack.MsgOption{text(long)}, "msg_too_long"},
		"long in pairs":   {c.eng, []slack.MsgOption{text(strings.Repeat("🎉", 2001))}, "msg_too_long"},
		"long markdown":   {c.eng, []slack.MsgOption{slack.MsgOptionMarkdownText(long + long + long)}, "msg_too_long"},
		"two texts":       {c.eng, []slack.MsgOption{text("x"), slack.MsgOptionMarkdownText("y")}, "markdown_text_conflict"},
		"to a reply":      {c.eng, []slack.MsgOption{text("x"), slack.MsgOptionTS(reply)}, "cannot_reply_to_message"},
		"to no timestamp": {c.eng, []slack.MsgOption{text("x"), slack.MsgOptionTS("yesterday")}, "invalid_thread_ts"},
		"metadata":        {c.eng, []slack.MsgOption{text("x"), slack.MsgOptionMetadata(slack.SlackMetadata{})}, "invalid_metadata_schema"},
		"another name":    {c.eng, []slack.MsgOption{text("x"), slack.MsgOptionUsername("boss")}, "missing_scope"},
	} {
		_, _, err := c.PostMessageContext(t.Context(), tt.channel, tt.options...)
		t.Log(name)
		c.fails(err, tt.want)
	}
	if got := c.Messages("eng"); len(got) != 2 {
		t.Errorf("something was posted: %+v", got)
	}
	c.fails(c.update(root, text("mine")), "cant_update_message")
	c.fails(c.update("1700000000.000001", text("x")), "message_not_found")
	c.fails(c.update(reply), "no_text")
	_, _, err := c.DeleteMessageContext(t.Context(), c.eng, root)
	c.fails(err, "cant_delete_message")
}

// TestGoneRoots: a reply to what was deleted lands in the channel, unless the
// thread lives on.
func TestGoneRoots(t *testing.T) {
	t.Parallel()
	c := quick(t)
	for _, replied := range []bool{false, true} {
		root, _ := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "hello"})
		if replied {
			c.post(text("first"), slack.MsgOptionTS(root))
		}
		c.Delete(slacktest.Change{Channel: "eng", TS: root, By: "ada"})
		ts := c.post(text("second"), slack.MsgOptionTS(root))
		if got := c.Message("eng", ts); (got.Thread == root) != replied {
			t.Errorf("replied=%t: it is in %q", replied, got.Thread)
		}
	}
}

func TestEphemerals(t *testing.T) {
	t.Parallel()
	c := quick(t)
	root, _ := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "hello"})
	ctx := t.Context()
	if _, err := c.PostEphemeralContext(ctx, c.eng, c.PersonID("ada"), text("not here"), slack.MsgOptionTS(root)); err != nil {
		t.Fatal(err)
	}
	c.post(text("active now"), slack.MsgOptionTS(root))
	if _, err := c.PostEphemeralContext(ctx, c.eng, c.PersonID("ada"), text("psst"), slack.MsgOptionTS(root)); err != nil {
		t.Fatal(err)
	}
	_, err := c.PostEphemeralContext(ctx, c.eng, c.PersonID("eve"), text("psst"))
	c.fails(err, "user_not_in_channel")
	got := c.Whispers("ada")
	if len(got) != 2 || !got[0].Hidden || got[1].Hidden || got[1].Plain != "psst" || len(c.Whispers("bob")) != 0 {
		t.Errorf("whispers %+v", got)
	}
	if strings.Contains(c.World(), "psst") {
		t.Errorf("all see it:\n%s", c.World())
	}
}

func TestReactions(t *testing.T) {
	t.Parallel()
	c := quick(t)
	root, _ := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "hello"})
	on, ctx := slack.NewRefToMessage(c.eng, root), t.Context()
	c.React(slacktest.Change{Channel: "eng", TS: root, By: "bob"}, "eyes")
	if err := c.AddReactionContext(ctx, "eyes", on); err != nil {
		t.Fatal(err)
	}
	c.fails(c.AddReactionContext(ctx, "eyes", on), "already_reacted")
	c.fails(c.AddReactionContext(ctx, ":eyes:", on), "invalid_name")
	c.fails(c.AddReactionContext(ctx, "eyes", slack.NewRefToMessage(c.eng, "1700000000.000001")), "message_not_found")
	c.fails(c.AddReactionContext(ctx, "eyes", slack.NewRefToMessage(c.eng, "x")), "bad_timestamp")
	if diff := cmp.Diff([]string{":eyes: bob ship"}, c.Message("eng", root).Reactions); diff != "" {
		t.Error(diff)
	}
	if err := c.RemoveReactionContext(ctx, "eyes", on); err != nil {
		t.Fatal(err)
	}
	c.fails(c.RemoveReactionContext(ctx, "eyes", on), "no_reaction")
}
