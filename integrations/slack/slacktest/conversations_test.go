package slacktest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"ship/integrations/slack/slacktest"
)

func texts(messages []slack.Message) []string {
	var out []string
	for _, m := range messages {
		out = append(out, m.Text)
	}
	return out
}

func TestReplies(t *testing.T) {
	t.Parallel()
	limits := slacktest.NoLimits()
	limits.Page = 2
	c := newClient(t, slacktest.Options{Limits: limits})
	root, _ := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "root"})
	meta := slack.SlackMetadata{EventType: "e", EventPayload: map[string]any{"n": "1"}}
	for n := range 5 {
		c.post(text(fmt.Sprint(n)), slack.MsgOptionTS(root), slack.MsgOptionMetadata(meta))
	}
	c.post(text("elsewhere"))
	params := slack.GetConversationRepliesParameters{ChannelID: c.eng, Timestamp: root, Limit: 100, IncludeAllMetadata: true}
	var pages [][]string
	for more := true; more; {
		got, hasMore, cursor, err := c.GetConversationRepliesContext(t.Context(), &params)
		if err != nil {
			t.Fatal(err)
		}
		if got[len(got)-1].Metadata.EventType != "e" {
			t.Errorf("no metadata: %+v", got)
		}
		pages, more, params.Cursor = append(pages, texts(got)), hasMore, cursor
	}
	if diff := cmp.Diff([][]string{{"root", "0", "1"}, {"root", "2", "3"}, {"root", "4"}}, pages); diff != "" {
		t.Error(diff)
	}
}

func TestRepliesOfATime(t *testing.T) {
	t.Parallel()
	c := quick(t)
	root, _ := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "root"})
	var all []string
	for n := range 5 {
		meta := slack.SlackMetadata{EventType: "e", EventPayload: map[string]any{}}
		all = append(all, c.post(text(fmt.Sprint(n)), slack.MsgOptionTS(root), slack.MsgOptionMetadata(meta)))
	}
	for name, tt := range map[string]struct {
		params slack.GetConversationRepliesParameters
		want   []string
	}{
		"after":      {slack.GetConversationRepliesParameters{Timestamp: root, Oldest: all[2]}, []string{"root", "3", "4"}},
		"from":       {slack.GetConversationRepliesParameters{Timestamp: root, Oldest: all[3], Inclusive: true}, []string{"root", "3", "4"}},
		"before":     {slack.GetConversationRepliesParameters{Timestamp: root, Latest: all[1]}, []string{"root", "0"}},
		"of a reply": {slack.GetConversationRepliesParameters{Timestamp: all[1]}, []string{"1"}},
	} {
		tt.params.ChannelID = c.eng
		got, _, _, err := c.GetConversationRepliesContext(t.Context(), &tt.params)
		if diff := cmp.Diff(tt.want, texts(got)); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
		if got[len(got)-1].Metadata.EventType != "" {
			t.Errorf("%s: metadata was not asked for", name)
		}
	}
	for want, params := range map[string]slack.GetConversationRepliesParameters{
		"thread_not_found": {Timestamp: "1700000000.000001"},
		"invalid_cursor":   {Timestamp: root, Cursor: "nonsense"},
		"invalid_limit":    {Timestamp: root, Limit: 2000},
	} {
		params.ChannelID = c.eng
		_, _, _, err := c.GetConversationRepliesContext(t.Context(), &params)
		c.fails(err, want)
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	c := quick(t)
	root, _ := c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "one"})
	c.Post(slacktest.Said{Channel: "eng", By: "bob", Text: "reply", Thread: root})
	c.Post(slacktest.Said{Channel: "eng", By: "bob", Text: "for all", Thread: root, Broadcast: true})
	c.Post(slacktest.Said{Channel: "eng", By: "ada", Text: "two"})
	got, err := c.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: c.eng})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"two", "for all", "one"}, texts(got.Messages)); diff != "" {
		t.Error(diff)
	}
	params := slack.GetConversationHistoryParameters{ChannelID: c.eng, Limit: 1}
	var paged []string
	for more := true; more; {
		page, err := c.GetConversationHistoryContext(t.Context(), &params)
		if err != nil {
			t.Fatal(err)
		}
		c.Post(slacktest.Said{Channel: "eng", By: "bob", Text: "meanwhile"})
		paged, more, params.Cursor = append(paged, texts(page.Messages)...), page.HasMore, page.ResponseMetaData.NextCursor
	}
	if diff := cmp.Diff([]string{"two", "for all", "one"}, paged); diff != "" {
		t.Error(diff)
	}
	if first := got.Messages[2]; first.ReplyCount != 2 || first.ThreadTimestamp != root || !slices.Equal(first.ReplyUsers, []string{c.PersonID("bob")}) {
		t.Errorf("the root is %+v", first)
	}
	c.Remove("eng")
	_, err = c.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: c.eng})
	c.fails(err, "not_in_channel")
	c.SetScopes("chat:write")
	_, err = c.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: c.eng})
	c.fails(err, "missing_scope")
}

