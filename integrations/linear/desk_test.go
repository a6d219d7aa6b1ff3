package linear

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"ship/bot"
	"ship/bot/bottest"
	"ship/config"
	"ship/integrations/linear/lineartest"
	"ship/session"
	"ship/session/memory"
)

// desk is a workspace with one issue, and ship's side of it.
type desk struct {
	*lineartest.Server
	t        *testing.T
	host     *bottest.Host
	gate     *bot.Gate
	receiver *Receiver
	linear   *Performer
	skew     time.Duration
	issue    string
	state    session.State
	log      strings.Builder
}

// newDesk makes one in which ada may command in both repositories of acme's, and
// is known by her address.
func newDesk(t *testing.T) *desk {
	t.Helper()
	s, err := lineartest.New(lineartest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, v := range s.Violations() {
			t.Error(v)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &desk{Server: s, t: t, host: &bottest.Host{
		Repos:   []string{"acme/widgets", "acme/api"},
		Logins:  map[string]string{"ada@acme.example": "ada-gh", "bob@acme.example": "bob-gh"},
		Allowed: map[string]bool{"ada-gh acme/widgets": true, "ada-gh acme/api": true, "bob-gh acme/api": true},
	}}
	d.gate = &bot.Gate{Repositories: d.host, Rights: d.host, People: bot.PeopleSettings{Unmatched: "refuse"}}
	vault := &memory.Vault{}
	made, err := New(Config{
		Settings: Settings{
			ClientID: s.ClientID(), ClientSecret: config.NewSecret(s.ClientSecret()), WebhookSecret: config.NewSecrets("hook"),
			APIURL: s.APIURL(), TokenURL: s.TokenURL(),
		},
		Gate: d.gate, Vault: vault, Locker: vault, Quota: &memory.Quota{},
		Transport: &http.Transport{DisableKeepAlives: true}, Logger: slog.New(slog.NewTextHandler(&d.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	d.linear, d.receiver = made.Performer, made.Receiver
	d.receiver.now = func() time.Time { return time.Now().Add(d.skew) }
	s.CreateTeam("ENG", "Engineering")
	d.issue = s.CreateIssue(lineartest.Issue{Team: "ENG", Title: "Login test is flaky", Description: "Fails one run in five.", Creator: "ada"})
	return d
}

// wait lets time pass, in Linear and here.
func (d *desk) wait(by time.Duration) {
	d.Advance(by)
	d.skew += by
}

// request is what ship makes of a webhook.
func (d *desk) request(hook lineartest.Delivery) session.Request {
	d.t.Helper()
	got, err := d.receiver.Receive(d.t.Context(), hook.Sign("hook").Header, hook.Body)
	if err != nil || len(got.Deliveries) != 1 {
		d.t.Fatalf("%+v: %v", got, err)
	}
	return *got.Deliveries[0].Event.Request
}

func (d *desk) perform(e session.Effect) (session.Performed, error) {
	e.ID = derived("effect", fmt.Sprint(e.Kind, e.Request, d.state.Turns))
	return d.linear.Perform(d.t.Context(), session.Job{Effect: e, State: d.state})
}

func (d *desk) try(r session.Request) (session.Admission, error) {
	p, err := d.perform(session.Effect{Kind: session.Admit, By: Platform, Thread: &r.Thread, Request: &r})
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
	d.state.Repo, d.state.Base, d.state.Title = a.Repo, a.Base, a.Title
	d.state.Turns++
	r.By, r.Quote = a.By, a.Quote
	d.state.Turn = &session.Turn{N: d.state.Turns, Stage: session.Running, Requests: []session.Request{r}}
}

// calls counts what Linear was asked, but for tokens.
func (d *desk) calls() int {
	n := 0
	for _, name := range []string{
		"ReadViewer", "ReadUsers", "ReadIssue", "ReadStartedStates", "ReadIssueComments", "SuggestRepositories", "ReadActivity",
		"CreateActivity", "Ask", "MoveIssue", "DelegateIssue",
	} {
		n += d.Calls(name)
	}
	return n
}
