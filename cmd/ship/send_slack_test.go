package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ship/integrations/slack"
	"ship/integrations/slack/slacktest"
)

// slot is a ship that takes what Slack posts, and settings that sign it.
type slot struct {
	t      *testing.T
	config string
	url    string
}

func newSlot(t *testing.T) slot {
	t.Helper()
	ship := httptest.NewServer(slackFront(t, slackSigning))
	t.Cleanup(ship.Close)
	s := slot{t, "", ship.URL}
	s.config = s.file("slack: {bot_token: xoxb-1, signing_secret: [" + slackSigning + ", older]}\n")
	return s
}

func (s slot) file(text string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s slot) send(what string, change func(*sendOptions)) (said string, err error) {
	s.t.Helper()
	o := sendOptions{config: s.config, url: s.url}
	if change != nil {
		change(&o)
	}
	var out bytes.Buffer
	err = send(s.t.Context(), o, "slack", what, &out)
	if strings.Contains(out.String()+fmt.Sprint(err), slackSigning) {
		s.t.Errorf("a secret was shown: %s %v", &out, err)
	}
	return out.String(), err
}

// TestSendSlack: each kind of what Slack posts, as a file has it.
func TestSendSlack(t *testing.T) {
	t.Parallel()
	stand, err := slacktest.New(slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer stand.Close()
	stand.CreateChannel(slacktest.Channel{Name: "eng"})
	ts, mention := stand.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix the login & log in"})
	command := stand.Slash(slacktest.Command{Channel: "eng", By: "ada", Text: "fix the login"})
	shortcut := stand.Shortcut(slacktest.Change{Channel: "eng", TS: ts, By: "bob"}, "ship_message")
	s := newSlot(t)
	for _, tt := range []struct{ name, what, want string }{
		{"ping", "ping", "url_verification 200 OK: " + slackChallenge + "\n"},
		{"event", s.file(string(mention[0].Body)), mention[0].ID() + " 200 OK: accepted\n"},
		{"event again", s.file(string(mention[0].Body)), mention[0].ID() + " 200 OK: already have it\n"},
		{"its twin", s.file(string(mention[1].Body)), mention[1].ID() + " 200 OK: already have it\n"},
		{"command", s.file(string(command.Body) + "\n"), "slash_command 200 OK: Got it"},
		{"interaction", s.file(string(shortcut.Payload)), "message_action 200 OK: \n"},
		{"its form", s.file(string(shortcut.Body)), "interaction 200 OK: \n"},
	} {
		if said, err := s.send(tt.what, nil); err != nil || !strings.HasPrefix(said, tt.want) {
			t.Errorf("%s: %q %v, want %q", tt.name, said, err, tt.want)
		}
	}
}

func TestSendSlackIsRefused(t *testing.T) {
	t.Parallel()
	s := newSlot(t)
	for what, want := range map[string]string{
		"/nothing":                "read the fixture",
		s.file("[]"):              "neither an event",
		s.file("not JSON"):        "neither an event",
		s.file("{}"):              "neither an event",
		s.file(`{"type":7}`):      "neither an event",
		s.file("a=%"):             "neither an event",
		s.file("text=fix&user=1"): "neither an event",
	} {
		if said, err := s.send(what, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q %v, want %q", what, said, err, want)
		}
	}
	wrong := s.file("wrong")
	if said, err := s.send("ping", func(o *sendOptions) { o.secret = wrong }); err == nil || !strings.Contains(said, "401") {
		t.Errorf("another secret: %s %v", said, err)
	}
	if _, err := s.send("ping", func(o *sendOptions) { o.delivery = "Ev1" }); err == nil || !strings.Contains(err.Error(), "leave --delivery out") {
		t.Errorf("an id: %v", err)
	}
	s.config = s.file("slack: {bot_token: xoxb-1, app_token: xapp-1}\n")
	if _, err := s.send("ping", nil); err == nil || !strings.Contains(err.Error(), "slack.signing_secret is not set") {
		t.Errorf("no secret: %v", err)
	}
}

// TestSignSlack: events and forms are sent as they are, an interaction in the
// form that Slack has for it, and all of it is what a Receiver takes.
func TestSignSlack(t *testing.T) {
	t.Parallel()
	at := time.Unix(1700000000, 0)
	const event, interaction = `{"type":"event_callback", "event_id":"Ev1","big":12345678901234567890}`, `{"type":"block_actions","actions":[{"value":"a&b+c"}]}`
	form := url.Values{"payload": {interaction}}.Encode()
	for _, tt := range []struct{ name, body, kind, id, sent string }{
		{"event", event, "application/json", "Ev1", event},
		{"interaction", interaction + "\n", "application/x-www-form-urlencoded", "block_actions", form},
		{"form", form, "application/x-www-form-urlencoded", "interaction", form},
		{"command", "command=%2Fship&text=a+b\n", "application/x-www-form-urlencoded", "slash_command", "command=%2Fship&text=a+b"},
	} {
		got, err := signSlack([]byte(tt.body), "s", at)
		if err != nil || got.id != tt.id || string(got.body) != tt.sent || got.header.Get("Content-Type") != tt.kind {
			t.Errorf("%s: %+v %s %v", tt.name, got, got.body, err)
		}
		want := slacktest.Delivery{Body: []byte(tt.sent), Header: http.Header{}}.Sign("s", at).Header.Get("X-Slack-Signature")
		if got.header.Get("X-Slack-Signature") != want || got.header.Get("X-Slack-Request-Timestamp") != "1700000000" {
			t.Errorf("%s: %v", tt.name, got.header)
		}
		receiver, err := slack.NewReceiver(slack.ReceiverConfig{Secrets: []string{"s"}, Now: func() time.Time { return at }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := receiver.Receive(t.Context(), got.header, got.body); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestSendRecordedOfSlack: what was recorded from Slack is taken.
func TestSendRecordedOfSlack(t *testing.T) {
	t.Parallel()
	s := newSlot(t)
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "data", "webhooks", "slack", "*.*"))
	if err != nil || len(files) == 0 {
		t.Skip("what was recorded is not here")
	}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "manifest.") || strings.HasPrefix(name, "socket-mode.") || strings.HasSuffix(name, ".md") {
			continue // nothing that Slack posts
		}
		if said, err := s.send(file, nil); err != nil || !strings.Contains(said, "200 OK") {
			t.Errorf("%s: %s %v", name, said, err)
		}
	}
}
