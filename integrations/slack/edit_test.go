package slack

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/session"
)

// TestEdits: who changes the words of a request asks nothing anew.
func TestEdits(t *testing.T) {
	t.Parallel()
	call := "<@" + us + "> fix it"
	inDM := func(o object) object {
		o["event"].(object).with(object{"channel": "D0HUMAN", "channel_type": "im"})
		return o
	}
	direct := asked(session.Instruct, "fix that")
	direct.ID, direct.Thread.Key = "sl-m-D0HUMAN-1795000000-000100", "T0SHIP/D0HUMAN/1795000000.000100"
	for name, tt := range map[string]struct {
		event       object
		before, key string
		want        session.Request
	}{
		"other words":     {edit("<@"+us+"> fix that", call, nil), "fix it", "", asked(session.Instruct, "fix that")},
		"with a mark":     {edit("<@"+us+"> fix &lt;it&gt;", call, nil), "fix it", "", asked(session.Instruct, "fix <it>")},
		"another verb":    {edit("<@"+us+"> stop", call, nil), "fix it", "", asked(session.Stop, "")},
		"another place":   {edit("<@"+us+"> fix it [repo=acme/widgets]", call, nil), "fix it", "", inRepo(asked(session.Instruct, "fix it"))},
		"without mention": {edit("fix that", call, nil), "fix it", "", asked(session.Instruct, "fix that")},
		"a reply": {edit("<@"+us+"> fix that", call, object{"ts": nextTS, "thread_ts": rootTS}), "fix it",
			"T0SHIP/C0ENG/" + nextTS, replied(session.Instruct, "fix that")},
		"a direct message": {inDM(edit("fix that", "fix it", nil)), "fix it", "T0SHIP/D0HUMAN/" + rootTS, direct},
		"words at last":    {edit(call, "<@"+us+">", nil), "", "", asked(session.Instruct, "fix it")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := receive(t, tt.event.json(t))
			if got.Outcome != outcomeAccepted || len(got.Deliveries) != 1 {
				t.Fatalf("got %+v", got)
			}
			if tt.key == "" {
				tt.key = "T0SHIP/C0ENG/" + rootTS
			}
			d := got.Deliveries[0]
			if diff := cmp.Diff([]string{"sl:Ev01", "sl:edit/" + tt.key + "/" + editTS}, d.Keys); diff != "" {
				t.Error(diff)
			}
			if !d.Known || d.Event.Kind != session.Amended || d.Event.Before != tt.before {
				t.Errorf("delivery %+v", d)
			}
			if diff := cmp.Diff(&tt.want, d.Event.Request); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOpenThreads: where replies need no mention, they are for ship if the
// thread has a session, and nobody else is spoken with.
func TestOpenThreads(t *testing.T) {
	t.Parallel()
	r, err := NewReceiver(ReceiverConfig{Secrets: []string{secret}, OpenThreads: true, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	thanks := object{"ts": nextTS, "thread_ts": rootTS}
	for name, tt := range map[string]struct {
		event   object
		outcome string
		known   bool
	}{
		"reply":                  {happens(reply(says("use staging"))), outcomeAccepted, true},
		"reply to the channel":   {happens(reply(says("use staging")).with(object{"subtype": "thread_broadcast"})), outcomeAccepted, true},
		"reply that mentions us": {happens(reply(calls("use staging"))), outcomeAccepted, false},
		"reply to somebody":      {happens(reply(says(" <@U2> what do you think?"))), outcomeReply, false},
		"reply of a bot":         {happens(reply(says("built")).with(object{"bot_id": "B2"})), outcomeBot, false},
		"no reply":               {happens(says("lunch?")), outcomeUnaddressed, false},
		"edit of a reply":        {edit("use production", "use staging", thanks), outcomeAccepted, true},
		"edit of another":        {edit("dinner?", "lunch?", nil), outcomeSubtype, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := tt.event.json(t)
			got, err := r.Receive(t.Context(), signed(secret, now, body), body)
			if err != nil || got.Outcome != tt.outcome || (len(got.Deliveries) == 1) != (tt.outcome == outcomeAccepted) {
				t.Fatalf("got %+v, %v", got, err)
			}
			for _, d := range got.Deliveries {
				if d.Known != tt.known || d.Session != "sl.T0SHIP.C0ENG.1795000000-000100" || !d.Event.Request.Early {
					t.Errorf("delivery %+v", d)
				}
			}
		})
	}
}
