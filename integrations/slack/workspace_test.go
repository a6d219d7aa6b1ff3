package slack

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"ship/bot"
	"ship/config"
	"ship/integrations/slack/slacktest"
	"ship/session"
)

// workspace is one with the channel #eng.
func workspace(t *testing.T) *slacktest.Server {
	t.Helper()
	s, err := slacktest.New(slacktest.Options{Limits: slacktest.NoLimits()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if v := s.Violations(); len(v) > 0 {
			t.Errorf("violations: %v", v)
		}
	})
	s.CreateChannel(slacktest.Channel{Name: "eng", Members: []string{"ada", "bob"}})
	return s
}

// delivers is either way in.
type delivers func(slacktest.Delivery) (slacktest.Answer, error)

func only(kind session.Kind, ds []session.Delivery) []session.Delivery {
	return slices.DeleteFunc(ds, func(d session.Delivery) bool { return d.Event.Kind != kind })
}

// conversation is what people do in a workspace, and what has to come of it.
func conversation(t *testing.T, s *slacktest.Server, in *inbox, deliver delivers) {
	t.Helper()
	asks := func(want ...string) {
		t.Helper()
		var got []string
		for _, d := range only(session.Asked, in.all()) {
			q := d.Event.Request
			got = append(got, string(q.Verb)+" "+q.Text)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("asked %q, want %q", got, want)
		}
	}
	all := func(ds []slacktest.Delivery) {
		t.Helper()
		for _, d := range ds {
			if a, err := deliver(d); err != nil || a.Status != 200 {
				t.Fatalf("%+v, %v", a, err)
			}
		}
	}
	begun, ds := s.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix <the> login & see https://a.example/x"})
	all(ds)
	all(ds) // again
	asks("instruct fix <the> login & see https://a.example/x")
	_, ds = s.Post(slacktest.Said{Channel: "eng", By: "bob", Text: "lunch?"})
	all(ds)
	_, ds = s.Post(slacktest.Said{Channel: "eng", By: "ada", Thread: begun, Text: "nobody is meant"})
	all(ds)
	all(s.Edit(slacktest.Change{Channel: "eng", TS: begun, By: "ada"}, "@ship fix the logout"))
	all(s.OpenHome("ada"))
	asks("instruct fix <the> login & see https://a.example/x")
	_, ds = s.Mention(slacktest.Said{Channel: "eng", By: "bob", Thread: begun, Text: "stop"})
	all(ds)
	_, ds = s.DM("ada", "status")
	all(ds)
	asks("instruct fix <the> login & see https://a.example/x", "stop ", "status ")
	answered, err := deliver(s.Slash(slacktest.Command{Channel: "eng", By: "ada", Text: "fix the tests"}))
	if err != nil || !strings.Contains(string(answered.Body), "I open a thread for that here") {
		t.Errorf("answered %q, %v", answered.Body, err)
	}
	all([]slacktest.Delivery{s.Shortcut(slacktest.Change{Channel: "eng", TS: begun, By: "bob"}, callbackMessage)})
	asks("instruct fix <the> login & see https://a.example/x", "stop ", "status ", "instruct fix the tests", "instruct ")
	all(s.RevokeToken())
	if edits := only(session.Amended, in.all()); len(edits) != 1 || edits[0].Event.Request.Text != "fix the logout" {
		t.Errorf("edited to %+v", edits)
	}
	got := only(session.Asked, in.all())
	if got[0].Session != got[1].Session || got[0].Session != got[4].Session || got[0].Session == got[2].Session || got[0].Session == got[3].Session {
		t.Errorf("sessions %s, %s, %s, %s, %s", got[0].Session, got[1].Session, got[2].Session, got[3].Session, got[4].Session)
	}
	if q := got[4].Event.Request; q.Quote == "" || q.By == (session.Person{}) {
		t.Errorf("shortcut: %+v", q)
	}
}

func TestWorkspacePosts(t *testing.T) {
	t.Parallel()
	s, in := workspace(t), newInbox()
	r, err := NewReceiver(ReceiverConfig{Secrets: []string{s.SigningSecret()}})
	if err != nil {
		t.Fatal(err)
	}
	door := httptest.NewServer(bot.NewServer(bot.Config{Inbox: in, Receivers: map[string]bot.Receiver{Platform: r}}).Handler())
	t.Cleanup(door.Close)
	deliver := func(d slacktest.Delivery) (slacktest.Answer, error) {
		return s.Deliver(t.Context(), door.URL+"/webhooks/slack", d)
	}
	if a, err := deliver(s.Verification("3eZbrw1aBm2rZgRNFdxV")); err != nil || string(a.Body) != "3eZbrw1aBm2rZgRNFdxV" {
		t.Errorf("verification: %q, %v", a.Body, err)
	}
	conversation(t, s, in, deliver)
}

func TestWorkspaceOverSockets(t *testing.T) {
	t.Parallel()
	s, in := workspace(t), newInbox()
	socket, err := newSocket(socketConfig{AppToken: config.NewSecret(s.AppToken()), APIURL: s.APIURL(), Inbox: in})
	if err != nil {
		t.Fatal(err)
	}
	socket.backoff = func(int) time.Duration { return time.Millisecond }
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- socket.Run(ctx) }()
	t.Cleanup(func() {
		cancel(session.ErrShutdown)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	n := 0
	conversation(t, s, in, func(d slacktest.Delivery) (slacktest.Answer, error) {
		switch n++; n { // the connections come and go meanwhile
		case 2:
			s.Disconnect("warning", 10*time.Millisecond)
		case 4:
			s.Cut()
		}
		return s.Send(t.Context(), d)
	})
}
