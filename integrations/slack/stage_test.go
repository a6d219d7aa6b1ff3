package slack

import (
	"encoding/json"
	"net/url"
	"testing"
	"time"

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
	editTS = "1795000150.000300"
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

// edit is Ada's edit of the message that begins the thread.
func edit(now, before string, more object) object {
	after := object{"user": ada, "text": now, "ts": rootTS, "edited": object{"user": ada, "ts": editTS}}.with(more)
	return happens(says("").with(object{
		"subtype": "message_changed", "hidden": true, "user": nil, "ts": editTS,
		"message": after, "previous_message": object{"user": after["user"], "text": before, "ts": after["ts"]},
	}))
}

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
		"actions":   []object{object{"block_id": blockID(team, ofTurn(nameDo, 3)), "action_ts": "1795000210.194939", "type": "button"}.with(a)},
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
		Ref: "message/" + rootTS + "/" + ada, Early: true, At: at(rootTS),
	}
}

func replied(verb session.Verb, text string) session.Request {
	q := asked(verb, text)
	q.ID, q.Ref, q.At = "sl-m-C0ENG-1795000123-000200", "message/"+nextTS+"/"+ada, at(nextTS)
	return q
}

func by(login string, q session.Request) session.Request {
	q.By.Login = login
	return q
}

func pressedFor(verb session.Verb, text string) session.Request {
	return session.Request{
		ID: "sl-b-1795000123-000200-U0HUMAN-1795000210-194939", Thread: inThread, By: session.Person{Login: ada, Name: "ada"},
		Verb: verb, Text: text, Ref: "button/" + nextTS + "/do-3/" + ada, At: at("1795000210.194939"),
	}
}

func pointedAt(text, quote string) session.Request {
	q := pressedFor(session.Instruct, text)
	q.ID, q.Ref, q.Quote, q.Early = "sl-p-1795000000-000100-U0HUMAN-1795000210-194939", "shortcut/"+rootTS+"/"+ada, quote, true
	return q
}

func commanded(text string) session.Request {
	name := commandOf("111.222.xxx")
	return session.Request{
		ID: "sl-" + name, Thread: session.Thread{Platform: Platform, Key: "T0SHIP/C0ENG/" + name},
		By: session.Person{Login: ada, Name: "ada"}, Verb: session.Instruct, Text: text, Ref: "command//" + ada, At: now,
	}
}

func inRepo(q session.Request) session.Request {
	q.Repo = "acme/widgets"
	return q
}
