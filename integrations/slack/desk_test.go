package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	api "github.com/slack-go/slack"

	"ship/bot"
	"ship/bot/bottest"
	"ship/config"
	"ship/integrations/slack/slacktest"
	"ship/session"
	"ship/session/memory"
)

// desk is a workspace with the channel #eng, and ship's side of it.
type desk struct {
	*slacktest.Server
	t        *testing.T
	host     *bottest.Host
	gate     *bot.Gate
	vault    *memory.Vault
	inbox    *inbox
	receiver *Receiver
	slack    *Performer
	skew     time.Duration
	state    session.State
	log      strings.Builder
}

// newDesk makes one in which ada may command in both repositories of acme's, and
// is known by her address.
func newDesk(t *testing.T, change func(*Config)) *desk {
	t.Helper()
	s, err := slacktest.New(slacktest.Options{Limits: slacktest.NoLimits()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for _, v := range s.Violations() {
			t.Error(v)
		}
	})
	d := &desk{Server: s, t: t, vault: &memory.Vault{}, inbox: newInbox(), host: &bottest.Host{
		Repos:   []string{"acme/widgets", "acme/api"},
		Logins:  map[string]string{"ada@acme.example": "ada-gh", "bob@acme.example": "bob-gh"},
		Allowed: map[string]bool{"ada-gh acme/widgets": true, "ada-gh acme/api": true, "bob-gh acme/api": true},
	}}
	d.gate = &bot.Gate{Repositories: d.host, Rights: d.host, People: bot.PeopleSettings{Unmatched: "refuse"}}
	s.CreateChannel(slacktest.Channel{Name: "eng", Members: []string{"ada", "bob"}})
	c := Config{
		Settings: Settings{BotToken: config.NewSecret(s.BotToken()), SigningSecret: config.NewSecrets(s.SigningSecret()), APIURL: s.APIURL()},
		Gate:     d.gate, Vault: d.vault, Quota: &memory.Quota{}, Inbox: d.inbox,
		Transport: &http.Transport{DisableKeepAlives: true}, Logger: slog.New(slog.NewTextHandler(&d.log, nil)),
	}
	if change != nil {
		change(&c)
	}
	d.use(c)
	return d
}

// use makes another process of these settings.
func (d *desk) use(c Config) {
	d.t.Helper()
	made, err := New(c)
	if err != nil {
		d.t.Fatal(err)
	}
	d.slack, d.receiver = made.Performer, made.Receiver
	d.slack.app.directory = newDirectory(d.now)
	d.receiver.reader.now = d.now
}

func (d *desk) now() time.Time { return time.Now().Add(d.skew) }

// wait lets time pass, in Slack and here.
func (d *desk) wait(by time.Duration) {
	d.Advance(by)
	d.skew += by
}

// request is what ship makes of what Slack delivers first.
func (d *desk) request(ds ...slacktest.Delivery) session.Request {
	d.t.Helper()
	signed := ds[0].Sign(d.SigningSecret(), d.now())
	got, err := d.receiver.Receive(d.t.Context(), signed.Header, signed.Body)
	if err != nil || len(got.Deliveries) != 1 {
		d.t.Fatalf("%+v: %v", got, err)
	}
	return *got.Deliveries[0].Event.Request
}

// asks is a mention in a channel, or a reply.
func (d *desk) asks(by, text string) session.Request {
	d.t.Helper()
	_, ds := d.Mention(slacktest.Said{Channel: "eng", By: by, Text: text})
	return d.request(ds...)
}

// replies is a mention in the thread of another request.
func (d *desk) replies(to session.Request, by, text string) session.Request {
	d.t.Helper()
	t, err := parseThread(to.Thread.Key)
	if err != nil {
		d.t.Fatal(err)
	}
	_, ds := d.Mention(slacktest.Said{Channel: t.channel, By: by, Thread: t.root, Text: text})
	return d.request(ds...)
}

func (d *desk) perform(e session.Effect, repeat bool) (session.Performed, error) {
	e.ID, e.By, e.Since = fmt.Sprint(e.Kind, "-", e.Request.ID), Platform, d.now()
	return d.slack.Perform(d.t.Context(), session.Job{
		Effect: e, State: d.state, Repeat: repeat, Now: d.now, Latest: func() session.State { return d.state },
	})
}

func (d *desk) try(r session.Request) (session.Admission, error) {
	p, err := d.perform(session.Effect{Kind: session.Admit, Thread: &r.Thread, Request: &r}, false)
	if err != nil {
		return session.Admission{}, err
	}
	return *p.Admission, nil
}

func (d *desk) admit(r session.Request) session.Admission {
	d.t.Helper()
	a, err := d.try(r)
	if err != nil {
		d.t.Fatal(err)
	}
	return a
}

// learn has the session take over what an admission says, with a turn begun.
func (d *desk) learn(r session.Request, a session.Admission) {
	d.state.Threads = []session.Voice{{Thread: r.Thread, Talks: true, Heard: r.At}}
	d.state.Repo, d.state.Base, d.state.Title, d.state.Origin = a.Repo, a.Base, a.Title, a.Origin
	d.state.Turns++
	r.By, r.Quote = a.By, a.Quote
	d.state.Turn = &session.Turn{N: d.state.Turns, Stage: session.Running, Requests: []session.Request{r}}
}

// calls counts what Slack was asked.
func (d *desk) calls() int {
	n := 0
	for _, name := range []string{
		"auth.test", "users.info", "conversations.info", "conversations.replies", "usergroups.list", "usergroups.users.list",
		"files.info", "chat.postMessage", "chat.postEphemeral", "file",
	} {
		n += d.Calls(name)
	}
	return n
}

func slackUser(team, enterprise string) *api.User {
	return &api.User{ID: "U1", TeamID: team, Enterprise: api.EnterpriseUser{EnterpriseID: enterprise}}
}

// full is a vault that nothing can be put into.
type full struct{ *memory.Vault }

var errFull = errors.New("no room")

func (*full) Swap(context.Context, string, int64, []byte, time.Duration) (bool, error) {
	return false, errFull
}

// actionOf is what Slack tells of a press.
func actionOf(t *testing.T, e api.BlockElement) action {
	t.Helper()
	b, ok := e.(*api.ButtonBlockElement)
	if !ok {
		t.Fatalf("%T is no button", e)
	}
	return action{ID: b.ActionID, Value: b.Value}
}
