package linear

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/bot"
	"ship/config"
	"ship/session"
	"ship/session/memory"
)

const (
	secret     = "the webhook's secret"
	deliveryID = "72d3162e-cc78-41e3-81ab-4c9367dc0958"
	org        = "6f0f1a52-0000-4000-8000-000000000001"
	sessionID  = "6f0f1a52-0000-4000-8000-000000000003"
	issueID    = "6f0f1a52-0000-4000-8000-000000000004"
	appID      = "6f0f1a52-0000-4000-8000-000000000010"
	ada        = "6f0f1a52-0000-4000-8000-000000000011"
	activityID = "6f0f1a52-0000-4000-8000-000000000030"
	commentID  = "6f0f1a52-0000-4000-8000-000000000006"
)

// now is when the webhooks below are sent.
var now = time.UnixMilli(1794787200000).UTC()

func sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// receiver is one with a vault of its own.
func receiver(t testing.TB) *Receiver { return receiverOver(t, &memory.Vault{}) }

func receiverOver(t testing.TB, v vault, changes ...func(*ReceiverConfig)) *Receiver {
	t.Helper()
	c := ReceiverConfig{Secrets: []string{secret}, Vault: v, Tokens: access(t, v), Now: func() time.Time { return now }}
	for _, change := range changes {
		change(&c)
	}
	r, err := NewReceiver(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// access is what a receiver has of tokens, for tests that fetch none.
func access(t testing.TB, v vault) *Tokens {
	t.Helper()
	tokens, err := NewTokens(TokensConfig{ClientID: "app", ClientSecret: config.NewSecret(clientSecret), Vault: v, Locker: v})
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// object is JSON on its way to be sent.
type object map[string]any

func (o object) with(more object) object {
	for k, v := range more {
		o[k] = v
	}
	return o
}

func (o object) sign(t testing.TB) (http.Header, []byte) {
	t.Helper()
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	h.Set(headerDelivery, deliveryID)
	h.Set(headerSignature, sign(secret, body))
	return h, body
}

func event(kind, action string) object {
	return object{
		"type": kind, "action": action, "createdAt": "2026-11-16T00:00:00.000Z",
		"organizationId": org, "appUserId": appID, "webhookTimestamp": now.UnixMilli(),
	}
}

func human() object { return object{"id": ada, "name": "Ada Human", "email": "ada@acme.example"} }

func delegated() object {
	return event(eventSession, "created").with(object{
		"agentSession": object{
			"id": sessionID, "creatorId": ada, "creator": human(), "issueId": issueID,
			"comment": object{"id": "c0", "body": "This thread is for an agent session.", "userId": nil},
		},
		"promptContext": "<issue identifier=\"ENG-42\">…</issue>",
	})
}

func mentioned(body string) object {
	e := delegated()
	e["agentSession"].(object)["comment"] = object{"id": commentID, "body": body, "userId": ada}
	return e
}

func promptedWith(a object) object {
	said := object{"id": activityID, "userId": ada, "user": human(), "sourceCommentId": commentID}
	return event(eventSession, "prompted").with(object{
		"agentSession": object{"id": sessionID, "issueId": issueID}, "agentActivity": said.with(a),
	})
}

func content(body string) object {
	return object{"content": object{"type": "prompt", "body": body}}
}

var byAda = session.Person{Login: ada, Name: "Ada Human", Email: "ada@acme.example"}

// asked is the request that most webhooks below make.
func asked(verb session.Verb, text string) session.Request {
	return session.Request{
		Thread: session.Thread{Platform: Platform, Key: org + "/" + sessionID + "/" + issueID},
		By:     byAda, Verb: verb, Text: text, Early: true, At: now,
	}
}

func firstly(r session.Request) session.Request {
	r.ID, r.Quote = "ln-s"+sessionID, "<issue identifier=\"ENG-42\">…</issue>"
	return r
}

func later(r session.Request) session.Request {
	r.ID, r.Ref = "ln-a"+activityID, activityID+"/"+commentID
	return r
}

func TestRequests(t *testing.T) {
	t.Parallel()
	withRepo := asked(session.Instruct, "fix it")
	withRepo.Repo = "acme/widgets"
	stranger := delegated()
	stranger["agentSession"].(object)["comment"] = object{"id": commentID, "body": "@ship delete it all", "userId": "someone-else"}
	elsewhere := mentioned("@ship stop")
	elsewhere["agentSession"].(object)["sourceCommentId"] = "another"
	root := mentioned("@ship stop").with(object{"previousComments": []object{{"id": commentID, "body": "@ship stop", "userId": ada}}})
	nobody := delegated()
	nobody["agentSession"].(object)["creator"], nobody["agentSession"].(object)["creatorId"] = nil, nil
	byNobody := firstly(asked(session.Instruct, ""))
	byNobody.By = session.Person{Login: automation}
	guided := mentioned("@ship fix it").with(object{"guidance": []object{
		{"body": "Run the linter.", "origin": object{"type": "Team", "team": object{"name": "Engi\nneering"}}},
		{"body": "Be brief.", "origin": object{"type": "Organization"}},
		{"body": "<issue identifier", "origin": object{"type": "Organization"}}, // is in the context
	}})
	byGuided := firstly(asked(session.Instruct, "fix it"))
	byGuided.Quote = "Guidance of the team Engi neering:\nRun the linter.\n\nGuidance of the workspace:\nBe brief.\n\n" + byGuided.Quote
	tests := []struct {
		name string
		body object
		want session.Request
	}{
		{"delegated", delegated(), firstly(asked(session.Instruct, ""))},
		{"delegated by an automation", nobody, byNobody},
		{"mentioned", mentioned("@ship please look at this"), firstly(asked(session.Instruct, "please look at this"))},
		{"mentioned by link", mentioned("https://linear.app/acme/profiles/ship status"), firstly(asked(session.Status, ""))},
		{"mentioned by Markdown link", mentioned("[ship](https://linear.app/acme/profiles/ship), fix it"), firstly(asked(session.Instruct, "fix it"))},
		{"mentioned alone", mentioned("@ship"), firstly(asked(session.Instruct, ""))},
		{"mentioned later in the text", mentioned("Could @ship fix it?"), firstly(asked(session.Instruct, "Could @ship fix it?"))},
		{"with an option", mentioned("@ship [repo=acme/widgets] fix it"), firstly(withRepo)},
		{"a comment of somebody else", stranger, firstly(asked(session.Instruct, ""))},
		{"from another thread", elsewhere, firstly(asked(session.Instruct, ""))},
		{"under an older comment", root, firstly(asked(session.Instruct, ""))},
		{"guidance", guided, byGuided},
		{"prompted", promptedWith(content("use the staging database")), later(asked(session.Instruct, "use the staging database"))},
		{"prompted as the prose says", promptedWith(object{"body": "use staging"}), later(asked(session.Instruct, "use staging"))},
		{"prompted with nothing", promptedWith(content("")), later(asked(session.Instruct, ""))},
		{"prompted with a word", promptedWith(content("@ship retry")), later(asked(session.Retry, ""))},
		{"stopped by word", promptedWith(content("Stop!")), later(asked(session.Stop, ""))},
		{"stopped by signal", promptedWith(content("that is enough").with(object{"signal": "stop"})), later(asked(session.Stop, ""))},
		{"another signal", promptedWith(content("acme/widgets").with(object{"signal": "select"})), later(asked(session.Instruct, "acme/widgets"))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h, body := tt.body.sign(t)
			got, err := receiver(t).Receive(t.Context(), h, body)
			if err != nil {
				t.Fatal(err)
			}
			content := "ln:session:" + sessionID
			if tt.want.Ref != "" {
				content = "ln:activity:" + activityID
			}
			want := bot.Received{
				Event: eventSession, Outcome: outcomeAccepted, Delivery: deliveryID,
				Deliveries: []session.Delivery{{
					Session: "ln." + sessionID, Keys: []string{"ln:" + deliveryID, content}, Keep: keepKeys,
					Event: session.Event{V: session.EventVersion, Kind: session.Asked, Delivery: deliveryID, Request: &tt.want},
				}},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("received (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIgnored(t *testing.T) {
	t.Parallel()
	own := delegated()
	own["agentSession"].(object)["creatorId"] = appID
	owned := delegated().with(object{"appUserId": nil})
	owned["agentSession"] = owned["agentSession"].(object).with(object{"creatorId": appID, "appUserId": appID})
	notify := func(action string) object {
		return event(eventNotification, action).with(object{"notification": object{"id": "n1", "issueId": issueID}})
	}
	for name, tt := range map[string]struct {
		body    object
		event   string
		outcome string
	}{
		"session of our own":  {own, eventSession, outcomeOwn},
		"session says whose":  {owned, eventSession, outcomeOwn},
		"activity of our own": {promptedWith(object{"userId": appID}), eventSession, outcomeOwn},
		"not a prompt":        {promptedWith(object{"content": object{"type": "thought", "body": "stop"}}), eventSession, outcomeNoPrompt},
		"other action":        {event(eventSession, "archived"), eventSession, outcomeIgnoredAction},
		"mention":             {notify("issueCommentMention"), eventNotification, outcomeIgnoredAction},
		"assignment":          {notify("issueAssignedToYou"), eventNotification, outcomeIgnoredAction},
		"authorization":       {event(eventAuthorization, "create"), eventAuthorization, outcomeIgnoredEvent},
		"other permission":    {event(eventPermission, "somethingElse"), eventPermission, outcomeIgnoredAction},
		"issue":               {event("Issue", "update"), "other", outcomeIgnoredEvent},
		"unknown":             {event("SomethingNew", "create"), "other", outcomeIgnoredEvent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, body := tt.body.sign(t)
			got, err := receiver(t).Receive(t.Context(), h, body)
			want := bot.Received{Event: tt.event, Outcome: tt.outcome, Delivery: deliveryID}
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	badSession := delegated().with(object{"agentSession": object{"id": "../x", "creatorId": ada}})
	for name, body := range map[string]string{
		"empty": "", "not JSON": "type=x", "cut off": `{"type":"AgentSessionEvent"`, "a list": "[]", "a text": `"x"`,
		"no type":            text(t, object{"webhookTimestamp": now.UnixMilli()}),
		"no session":         text(t, event(eventSession, "created")),
		"path as a session":  text(t, badSession),
		"no activity":        text(t, event(eventSession, "prompted").with(object{"agentSession": object{"id": sessionID}})),
		"no organization":    text(t, delegated().with(object{"organizationId": nil})),
		"odd user":           text(t, promptedWith(object{"userId": "a b"})),
		"no notification":    text(t, event(eventNotification, "issueUnassignedFromYou")),
		"nobody's access":    text(t, event(eventApp, "revoked").with(object{"organizationId": "a/b"})),
		"session is a text":  text(t, delegated().with(object{"agentSession": "x"})),
		"deeply nested":      strings.Repeat("[", 1<<20),
		"timestamp is a map": text(t, delegated().with(object{"webhookTimestamp": object{}})),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{}
			h.Set(headerDelivery, deliveryID)
			h.Set(headerSignature, sign(secret, []byte(body)))
			got, err := receiver(t).Receive(t.Context(), h, []byte(body))
			if !errors.Is(err, bot.ErrMalformed) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	h, body := delegated().sign(t)
	for _, id := range []string{"", "a b", strings.Repeat("x", 65)} {
		h.Set(headerDelivery, id)
		if _, err := receiver(t).Receive(t.Context(), h, body); !errors.Is(err, bot.ErrMalformed) {
			t.Errorf("delivery id %q: %v", id, err)
		}
	}
}

func text(t testing.TB, o object) string {
	_, body := o.sign(t)
	return string(body)
}

// TestShapesMayChange: a field that came in another shape costs only itself.
func TestShapesMayChange(t *testing.T) {
	t.Parallel()
	h, body := mentioned("@ship fix it").with(object{"guidance": "be brief", "promptContext": object{"v": 2}, "previousComments": 7}).sign(t)
	got, err := receiver(t).Receive(t.Context(), h, body)
	if err != nil || len(got.Deliveries) != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if q := got.Deliveries[0].Event.Request; q.Text != "fix it" || q.Quote != "" || q.By != byAda {
		t.Errorf("request %+v", q)
	}
}

func TestLongTextIsCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 60000)
	h, body := mentioned("@ship " + long).with(object{
		"promptContext": long + "x", "guidance": []object{{"body": long + "y"}},
	}).sign(t)
	got, err := receiver(t).Receive(t.Context(), h, body)
	if err != nil {
		t.Fatal(err)
	}
	q := got.Deliveries[0].Event.Request
	if n := len(q.Text); n > maxText || n < maxText-4 {
		t.Errorf("text has %d bytes", n)
	}
	if n := len(q.Quote); n > maxQuote || n < maxQuote-8 {
		t.Errorf("quote has %d bytes", n)
	}
}

// TestExamples: each published kind of webhook comes to what it should.
func TestExamples(t *testing.T) {
	t.Parallel()
	dir := shared(t, "webhooks", "linear")
	for name, want := range map[string]struct {
		outcome string
		verb    session.Verb
		text    string
	}{
		"AgentSessionEvent.created.delegated":            {outcomeAccepted, session.Instruct, ""},
		"AgentSessionEvent.created.mentioned-in-comment": {outcomeAccepted, session.Instruct, "please look at this"},
		"AgentSessionEvent.prompted":                     {outcomeAccepted, session.Instruct, "use the staging database"},
		"AgentSessionEvent.prompted.stop":                {outcomeAccepted, session.Stop, ""},
		"AppUserNotification.issueAssignedToYou":         {outcomeIgnoredAction, "", ""},
		"AppUserNotification.issueNewComment":            {outcomeIgnoredAction, "", ""},
		"AppUserNotification.issueUnassignedFromYou":     {outcomeNoSession, "", ""},
		"Issue.update":                       {outcomeIgnoredEvent, "", ""},
		"OAuthApp.revoked":                   {outcomeRevoked, "", ""},
		"PermissionChange.teamAccessChanged": {outcomeAccess, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile(filepath.Join(dir, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			h := http.Header{}
			h.Set(headerDelivery, deliveryID)
			h.Set(headerSignature, sign(secret, body))
			got, err := receiver(t).withClock(now.Add(time.Hour)).Receive(t.Context(), h, body)
			if err != nil || got.Outcome != want.outcome || (len(got.Deliveries) == 1) != (want.verb != "") {
				t.Fatalf("got %+v, %v", got, err)
			}
			if want.verb == "" {
				return
			}
			if q := got.Deliveries[0].Event.Request; q.Verb != want.verb || q.Text != want.text || q.By != byAda {
				t.Errorf("request %+v", q)
			}
		})
	}
}
