package slacktest_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack/slackevents"

	"ship/integrations/slack/slacktest"
)

// event is what a delivery says, as far as the tests ask.
type event struct {
	Type    string
	EventID string `json:"event_id"`
	TeamID  string `json:"team_id"`
	Shared  bool   `json:"is_ext_shared_channel"`
	Event   struct {
		Type, Subtype, Text, User, Team, TS, Channel string
		ThreadTS                                     string `json:"thread_ts"`
		ChannelType                                  string `json:"channel_type"`
		BotID                                        string `json:"bot_id"`
		UserTeam                                     string `json:"user_team"`
		ParentUser                                   string `json:"parent_user_id"`
		Hidden                                       bool
		Edited                                       *struct{ TS string }
		Message                                      struct{ Text string }
		PreviousMessage                              struct{ Text string } `json:"previous_message"`
	}
}

// read decodes an event, after slack-go did.
func read(t *testing.T, d slacktest.Delivery) event {
	t.Helper()
	if _, err := slackevents.ParseEvent(json.RawMessage(d.Body), slackevents.OptionNoVerifyToken()); err != nil {
		t.Errorf("slack-go does not read %s: %v", d.Body, err)
	}
	var e event
	if err := json.Unmarshal(d.Body, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// kinds of events, with their subtypes.
func kinds(t *testing.T, ds []slacktest.Delivery) []string {
	t.Helper()
	var out []string
	for _, d := range ds {
		e := read(t, d).Event
		kind := e.Type
		if e.Subtype != "" {
			kind += "/" + e.Subtype
		}
		out = append(out, kind)
	}
	return out
}

func TestMentions(t *testing.T) {
	t.Parallel()
	c := quick(t)
	ts, ds := c.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix <login> with @bob in #eng"})
	if diff := cmp.Diff([]string{"app_mention", "message"}, kinds(t, ds)); diff != "" {
		t.Fatal(diff)
	}
	mention, twin := read(t, ds[0]), read(t, ds[1])
	want := "<@" + c.BotUserID() + "> fix &lt;login&gt; with <@" + c.PersonID("bob") + "> in <#" + c.eng + "|eng>"
	if mention.Event.Text != want || mention.Event.TS != ts || mention.Event.User != c.PersonID("ada") || mention.Event.ChannelType != "" {
		t.Errorf("mention %+v", mention)
	}
	if twin.EventID == mention.EventID || ds[1].ID() != twin.EventID || twin.Event.TS != ts || twin.Event.ChannelType != "channel" {
		t.Errorf("twin %+v", twin)
	}
	reply, ds := c.Post(slacktest.Said{Channel: "eng", By: "bob", Text: "use staging", Thread: ts})
	if got := read(t, ds[0]).Event; len(ds) != 1 || got.ThreadTS != ts || got.ParentUser != c.PersonID("ada") || got.TS != reply {
		t.Errorf("reply %+v", got)
	}
	if got := c.Message("eng", ts).Plain; got != "@ship fix <login> with @bob in #eng" {
		t.Errorf("people read %q", got)
	}
}

func TestWhatIsTold(t *testing.T) {
	t.Parallel()
	c := newClient(t, slacktest.Options{Limits: slacktest.NoLimits()})
	c.CreateChannel(slacktest.Channel{Name: "away", NoApp: true})
	c.CreateChannel(slacktest.Channel{Name: "secret", Private: true})
	c.CreateChannel(slacktest.Channel{Name: "party", Group: true})
	c.AddPerson(slacktest.Person{Handle: "ci", Bot: true})
	ts, first := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "hello"})
	own := slacktest.Change{Channel: "eng", TS: ts, By: "ada"}
	said := func(channel, by, text string) []slacktest.Delivery {
		_, ds := c.Post(slacktest.Said{Channel: channel, By: by, Text: text})
		return ds
	}
	for name, tt := range map[string]struct {
		ds   []slacktest.Delivery
		want []string
	}{
		"a message":                              {first, []string{"message"}},
		"where the app is not":                   {said("away", "ada", "@ship hi"), nil},
		"in private":                             {said("secret", "ada", "@ship hi"), []string{"app_mention", "message"}},
		"among several":                          {said("party", "ada", "hi"), []string{"message"}},
		"by a bot":                               {said("eng", "ci", "red"), []string{"message"}},
		"directly":                               {said("", "ada", "@ship hi"), []string{"message"}},
		"an edit":                                {c.Edit(own, "hello all"), []string{"message/message_changed"}},
		"an edit that mentions":                  {c.Edit(own, "@ship fix it"), []string{"app_mention", "message/message_changed"}},
		"a deletion":                             {c.Delete(own), []string{"message/message_deleted"}},
		"the messages tab":                       {c.OpenHome("ada"), []string{"app_home_opened"}},
		"a reaction, which is not subscribed to": {c.React(slacktest.Change{Channel: "eng", TS: c.post(text("x")), By: "ada"}, "eyes"), nil},
	} {
		if diff := cmp.Diff(tt.want, kinds(t, tt.ds)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got := read(t, said("", "ada", "hi")[0]).Event; got.ChannelType != "im" || got.Channel != c.ChannelID("@ada") {
		t.Errorf("directly: %+v", got)
	}
	if got := read(t, said("eng", "ci", "hi")[0]).Event; got.BotID == "" {
		t.Errorf("by a bot: %+v", got)
	}
}

func TestEdits(t *testing.T) {
	t.Parallel()
	c := quick(t)
	ts, _ := c.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix widgets"})
	ds := c.Edit(slacktest.Change{Channel: "eng", TS: ts, By: "ada"}, "@ship fix gadgets")
	mention, changed := read(t, ds[0]).Event, read(t, ds[1]).Event
	if mention.Edited == nil || mention.TS != ts {
		t.Errorf("mention %+v", mention)
	}
	bot := "<@" + c.BotUserID() + "> "
	if !changed.Hidden || changed.Message.Text != bot+"fix gadgets" || changed.PreviousMessage.Text != bot+"fix widgets" || changed.TS == ts {
		t.Errorf("changed %+v", changed)
	}
}

// TestEcho: the app hears itself.
func TestEcho(t *testing.T) {
	t.Parallel()
	c := quick(t)
	ts := c.post(text("On it, <@" + c.BotUserID() + "> is"))
	if err := c.update(ts, text("Done")); err != nil {
		t.Fatal(err)
	}
	ds := c.Echo("eng", ts)
	if diff := cmp.Diff([]string{"message", "message/message_changed"}, kinds(t, ds)); diff != "" {
		t.Fatal(diff)
	}
	if got := read(t, ds[0]).Event; got.BotID == "" || got.User != c.BotUserID() {
		t.Errorf("echo %+v", got)
	}
}

func TestSlackConnect(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.CreateChannel(slacktest.Channel{Name: "shared", Shared: true})
	c.AddPerson(slacktest.Person{Handle: "eve", Team: "T0OTHER"})
	id := c.Upload(slacktest.File{Name: "a.txt", By: "eve", Content: []byte("x")})
	_, ds := c.Mention(slacktest.Said{Channel: "shared", By: "eve", Text: "do it", Files: []string{id}})
	got := read(t, ds[0])
	if !got.Shared || got.TeamID != c.TeamID() || got.Event.Team != "T0OTHER" || got.Event.UserTeam != "T0OTHER" {
		t.Errorf("told %s", ds[0].Body)
	}
}

func TestLifecycleEvents(t *testing.T) {
	t.Parallel()
	c := quick(t)
	if diff := cmp.Diff([]string{"app_uninstalled", "tokens_revoked"}, kinds(t, c.Uninstall())); diff != "" {
		t.Error(diff)
	}
	if got := read(t, c.Verification("abc")); got.Type != "url_verification" {
		t.Errorf("verification %+v", got)
	}
	if got := c.RateLimited(); !json.Valid(got.Body) || got.Kind != slacktest.Events {
		t.Errorf("rate limited %s", got.Body)
	}
}