func TestChannels(t *testing.T) {
	t.Parallel()
	c := quick(t)
	ctx := t.Context()
	c.CreateChannel(slacktest.Channel{Name: "secret", Private: true, NoApp: true})
	away := c.CreateChannel(slacktest.Channel{Name: "away", NoApp: true})
	got, _, err := c.GetConversationsContext(ctx, &slack.GetConversationsParameters{Types: []string{"public_channel", "private_channel"}})
	if err != nil || len(got) != 2 || got[0].Name != "eng" || !got[0].IsMember || got[1].IsMember {
		t.Errorf("channels %+v, %v", got, err)
	}
	c.SetScopes("channels:read", "groups:read")
	_, _, err = c.GetConversationsContext(ctx, &slack.GetConversationsParameters{Types: []string{"im"}})
	c.fails(err, "missing_scope")
	_, _, _, err = c.JoinConversationContext(ctx, away)
	c.fails(err, "missing_scope")
	c.SetScopes("channels:join", "channels:read", "groups:read", "im:read")
	if joined, _, _, err := c.JoinConversationContext(ctx, away); err != nil || !joined.IsMember {
		t.Errorf("joined %+v, %v", joined, err)
	}
	c.DM("ada", "hi")
	info, err := c.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: c.ChannelID("@ada")})
	if err != nil || !info.IsIM || info.User != c.PersonID("ada") {
		t.Errorf("info %+v, %v", info, err)
	}
	_, err = c.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: c.ChannelID("secret")})
	c.fails(err, "channel_not_found")
}

func TestPeople(t *testing.T) {
	t.Parallel()
	c := quick(t)
	ctx := t.Context()
	c.AddPerson(slacktest.Person{Handle: "gil", Guest: true, Email: "gil@x.example"})
	c.AddPerson(slacktest.Person{Handle: "eve", Team: "T0OTHER"})
	c.AddPerson(slacktest.Person{Handle: "old", Gone: true})
	gil, err := c.GetUserInfoContext(ctx, c.PersonID("gil"))
	if err != nil || !gil.IsRestricted || gil.IsUltraRestricted || gil.Profile.Email != "gil@x.example" {
		t.Errorf("gil %+v, %v", gil, err)
	}
	eve, err := c.GetUserInfoContext(ctx, c.PersonID("eve"))
	if err != nil || !eve.IsStranger || eve.TeamID != "T0OTHER" || eve.Profile.Email != "" {
		t.Errorf("eve %+v, %v", eve, err)
	}
	if ada, err := c.GetUserByEmailContext(ctx, "ADA@acme.example"); err != nil || ada.ID != c.PersonID("ada") {
		t.Errorf("ada %+v, %v", ada, err)
	}
	for _, address := range []string{"eve@acme.example", "old@acme.example", "none@acme.example"} {
		_, err := c.GetUserByEmailContext(ctx, address)
		c.fails(err, "users_not_found")
	}
	_, err = c.GetUserInfoContext(ctx, "U0NONE")
	c.fails(err, "user_not_found")
	group := c.CreateGroup("core", "ada", "bob")
	members, err := c.GetUserGroupMembersContext(ctx, group)
	if diff := cmp.Diff([]string{c.PersonID("ada"), c.PersonID("bob")}, members); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	_, err = c.GetUserGroupMembersContext(ctx, "S0NONE")
	c.fails(err, "no_such_subteam")
}

func TestJoinedConversations(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.CreateChannel(slacktest.Channel{Name: "elsewhere", NoApp: true})
	secret := c.CreateChannel(slacktest.Channel{Name: "secret", Private: true})
	got, _, err := c.GetConversationsForUserContext(t.Context(), &slack.GetConversationsForUserParameters{
		Types: []string{"public_channel", "private_channel"},
	})
	var ids []string
	for _, joined := range got {
		ids = append(ids, joined.ID)
	}
	if err != nil || !slices.Contains(ids, c.eng) || !slices.Contains(ids, secret) || slices.Contains(ids, c.ChannelID("elsewhere")) {
		t.Errorf("in %q, %v", ids, err)
	}
	c.SetScopes("channels:read", "groups:read")
	if _, _, err := c.GetConversationsForUserContext(t.Context(), &slack.GetConversationsForUserParameters{Types: []string{"im"}}); err == nil || err.Error() != "missing_scope" {
		t.Errorf("direct messages without the scope: %v", err)
	}
}
