package slack

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ship/config"
	"ship/integrations/slack/slacktest"
	"ship/session"
)

// TestAccess: who may ask for what, and where.
func TestAccess(t *testing.T) {
	t.Parallel()
	const everything = "instruct stop status remember"
	for _, tt := range []struct {
		name string
		// by and in are who asks in which channel.
		by, in string
		change func(*Config)
		// may is what is taken, and says a part of what else is answered.
		may, says string
	}{
		{"a member", "ada", "eng", nil, everything, ""},
		{"a guest", "gus", "eng", nil, everything, ""},
		{"another bot", "hal", "eng", nil, "", "only work for people"},
		{"deactivated", "gone", "eng", nil, "", "deactivated"},
		{"of another company", "eve", "shared", nil, "", "people of the workspace"},
		{"of another company, and nothing in the event says so", "eve", "eng", nil, "", "people of the workspace"},
		{"in a channel of the settings, by name", "ada", "eng", channels("#ops", "Eng"), everything, ""},
		{"in a channel that is not", "ada", "eng", channels("#ops"), "stop status", "slack.channels"},
		{"in a direct message, with channels in the settings", "ada", "", channels("#eng"), "stop status", "slack.channels"},
		{"in a direct message", "ada", "", nil, everything, ""},
		{"in a user group", "ada", "eng", groups("@nobody", "@Backend"), everything, ""},
		{"in none", "bob", "eng", groups("@backend", "nobody"), "stop status", "slack.groups"},
		{"without the right", "bob", "eng", nil, "stop status", "`bob-gh` may not have me work"},
		{"without a login", "carl", "eng", nil, "stop status", "access.people"},
		{"with a login of the settings", "dora", "eng", nil, everything, ""},
	} {
		for _, verb := range []session.Verb{session.Instruct, session.Stop, session.Status, session.Remember} {
			t.Run(fmt.Sprintf("%s/%s", tt.name, verb), func(t *testing.T) {
				t.Parallel()
				d := newDesk(t, tt.change)
				r := crowd(d, tt.by, tt.in, verb)
				a := d.admit(r)
				if may := slices.Contains(strings.Fields(tt.may), string(verb)); may != (a.Refusal == "") || !may && !strings.Contains(a.Refusal, tt.says) {
					t.Errorf("%+v", a)
				}
				if a.Refusal != "" && (!a.Stranger || a.By.Login == "") || !a.Talks {
					t.Errorf("nobody is refused: %+v", a)
				}
				kept, _, err := d.vault.Load(t.Context(), "slack.channel."+d.TeamID()+"."+parseTestThread(t, r).channel)
				if remembers := verb == session.Remember && a.Refusal == ""; err != nil || remembers != (len(kept) > 0) || remembers != (a.Note != "") {
					t.Errorf("kept %q, %v: %+v", kept, err, a)
				}
			})
		}
	}
}

func channels(names ...string) func(*Config) { return func(c *Config) { c.Channels = names } }
func groups(names ...string) func(*Config)   { return func(c *Config) { c.Groups = names } }

// crowd fills a workspace with all kinds of people, one of whom asks something.
func crowd(d *desk, by, in string, verb session.Verb) session.Request {
	d.gate.Routes.Default = "acme/widgets"
	d.CreateChannel(slacktest.Channel{Name: "shared", Shared: true})
	d.CreateGroup("backend", "ada", "carl")
	d.CreateGroup("nobody")
	d.AddPerson(slacktest.Person{Handle: "gus", Guest: true})
	d.AddPerson(slacktest.Person{Handle: "hal"})
	d.AddPerson(slacktest.Person{Handle: "eve", Team: "T0OTHER"})
	d.AddPerson(slacktest.Person{Handle: "gone"})
	d.host.Logins["gus@acme.example"] = "gus-gh"
	d.host.Allowed["gus-gh acme/widgets"], d.host.Allowed["dora-gh acme/widgets"] = true, true
	d.gate.People.People = map[string]string{d.PersonID("dora"): "dora-gh"}
	text := map[session.Verb]string{session.Instruct: "fix it", session.Remember: "remember acme/widgets"}[verb]
	if text == "" {
		text = string(verb)
	}
	said := slacktest.Said{Channel: in, By: by, Text: text}
	if in != "" {
		said.Text = "@ship " + text
	}
	_, ds := d.Post(said)
	r := d.request(ds...)
	if r.Verb != verb {
		d.t.Fatalf("asked for %s", r.Verb)
	}
	if in == "shared" && by == "eve" && !strings.HasPrefix(r.By.Login, "T0OTHER/") {
		d.t.Errorf("%s is one of us", r.By.Login)
	}
	if in == "eng" { // nothing in the event says who somebody is
		r.By.Login = d.PersonID(by)
	}
	d.AddPerson(slacktest.Person{Handle: "hal", Bot: true})
	d.AddPerson(slacktest.Person{Handle: "gone", Gone: true})
	return r
}

