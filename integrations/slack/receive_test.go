package slack

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
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

const (
	secret = "the app's secret"
	team   = "T0SHIP"
	ch     = "C0ENG"
	ada    = "U0HUMAN"
	us     = "UBOTSHIP"
	rootTS = "1795000000.000100"
	nextTS = "1795000123.000200"
)

var now = time.Unix(1795000200, 0).UTC()

func receiver(t testing.TB) *Receiver {
	t.Helper()
	r, err := NewReceiver(ReceiverConfig{Secrets: []string{secret}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// receive signs a body and receives it.
func receive(t testing.TB, body []byte) bot.Received {
	t.Helper()
	got, err := receiver(t).Receive(t.Context(), signed(secret, now, body), body)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// object is JSON on its way to be sent.
type object map[string]any

func (o object) with(more object) object {
	for k, v := range more {
		o[k] = v
	}
	return o
}

func (o object) json(t testing.TB) []byte {
	t.Helper()
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// happens is an event in the workspace.
func happens(e object) object {
	return object{
		"type": "event_callback", "team_id": team, "api_app_id": "A0SHIP", "event_id": "Ev01", "enterprise_id": nil,
		"authorizations": []object{{"team_id": team, "user_id": us, "is_bot": true, "enterprise_id": nil}},
		"event":          e,
	}
}

// says is a message of Ada's in a channel.
func says(text string) object {
	return object{"type": "message", "channel": ch, "channel_type": "channel", "user": ada, "team": team, "text": text, "ts": rootTS, "event_ts": rootTS}
}

func calls(text string) object {
	o := says("<@" + us + "> " + text).with(object{"type": "app_mention"})
	delete(o, "channel_type")
	return o
}

func reply(o object) object { return o.with(object{"thread_ts": rootTS, "ts": nextTS}) }

func byForm(values object) []byte {
	form := url.Values{}
	for k, v := range values {
		form.Set(k, v.(string))
	}
	return []byte(form.Encode())
}

func slash(text string) []byte {
	return byForm(object{
		"team_id": team, "channel_id": ch, "user_id": ada, "user_name": "ada", "command": "/ship", "text": text,
		"trigger_id": "111.222.xxx", "response_url": "https://hooks.slack.com/commands/T0SHIP/111/xxx",
	})
}

func presses(t testing.TB, o object) []byte {
	return byForm(object{"payload": string(o.json(t))})
}

// press is Ada's press of a button in the thread.
func press(a object) object {
	return object{
		"type": "block_actions", "trigger_id": "111.222.valid", "user": object{"id": ada, "username": "ada", "team_id": team},
		"team": object{"id": team}, "enterprise": nil, "channel": object{"id": ch},
		"container": object{"type": "message", "message_ts": nextTS, "channel_id": ch, "thread_ts": rootTS},
		"message":   object{"user": us, "bot_id": "B0SHIP", "ts": nextTS, "thread_ts": rootTS},
		"actions":   []object{object{"block_id": blockID(team, "turn"), "action_ts": "1795000210.194939", "type": "button"}.with(a)},
	}
}

func shortcut(author string) object {
	return object{
		"type": "message_action", "callback_id": callbackMessage, "trigger_id": "111.222.valid", "action_ts": "1795000210.194939",
		"user": object{"id": ada, "username": "ada", "team_id": team}, "team": object{"id": team}, "channel": object{"id": ch},
		"message": object{"user": author, "ts": rootTS, "text": "the login test is &lt;flaky&gt;"},
	}
}

var inThread = session.Thread{Platform: Platform, Key: "T0SHIP/C0ENG/1795000000.000100"}

func at(ts string) time.Time { return moment(ts) }

// asked is the request of a message that begins the thread.
func asked(verb session.Verb, text string) session.Request {
	return session.Request{
		ID: "sl-m-C0ENG-1795000000-000100", Thread: inThread, By: session.Person{Login: ada}, Verb: verb, Text: text,
		Ref: "message/" + rootTS, Early: true, At: at(rootTS),
	}
}

func replied(verb session.Verb, text string) session.Request {
	q := asked(verb, text)
	q.ID, q.Ref, q.At = "sl-m-C0ENG-1795000123-000200", "message/"+nextTS, at(nextTS)
	return q
}

func by(login string, q session.Request) session.Request {
	q.By.Login = login
	return q
}

func pressedFor(verb session.Verb, text string) session.Request {
	return session.Request{
		ID: "sl-b-1795000123-000200-U0HUMAN-1795000210-194939", Thread: inThread, By: session.Person{Login: ada, Name: "ada"},
		Verb: verb, Text: text, Ref: "button/" + nextTS, At: at("1795000210.194939"),
	}
}

func pointedAt(text, quote string) session.Request {
	q := pressedFor(session.Instruct, text)
	q.ID, q.Ref, q.Quote, q.Early = "sl-p-1795000000-000100-U0HUMAN-1795000210-194939", "shortcut/"+rootTS, quote, true
	return q
}

func commanded(text string) session.Request {
	name := commandOf("111.222.xxx")
	return session.Request{
		ID: "sl-" + name, Thread: session.Thread{Platform: Platform, Key: "T0SHIP/C0ENG/" + name},
		By: session.Person{Login: ada, Name: "ada"}, Verb: session.Instruct, Text: text, Ref: "command/", At: now,
	}
}

func inRepo(q session.Request) session.Request {
	q.Repo = "acme/widgets"
	return q
}

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

func TestWhatIsNotForUs(t *testing.T) {
	t.Parallel()
	edit := func(now, before string, more object) []byte {
		return happens(says("").with(object{
			"subtype": "message_changed", "hidden": true, "user": nil,
			"message": object{"user": ada, "text": now}.with(more), "previous_message": object{"user": ada, "text": before},
		})).json(t)
	}
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
		"another bot":           {happens(calls("x").with(object{"bot_id": "B2"})).json(t), "app_mention", "another bot"},
		"a bot's message":       {happens(says(call).with(object{"subtype": "bot_message", "bot_id": "B2", "user": nil})).json(t), "message", "another bot"},
		"hidden":                {happens(says(call).with(object{"hidden": true})).json(t), "message", "not spoken"},
		"joined":                {happens(says(call).with(object{"subtype": "channel_join"})).json(t), "message", "not spoken"},
		"deleted":               {happens(says(call).with(object{"subtype": "message_deleted", "hidden": true})).json(t), "message", "not spoken"},
		"request edited":        {edit(call+" now", call, nil), "message", "edit of a request"},
		"mention taken out":     {edit("fix it", call, nil), "message", "edit of a request"},
		"link unfurled":         {edit(call, call+" ", nil), "message", "not spoken"},
		"other edit":            {edit("dinner?", "lunch?", nil), "message", "not spoken"},
		"our own edited":        {edit(call+" now", call, object{"user": us}), "message", "not spoken"},
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
	want.Thread.Key, want.Ref = "T0SHIP/C0ENG/"+nextTS, "command/"+nextTS
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
		"message.message_changed.json":              "edit of a request",
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
