package slack

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/bot"
	"ship/session"
)

func TestRequests(t *testing.T) {
	t.Parallel()
	direct := object{"channel": "D0HUMAN", "channel_type": "im"}
	inDM := asked(session.Instruct, "what are you working on?")
	inDM.ID, inDM.Thread.Key = "sl-m-D0HUMAN-1795000000-000100", "T0SHIP/D0HUMAN/1795000000.000100"
	foreign := func(e, envelope object) []byte {
		return happens(e.with(object{"team": "T2EXT"})).with(object{"is_ext_shared_channel": true}).with(envelope).json(t)
	}
	stop := session.Request{
		ID: "sl-s-1795000210-194939-U0HUMAN", Thread: inThread, By: session.Person{Login: ada}, Verb: session.Stop,
		Ref: "stop/", At: at("1795000210.194939"),
	}
	outside := pressedFor(session.Stop, "")
	outside.By.Login = "T2EXT/" + ada
	rooted := pressedFor(session.Retry, "")
	rooted.Thread.Key = "T0SHIP/C0ENG/" + nextTS
	tests := map[string]struct {
		body    []byte
		event   string
		id      session.ID
		content string
		want    session.Request
	}{
		"mention":            {happens(calls("fix it")).json(t), "app_mention", "", "", asked(session.Instruct, "fix it")},
		"its twin":           {happens(says("<@" + us + "> fix it")).json(t), "message", "", "", asked(session.Instruct, "fix it")},
		"with /ship":         {happens(calls("/ship [repo=acme/widgets] fix it")).json(t), "app_mention", "", "", inRepo(asked(session.Instruct, "fix it"))},
		"at the end":         {happens(says("please stop <@" + us + ">")).json(t), "message", "", "", asked(session.Stop, "")},
		"bare, to begin":     {happens(calls("")).json(t), "app_mention", "", "", asked(session.Help, "")},
		"bare, in a thread":  {happens(reply(calls(""))).json(t), "app_mention", "", "T0SHIP/C0ENG/" + nextTS, replied(session.Instruct, "")},
		"reply that names":   {happens(reply(calls("also add a test"))).json(t), "app_mention", "", "T0SHIP/C0ENG/" + nextTS, replied(session.Instruct, "also add a test")},
		"to the channel too": {happens(reply(calls("again")).with(object{"subtype": "thread_broadcast", "type": "message"})).json(t), "message", "", "T0SHIP/C0ENG/" + nextTS, replied(session.Instruct, "again")},
		"with a file":        {happens(calls("look").with(object{"subtype": "file_share", "type": "message"})).json(t), "message", "", "", asked(session.Instruct, "look")},
		"direct message":     {happens(says("what are you working on?").with(direct)).json(t), "message", "sl.T0SHIP.D0HUMAN.1795000000-000100", "T0SHIP/D0HUMAN/" + rootTS, inDM},
		"odd blocks":         {happens(calls("fix it").with(object{"blocks": "none", "files": 7, "edited": []int{1}})).json(t), "app_mention", "", "", asked(session.Instruct, "fix it")},
		"nobody authorized":  {happens(calls("fix it")).with(object{"authorizations": nil}).json(t), "app_mention", "", "", asked(session.Instruct, "fix it")},
		"unclear":            {happens(calls("model")).json(t), "app_mention", "", "", asked(session.Unclear, bot.ParseText("model").Text)},
		"from outside":       {foreign(calls("fix it"), nil), "app_mention", "", "", by("T2EXT/"+ada, asked(session.Instruct, "fix it"))},
		"outside's envelope": {foreign(calls("fix it"), object{"team_id": "T2EXT"}), "app_mention", "", "", by("T2EXT/"+ada, asked(session.Instruct, "fix it"))},
		"same company":       {foreign(calls("fix it"), object{"is_ext_shared_channel": false}), "app_mention", "", "", asked(session.Instruct, "fix it")},
		"slack's stop": {happens(object{"type": "agent_session_stopped", "channel": ch, "thread_ts": rootTS, "user": ada, "event_ts": "1795000210.194939"}).json(t),
			"agent_session_stopped", "", "stop/T0SHIP/C0ENG/1795000000.000100/1795000210.194939/U0HUMAN", stop},
		"button stop":      {presses(t, press(object{"action_id": "ship_stop"})), "block_actions", "", pressKey("ship_stop"), pressedFor(session.Stop, "")},
		"button retry":     {presses(t, press(object{"action_id": "ship_retry.1"})), "block_actions", "", pressKey("ship_retry.1"), pressedFor(session.Retry, "")},
		"button ready":     {presses(t, press(object{"action_id": "ship_ready"})), "block_actions", "", pressKey("ship_ready"), pressedFor(session.Ready, "")},
		"choice":           {presses(t, press(object{"action_id": "ship_choose.2", "value": "stop"})), "block_actions", "", pressKey("ship_choose.2"), pressedFor(session.Instruct, "stop")},
		"choice of a menu": {presses(t, press(object{"action_id": "ship_choose", "selected_option": object{"value": "acme/widgets"}})), "block_actions", "", pressKey("ship_choose"), pressedFor(session.Instruct, "acme/widgets")},
		"button, outside": {presses(t, press(object{"action_id": "ship_stop"}).with(object{"team": object{"id": "T2EXT"}, "user": object{"id": ada, "username": "ada", "team_id": "T2EXT"}})),
			"block_actions", "", pressKey("ship_stop"), outside},
		"button on the root": {presses(t, press(object{"action_id": "ship_retry"}).with(object{"container": object{"message_ts": nextTS, "channel_id": ch}, "message": object{"ts": nextTS}})),
			"block_actions", "sl.T0SHIP.C0ENG.1795000123-000200", pressKey("ship_retry"), rooted},
		"shortcut": {presses(t, shortcut("U0OTHER")), "interaction", "", "point/T0SHIP/C0ENG/1795000000.000100/U0HUMAN/1795000210.194939",
			pointedAt("", "the login test is <flaky>")},
		"shortcut on one's own": {presses(t, shortcut(ada)), "interaction", "", "point/T0SHIP/C0ENG/1795000000.000100/U0HUMAN/1795000210.194939",
			pointedAt("the login test is <flaky>", "")},
		"slash": {slash("[repo=acme/widgets] fix &lt;it&gt;"), "slash_command", session.ID("sl.T0SHIP.C0ENG." + commandOf("111.222.xxx")), commandOf("111.222.xxx"),
			inRepo(commanded("fix <it>"))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := receive(t, tt.body)
			if got.Event != tt.event || got.Outcome != outcomeAccepted || len(got.Deliveries) != 1 {
				t.Fatalf("got %+v", got)
			}
			if tt.id == "" {
				tt.id = "sl.T0SHIP.C0ENG.1795000000-000100"
			}
			if tt.content == "" {
				tt.content = "T0SHIP/C0ENG/" + rootTS
			}
			d := got.Deliveries[0]
			if d.Session != tt.id || d.Keep < 26*time.Hour || d.Event.Kind != session.Asked || d.Event.V != session.EventVersion {
				t.Errorf("delivery %+v", d)
			}
			if diff := cmp.Diff([]string{"sl:" + got.Delivery, "sl:" + tt.content}, d.Keys); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(&tt.want, d.Event.Request); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func pressKey(action string) string {
	return "press/T0SHIP/C0ENG/1795000123.000200/U0HUMAN/" + digest(action) + "/1795000210.194939"
}

// TestTwins: a mention that is also a message is one request.
func TestTwins(t *testing.T) {
	t.Parallel()
	one := receive(t, happens(calls("fix it")).json(t)).Deliveries[0]
	other := receive(t, happens(says("<@"+us+"> fix it")).with(object{"event_id": "Ev02"}).json(t)).Deliveries[0]
	if one.Session != other.Session || one.Keys[0] == other.Keys[0] || one.Keys[1] != other.Keys[1] {
		t.Errorf("%v and %v", one.Keys, other.Keys)
	}
	if diff := cmp.Diff(one.Event.Request, other.Event.Request); diff != "" {
		t.Error(diff)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r, err := NewReceiver(ReceiverConfig{
		Secrets: []string{secret}, Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	body := happens(calls("fix it")).json(t)
	late := signed(secret, now.Add(-6*time.Minute), body)
	late.Set(headerRetry, "3")
	late.Set(headerRetryReason, "http_timeout")
	if _, err := r.Receive(t.Context(), late, body); !errors.Is(err, bot.ErrStale) {
		t.Errorf("late: %v", err)
	}
	if line := log.String(); !strings.Contains(line, "retry=3") || !strings.Contains(line, "reason=http_timeout") {
		t.Errorf("logged %q", line)
	}
	log.Reset()
	if _, err := r.Receive(t.Context(), signed("guess", now.Add(-6*time.Minute), body), body); !errors.Is(err, bot.ErrForged) || log.Len() > 0 {
		t.Errorf("forged: %v, logged %q", err, &log)
	}
}

// TestCommandBecomesThread: a slash command's request in the thread that was
// begun for it.
func TestCommandBecomesThread(t *testing.T) {
	t.Parallel()
	first := receive(t, slash("[repo=acme/widgets] fix it")).Deliveries[0]
	waiting := first.Event.Request
	got, err := root(*waiting, nextTS)
	if err != nil || slices.Contains(first.Keys, got.Keys[0]) {
		t.Fatal(err)
	}
	want := inRepo(commanded("fix it"))
	want.Thread.Key, want.Ref = "T0SHIP/C0ENG/"+nextTS, "command/"+nextTS+"/"+ada
	if diff := cmp.Diff(&want, got.Event.Request); diff != "" {
		t.Error(diff)
	}
	if got.Session != "sl.T0SHIP.C0ENG.1795000123-000200" || !cmp.Equal(got.Keys, []string{"sl:root/" + commandOf("111.222.xxx")}) || got.Keep != keepKeys {
		t.Errorf("got %+v", got)
	}
	for _, bad := range []struct{ key, ts string }{
		{waiting.Thread.Key, "soon"}, {inThread.Key, nextTS}, {"T/C", nextTS},
	} {
		q := *waiting
		q.Thread.Key = bad.key
		if _, err := root(q, bad.ts); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

// TestExamples: everything in the collection of what Slack sends is taken.
func TestExamples(t *testing.T) {
	t.Parallel()
	dir := shared(t, "webhooks", "slack")
	want := map[string]string{
		"agent_session_stopped.json":                "accepted",
		"agent_session_title_changed.json":          "ignored event",
		"app_home_opened.messages-tab.json":         "ignored event",
		"app_mention.channel-root.json":             "accepted",
		"app_mention.in-thread.json":                "accepted",
		"app_rate_limited.json":                     "events held back",
		"app_uninstalled.json":                      "access revoked",
		"block_actions.form.txt":                    "ignored action", // another app's
		"message.channels.thread-reply.json":        "reply without a mention",
		"message.channels.twin-of-app_mention.json": "accepted",
		"message.im.json":                           "accepted",
		"message.message_changed.json":              "accepted",
		"message.message_deleted.json":              "not spoken",
		"message.own-bot-echo.json":                 "own output",
		"slash_command.form.txt":                    "accepted",
		"tokens_revoked.json":                       "access revoked",
		"url_verification.json":                     "challenge answered",
	}
	for name, outcome := range want {
		body, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := receive(t, bytes.TrimSpace(body)); got.Outcome != outcome || (len(got.Deliveries) == 1) != (outcome == "accepted") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, name := range []string{"block_actions.payload.json", "view_submission.payload.json"} {
		body, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := receive(t, byForm(object{"payload": string(body)})); got.Outcome != outcomeIgnoredAction {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
