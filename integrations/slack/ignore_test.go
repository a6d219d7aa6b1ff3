package slack

import (
	"errors"
	"strings"
	"testing"

	"ship/bot"
)

func TestWhatIsNotForUs(t *testing.T) {
	t.Parallel()
	call := "<@" + us + "> fix it"
	tests := map[string]struct {
		body           []byte
		event, outcome string
	}{
		"unaddressed":           {happens(says("lunch?")).json(t), "message", "not addressed"},
		"names somebody else":   {happens(says("<@U2> <@" + us + "X> lunch?")).json(t), "message", "not addressed"},
		"reply":                 {happens(reply(says("use the staging database"))).json(t), "message", "reply without a mention"},
		"who we are is unsaid":  {happens(says(call)).with(object{"authorizations": []object{}}).json(t), "message", "not addressed"},
		"own":                   {happens(says(call).with(object{"user": us, "bot_id": "B0SHIP"})).json(t), "message", "own output"},
		"own, by the app":       {happens(says(call).with(object{"user": "U9", "bot_id": "B0", "app_id": "A0SHIP"})).json(t), "message", "own output"},
		"own mention":           {happens(calls("x").with(object{"user": us})).json(t), "app_mention", "own output"},
		"mention in a quote":    {happens(says("&gt; " + call + "\nshould we?")).json(t), "message", "not addressed"},
		"mention quoted, again": {happens(calls("").with(object{"text": "so:\n&gt;&gt;&gt;x\n" + call})).json(t), "app_mention", "not addressed"},
		"reply with a quote":    {happens(reply(says("&gt; " + call + "\nno"))).json(t), "message", "reply without a mention"},
		"another bot":           {happens(calls("x").with(object{"bot_id": "B2"})).json(t), "app_mention", "another bot"},
		"a bot's message":       {happens(says(call).with(object{"subtype": "bot_message", "bot_id": "B2", "user": nil})).json(t), "message", "another bot"},
		"hidden":                {happens(says(call).with(object{"hidden": true})).json(t), "message", "not spoken"},
		"joined":                {happens(says(call).with(object{"subtype": "channel_join"})).json(t), "message", "not spoken"},
		"deleted":               {happens(says(call).with(object{"subtype": "message_deleted", "hidden": true})).json(t), "message", "not spoken"},
		"mention taken out":     {edit("fix it", call, nil).json(t), "message", "not spoken"},
		"mention added":         {edit(call, "fix it", nil).json(t), "message", "mentioned by an edit"},
		"mention edited late":   {happens(calls("x").with(object{"edited": object{"ts": "1795604800.000100"}})).json(t), "app_mention", "mentioned by an edit"},
		"link unfurled":         {edit(call, call, object{"edited": nil}).json(t), "message", "not spoken"},
		"space added":           {edit(call+" ", call, nil).json(t), "message", "not spoken"},
		"other edit":            {edit("dinner?", "lunch?", nil).json(t), "message", "not spoken"},
		"our own edited":        {edit(call+" now", call, object{"user": us}).json(t), "message", "not spoken"},
		"a bot's edited":        {edit(call+" now", call, object{"bot_id": "B2"}).json(t), "message", "not spoken"},
		"edited by another":     {edit(call+" now", call, object{"edited": object{"user": "U0OTHER", "ts": editTS}}).json(t), "message", "not spoken"},
		"deleted under replies": {edit("This message was deleted.", call, object{"subtype": "tombstone", "user": "USLACKBOT"}).json(t), "message", "not spoken"},
		"reply edited":          {edit("use production", "use staging", object{"ts": nextTS, "thread_ts": rootTS}).json(t), "message", "not spoken"},
		"home opened":           {happens(object{"type": "app_home_opened", "user": ada, "tab": "messages"}).json(t), "other", "ignored event"},
		"title changed":         {happens(object{"type": "agent_session_title_changed"}).json(t), "other", "ignored event"},
		"unknown event":         {happens(object{"type": "comet_seen", "channel": object{"id": 1}, "user": []int{1}}).json(t), "other", "ignored event"},
		"no event":              {object{"type": "event_callback", "event": "none"}.json(t), "other", "ignored event"},
		"unknown envelope":      {object{"type": "comet"}.json(t), "other", "ignored event"},
		"held back":             {object{"type": "app_rate_limited", "team_id": team, "minute_rate_limited": 1795000260}.json(t), "app_rate_limited", "events held back"},
		"uninstalled":           {happens(object{"type": "app_uninstalled"}).json(t), "app_uninstalled", "access revoked"},
		"revoked":               {happens(object{"type": "tokens_revoked", "tokens": object{"bot": []string{us}}}).json(t), "tokens_revoked", "access revoked"},
		"a person's revoked":    {happens(object{"type": "tokens_revoked", "tokens": object{"oauth": []string{ada}}}).json(t), "tokens_revoked", "ignored event"},
		"mention without time":  {happens(calls("x").with(object{"ts": 7})).json(t), "app_mention", "unusable"},
		"mention without user":  {happens(calls("x").with(object{"user": nil})).json(t), "app_mention", "unusable"},
		"mention in a path":     {happens(calls("x").with(object{"channel": "../C1"})).json(t), "app_mention", "unusable"},
		"stop without thread":   {happens(object{"type": "agent_session_stopped", "channel": ch, "user": ada, "event_ts": nextTS}).json(t), "agent_session_stopped", "unusable"},
		"unknown button":        {presses(t, press(object{"action_id": "approve"})), "block_actions", "ignored action"},
		"empty choice":          {presses(t, press(object{"action_id": "ship_choose.1", "value": " "})), "block_actions", "ignored action"},
		"no button":             {presses(t, press(nil).with(object{"actions": []object{}})), "block_actions", "ignored action"},
		"link":                  {presses(t, press(object{"action_id": "ship_link.pr"})), "block_actions", "link opened"},
		"button in a dialog":    {presses(t, press(object{"action_id": "ship_stop"}).with(object{"container": object{"type": "view"}, "message": nil})), "block_actions", "unusable"},
		"dialog":                {presses(t, object{"type": "view_submission"}), "interaction", "ignored action"},
		"shortcut to nothing":   {presses(t, object{"type": "shortcut", "callback_id": callbackMessage}), "interaction", "ignored action"},
		"another's shortcut":    {presses(t, shortcut(ada).with(object{"callback_id": "other"})), "interaction", "ignored action"},
		"shortcut without text": {presses(t, shortcut(ada).with(object{"message": nil})), "interaction", "unusable"},
		"certificate check":     {[]byte("token=x&ssl_check=1"), "slash_command", "ignored action"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := receive(t, tt.body)
			if got.Event != tt.event || got.Outcome != tt.outcome || len(got.Deliveries) != 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestAnswers: what Slack shows or reads is exactly what is meant.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body []byte
		want string
	}{
		"challenge":        {object{"type": "url_verification", "challenge": "3eZbrw1aBm2rZgRNFdxV"}.json(t), "3eZbrw1aBm2rZgRNFdxV"},
		"button":           {presses(t, press(object{"action_id": "ship_stop"})), ""},
		"unknown button":   {presses(t, press(object{"action_id": "approve"})), ""},
		"dialog":           {presses(t, object{"type": "view_submission"}), ""},
		"slash":            {slash("fix it"), sayThread},
		"slash alone":      {slash(" "), sayUsage},
		"slash help":       {slash("help"), sayUsage},
		"slash repo alone": {slash("repo acme/widgets"), sayUsage},
		"slash stop":       {slash("stop"), "A slash command does not tell me which thread it is about. Write `stop` in the thread itself, and mention me in it."},
		"slash unclear":    {slash("model"), bot.ParseText("model").Text},
		"slash from where": {byForm(object{"command": "/ship", "text": "fix it"}), sayUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := receive(t, tt.body)
			if got.Answer == nil || *got.Answer != tt.want {
				t.Errorf("got %v", got.Answer)
			}
			if accepted := got.Outcome == outcomeAccepted; accepted != (len(got.Deliveries) == 1) {
				t.Errorf("got %+v", got)
			}
		})
	}
	if got := receive(t, happens(calls("fix it")).json(t)); got.Answer != nil {
		t.Errorf("an event is answered %q", *got.Answer)
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "{", `{"type":`, "null", "[]", "%zz", "payload=%7B", "payload=", "a=b", `payload=[`} {
		got, err := receiver(t).Receive(t.Context(), signed(secret, now, []byte(body)), []byte(body))
		if !errors.Is(err, bot.ErrMalformed) {
			t.Errorf("%q: %+v, %v", body, got, err)
		}
	}
}

// TestIDsThatAreNone: what has no id of Slack's does not share one.
func TestIDsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, body := range [][]byte{
		happens(calls("fix it")).with(object{"event_id": ""}).json(t),
		happens(calls("fix it")).with(object{"event_id": "sl: x"}).json(t),
		presses(t, press(object{"action_id": "ship_stop"}).with(object{"trigger_id": ""})),
	} {
		got := receive(t, body)
		if len(got.Deliveries) != 1 || len(got.Deliveries[0].Keys) != 1 || strings.Contains(got.Deliveries[0].Keys[0], "sl: x") {
			t.Errorf("got %+v", got)
		}
	}
}