// TestAnotherWorkspace: our token can do nothing there.
func TestAnotherWorkspace(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.gate.Routes.Default = "acme/widgets"
	for _, text := range []string{"fix it", "stop", "status", "remember acme/api"} {
		r := d.asks("ada", text)
		at := parseTestThread(t, r)
		at.team = "T0OTHER"
		r.Thread = at.session()
		if a := d.admit(r); a.Refusal != sayElsewhere || !a.Stranger {
			t.Errorf("%s: %+v", text, a)
		}
	}
	if n := d.calls(); n != 1 { // who we are
		t.Errorf("%d calls", n)
	}
}

// TestCompany: of a company with several workspaces, all are ours.
func TestCompany(t *testing.T) {
	t.Parallel()
	us := identity{team: "T1", enterprise: "E1"}
	for _, tt := range []struct {
		who          identity
		team, of     string
		stranger, is bool
	}{
		{us, "T1", "", false, true}, {us, "T2", "E1", false, true}, {us, "E1", "", false, true}, {us, "T2", "E2", false, false},
		{us, "T2", "", false, false}, {us, "", "", false, false}, {us, "T2", "E1", true, false},
		{identity{team: "T1"}, "T2", "", false, false}, {identity{team: "T1"}, "", "", false, false},
	} {
		u := slackUser(tt.team, tt.of)
		u.IsStranger = tt.stranger
		if m := tt.who.introduced(u); (m.barred == "") != tt.is {
			t.Errorf("%+v: %q", tt, m.barred)
		}
	}
}

// TestNoGroups: where nobody can be told from anybody, nothing is taken on, and
// whoever runs ship reads why.
func TestNoGroups(t *testing.T) {
	t.Parallel()
	d := newDesk(t, groups("@backend"))
	d.gate.Routes.Default = "acme/widgets"
	d.CreateGroup("backend", "ada")
	d.SetScopes(slices.DeleteFunc(slacktest.DefaultScopes(), func(s string) bool { return s == "usergroups:read" })...)
	_, err := d.try(d.asks("ada", "fix it"))
	if p := classify(err); p.Say != sayNoGroups || !p.Again || !strings.Contains(p.Err.Error(), "usergroups:read") {
		t.Errorf("%+v", p)
	}
}

// TestStopNeedsNobody: that Slack does not say who asks keeps nobody from
// stopping the work.
func TestStopNeedsNobody(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	stop, work := d.asks("ada", "stop"), d.asks("ada", "fix it")
	d.admit(stop)
	d.wait(believed)
	d.Inject(slacktest.Failing("users.info", "internal_error"))
	if a := d.admit(stop); a.Refusal != "" || a.By.Login != "somebody on Slack" {
		t.Errorf("%+v", a)
	}
	d.Inject(slacktest.Failing("users.info", "internal_error"))
	if _, err := d.try(work); err == nil || !classify(err).Again {
		t.Errorf("%v", err)
	}
}

// TestBelieved: who was deactivated can command for some minutes, and no more.
func TestBelieved(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.gate.Routes.Default = "acme/widgets"
	r := d.asks("ada", "fix it")
	d.admit(r)
	d.AddPerson(slacktest.Person{Handle: "ada", Gone: true})
	d.wait(believed - time.Second)
	if a := d.admit(r); a.Refusal != "" {
		t.Errorf("%+v", a)
	}
	d.wait(2 * time.Second)
	if a := d.admit(r); a.Refusal != sayGone {
		t.Errorf("%+v", a)
	}
}

func TestAccessSettings(t *testing.T) {
	t.Parallel()
	good := Settings{BotToken: config.NewSecret("xoxb-1"), SigningSecret: config.NewSecrets("s"), Channels: []string{"#eng", "C0ENG"}, Groups: []string{"@a"}}
	if err := good.Validate(); err != nil || good.OpenThreads() {
		t.Error(err)
	}
	bad := good
	bad.Channels, bad.Groups, bad.Replies = []string{"eng", "#"}, []string{" "}, "thread"
	if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "channels") || !strings.Contains(err.Error(), "groups") || !bad.OpenThreads() {
		t.Error(err)
	}
}
