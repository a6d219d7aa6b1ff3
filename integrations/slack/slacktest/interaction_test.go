package slacktest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"ship/integrations/slack/slacktest"
)

// acted decodes an interaction as slack-go does.
func acted(t *testing.T, d slacktest.Delivery) slack.InteractionCallback {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(string(d.Body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = d.Header
	got, err := slack.InteractionCallbackParse(r)
	if err != nil {
		t.Fatalf("%s: %v", d.Body, err)
	}
	return got
}

func option(value, label string) *slack.OptionBlockObject {
	return slack.NewOptionBlockObject(value, slack.NewTextBlockObject(slack.PlainTextType, label, false, false), nil)
}

func (c *client) menu(kind, placeholder, id string) *slack.SelectBlockElement {
	return slack.NewOptionsSelectBlockElement(kind, slack.NewTextBlockObject(slack.PlainTextType, placeholder, false, false), id,
		option("a", "Option A"), option("b", "Option B"))
}

func TestButtons(t *testing.T) {
	t.Parallel()
	c := quick(t)
	root, _ := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "hello"})
	actions := slack.NewActionBlock("", button("stop", "Stop"), c.menu(slack.OptTypeStatic, "Which?", "which"))
	ts := c.post(text("x"), slack.MsgOptionBlocks(section("*hi*"), actions), slack.MsgOptionTS(root))
	if diff := cmp.Diff([]string{"[Stop]", "[Which?: Option A | Option B]"}, c.Message("eng", ts).Controls); diff != "" {
		t.Error(diff)
	}
	on := slacktest.Change{Channel: "eng", TS: ts, By: "bob"}
	if _, err := c.Choose(on, "Which?", "Option C"); err == nil {
		t.Error("there is no option C")
	}
	d, err := c.Choose(on, "Which?", "Option B")
	if err != nil {
		t.Fatal(err)
	}
	if got := acted(t, d).ActionCallback.BlockActions[0]; got.ActionID != "which" || got.SelectedOption.Value != "b" || got.BlockID == "" {
		t.Errorf("chose %+v", got)
	}
	for _, name := range []string{"stop", "Stop"} {
		d, err := c.Press(on, name)
		if err != nil {
			t.Fatal(err)
		}
		got := acted(t, d)
		action := got.ActionCallback.BlockActions[0]
		if got.Type != slack.InteractionTypeBlockActions || action.Value != "v-stop" || got.User.ID != c.PersonID("bob") || got.Message.Text != "x" ||
			got.Container.ThreadTs != root || got.Container.MessageTs != ts || got.Channel.ID != c.eng {
			t.Errorf("pressed %+v", got)
		}
		if state := got.BlockActionState.Values[action.BlockID]["which"]; state.SelectedOption.Value != "b" {
			t.Errorf("state %+v", got.BlockActionState)
		}
	}
	if err := c.update(ts, text("over")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Press(on, "Stop"); err == nil || !strings.Contains(err.Error(), "over") {
		t.Errorf("the button is gone, got %v", err)
	}
}

func TestCommandsAndShortcuts(t *testing.T) {
	t.Parallel()
	c := quick(t)
	d := c.Slash(slacktest.Command{Channel: "eng", By: "ada", Text: "fix <it> for @bob"})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(string(d.Body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = d.Header
	got, err := slack.SlashCommandParse(r)
	if err != nil || got.Command != "/ship" || got.Text != "fix &lt;it&gt; for <@"+c.PersonID("bob")+">" || got.ChannelID != c.eng || got.UserID != c.PersonID("ada") {
		t.Errorf("command %+v, %v", got, err)
	}
	var payload slack.SlashCommand
	if err := json.Unmarshal(d.Payload, &payload); err != nil || payload != got {
		t.Errorf("over a socket: %+v, %v", payload, err)
	}
	ts, _ := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "the build is red"})
	short := acted(t, c.Shortcut(slacktest.Change{Channel: "eng", TS: ts, By: "bob"}, "ship_it"))
	if short.Type != slack.InteractionTypeMessageAction || short.CallbackID != "ship_it" || short.Message.Text != "the build is red" || short.Channel.ID != c.eng {
		t.Errorf("shortcut %+v", short)
	}
}

func TestResponseURLs(t *testing.T) {
	t.Parallel()
	c := quick(t)
	ctx := t.Context()
	ts := c.post(text("x"), slack.MsgOptionBlocks(slack.NewActionBlock("", button("stop", "Stop"))))
	d, err := c.Press(slacktest.Change{Channel: "eng", TS: ts, By: "ada"}, "Stop")
	if err != nil {
		t.Fatal(err)
	}
	address := acted(t, d).ResponseURL
	respond := func(options ...slack.MsgOption) error {
		_, _, err := c.PostMessageContext(ctx, c.eng, options...)
		return err
	}
	url := func(kind string) slack.MsgOption { return slack.MsgOptionResponseURL(address, kind) }
	for range 2 {
		if err := respond(text("stopping"), url("")); err != nil {
			t.Fatal(err)
		}
	}
	if err := respond(text("for all"), url("in_channel")); err != nil {
		t.Fatal(err)
	}
	if err := respond(url("")); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("said nothing: %v", err)
	}
	if err := respond(text("stopped"), slack.MsgOptionReplaceOriginal(address)); err != nil {
		t.Fatal(err)
	}
	if err := respond(text("again"), url("")); err == nil {
		t.Error("it was good for five times")
	}
	if got := c.Messages("eng"); len(got) != 2 || got[0].Plain != "stopped" || got[1].Plain != "for all" || len(c.Whispers("ada")) != 2 {
		t.Errorf("%+v, whispers %+v", got, c.Whispers("ada"))
	}
	address = acted(t, c.Shortcut(slacktest.Change{Channel: "eng", TS: ts, By: "ada"}, "x")).ResponseURL
	c.Advance(31 * time.Minute)
	if err := respond(text("late"), url("")); err == nil {
		t.Error("it was good for half an hour")
	}
	address = acted(t, c.Shortcut(slacktest.Change{Channel: "eng", TS: ts, By: "ada"}, "x")).ResponseURL
	if err := respond(slack.MsgOptionDeleteOriginal(address)); err != nil || len(c.Messages("eng")) != 1 {
		t.Errorf("deleted: %v, %+v", err, c.Messages("eng"))
	}
}

// TestEphemeralButtons: the app is not shown what only one person sees.
func TestEphemeralButtons(t *testing.T) {
	t.Parallel()
	c := quick(t)
	ts, err := c.PostEphemeralContext(t.Context(), c.eng, c.PersonID("ada"), text("Run?"), slack.MsgOptionBlocks(slack.NewActionBlock("", button("go", "Go"))))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Press(slacktest.Change{Channel: "eng", TS: ts, By: "bob"}, "Go"); err == nil {
		t.Error("bob does not see it")
	}
	d, err := c.Press(slacktest.Change{Channel: "eng", TS: ts, By: "ada"}, "Go")
	if err != nil {
		t.Fatal(err)
	}
	got := acted(t, d)
	if !got.Container.IsEphemeral || got.Message.Timestamp != "" {
		t.Errorf("pressed %+v", got)
	}
	_, _, err = c.PostMessageContext(t.Context(), c.eng, text("Running"), slack.MsgOptionReplaceOriginal(got.ResponseURL))
	if all := c.Whispers("ada"); err != nil || len(all) != 1 || all[0].Plain != "Running" {
		t.Errorf("%v, %+v", err, all)
	}
}
