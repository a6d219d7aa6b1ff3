package slacktest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"ship/integrations/slack/slacktest"
)

// TestWorldsAreComparable: what was done the same way looks the same, and what
// differs shows.
func TestWorldsAreComparable(t *testing.T) {
	t.Parallel()
	live := func(updates int, answer string) string {
		c := quick(t)
		root, _ := c.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix <it>"})
		if err := c.AddReactionContext(t.Context(), "eyes", slack.NewRefToMessage(c.eng, root)); err != nil {
			t.Fatal(err)
		}
		ts := c.post(text("…"), slack.MsgOptionTS(root))
		for range updates {
			if err := c.update(ts, text("working")); err != nil {
				t.Fatal(err)
			}
		}
		link := "<" + c.URL + "/s/1700000000.000001|log> for <@" + c.PersonID("ada") + ">"
		blocks := slack.MsgOptionBlocks(section(link+"\n"+answer), slack.NewDividerBlock(), slack.NewActionBlock("", button("open", "Open PR")))
		if err := c.update(ts, text(answer), blocks); err != nil {
			t.Fatal(err)
		}
		_, err := c.SetAgentSessionStatusContext(t.Context(), slack.AgentSessionSetStatusParameters{Status: "active", ChannelID: c.eng, ThreadTS: root, Title: "Fix"})
		if err != nil {
			t.Fatal(err)
		}
		c.DM("ada", "thanks")
		return c.World()
	}
	one, two, other := live(0, "done at 0a1b2c3d4e5f"), live(3, "done at ff00ff11"), live(0, "not done")
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("worlds differ:\n%s", diff)
	}
	if one == other {
		t.Error("other worlds look the same")
	}
	const want = `workspace acme installed=true
channel #eng
  ada
  | @ship fix <it>
  :eyes: ship
    session active "Fix"
    ship
    | log (http://127.0.0.1:PORT/s/TS) for @ada
    | done at COMMIT
    | ---
    | [Open PR]
direct messages of ada
  ada
  | thanks
`
	if diff := cmp.Diff(want, one); diff != "" {
		t.Error(diff)
	}
}

// TestRendering: blocks as people read them.
func TestRendering(t *testing.T) {
	t.Parallel()
	c := quick(t)
	link := button("open", "Open")
	link.URL = "https://x.example/pr/1"
	for want, block := range map[string]slack.Block{
		"# Plan":                           slack.NewHeaderBlock(label("Plan")),
		"---":                              slack.NewDividerBlock(),
		"(one two [image: three])":         slack.NewContextBlock("", label("one"), label("two"), slack.NewImageBlockElement("https://x.example/i.png", "three")),
		"[Open -> https://x.example/pr/1]": slack.NewActionBlock("", link),
		"# not a header":                   slack.NewMarkdownBlock("", "# not a header"),
		"a\nb":                             slack.NewSectionBlock(nil, []*slack.TextBlockObject{label("a"), label("b")}, nil),
		"[image: a cat]":                   slack.NewImageBlock("https://x.example/i.png", "a cat", "", nil),
		"Task: [plain_text_input]":         slack.NewInputBlock("", label("Task"), nil, slack.NewPlainTextInputBlockElement(nil, "task")),
		"@ada & DATE @here":                section("<@" + c.PersonID("ada") + "> &amp; <!date^1700000000^{date}|then> <!here>"),
	} {
		ts := c.post(text("x"), slack.MsgOptionBlocks(block))
		if got := c.Message("eng", ts).Plain; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
