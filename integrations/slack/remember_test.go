package slack

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ship/bot"
	"ship/integrations/slack/slacktest"
	"ship/session"
	"ship/session/memory"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bot.Command{
		"remember acme/api":                       {Verb: session.Remember, Text: "acme/api"},
		" Please remember `acme/api.go`. ":        {Verb: session.Remember, Text: "acme/api.go"},
		"REMEMBER https://github.com/acme/api/":   {Verb: session.Remember, Text: "acme/api"},
		"forget":                                  {Verb: session.Remember},
		"please forget!":                          {Verb: session.Remember},
		"forget it":                               {Verb: session.Instruct, Text: "forget it"},
		"remember":                                {Verb: session.Instruct, Text: "remember"},
		"remember acme/api and fix it":            {Verb: session.Instruct, Text: "remember acme/api and fix it"},
		"remember acme/api\nfix it":               {Verb: session.Instruct, Text: "remember acme/api\nfix it"},
		"remember the milk":                       {Verb: session.Instruct, Text: "remember the milk"},
		"remember a/b/c":                          {Verb: session.Instruct, Text: "remember a/b/c"},
		"stop":                                    {Verb: session.Stop},
		"[repo=acme/api] remember to close files": {Verb: session.Instruct, Text: "remember to close files", Repo: "acme/api"},
	} {
		if got := parse(text); got != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// FuzzParse: what is to be remembered is always the name of one repository.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"remember acme/api", "forget", "remember `a/b`.", "remember https://x/a/b", "remember a/b\u2028c", "stop"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := parse(text)
		if c.Verb == session.Remember && c.Text != "" && (strings.Count(c.Text, "/") != 1 || strings.ContainsAny(c.Text, " \n`<>\u2028")) {
			t.Errorf("%q: %q", text, c.Text)
		}
	})
}

// TestRemember: what is remembered for a channel goes before the rule for the
// person, until it is forgotten.
func TestRemember(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.gate.Routes.Users = map[string]string{"ada": "acme/widgets"}
	takes := func(want string) {
		t.Helper()
		if a := d.admit(d.asks("ada", "fix it")); a.Repo.Name != want {
			t.Errorf("%+v", a)
		}
	}
	takes("acme/widgets")
	remember := d.asks("ada", "remember ACME/api")
	for range 2 { // the second time, nothing is written
		if a := d.admit(remember); !strings.Contains(a.Note, "I take `acme/api` for what is asked in this channel") || !strings.Contains(a.Note, "`forget`") || a.Void {
			t.Fatalf("%+v", a)
		}
	}
	takes("acme/api")
	if a := d.admit(d.asks("ada", "fix it [repo=acme/widgets]")); a.Repo.Name != "acme/widgets" {
		t.Errorf("%+v", a)
	}
	d.gate.Routes.Channels = map[string]string{d.ChannelID("eng"): "acme/widgets"}
	takes("acme/widgets")
	d.gate.Routes.Channels = nil
	d.CreateChannel(slacktest.Channel{Name: "ops"})
	_, ds := d.Mention(slacktest.Said{Channel: "ops", By: "ada", Text: "fix it"})
	if a := d.admit(d.request(ds...)); a.Repo.Name != "acme/widgets" {
		t.Errorf("elsewhere: %+v", a)
	}
	if a := d.admit(d.asks("bob", "remember acme/widgets")); !a.Stranger || a.Note != "" {
		t.Errorf("without the right: %+v", a)
	}
	if a := d.admit(d.asks("ada", "remember acme/nowhere")); a.Refusal == "" || a.Stranger {
		t.Errorf("one that is not there: %+v", a)
	}
	takes("acme/api")
	if a := d.admit(d.asks("bob", "forget")); !strings.HasPrefix(a.Note, "Forgotten.") {
		t.Errorf("%+v", a)
	}
	takes("acme/widgets")
	if a := d.admit(d.asks("bob", "forget")); !strings.HasPrefix(a.Note, "I remember no repository") {
		t.Errorf("%+v", a)
	}
}

func TestRememberByButton(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.gate.Routes.Default = "acme/widgets"
	press := actionOf(t, rememberButton("acme/api"))
	c, ignored := asks(press)
	if c != (bot.Command{Verb: session.Remember, Text: "acme/api"}) || ignored != "" {
		t.Fatalf("%+v, %q", c, ignored)
	}
	r := d.asks("ada", "fix it")
	r.ID, r.Verb, r.Text, r.Early, r.Ref = "sl-b-1", c.Verb, c.Text, false, ref{kind: refButton, ts: nextTS, name: nameRepo}.String()
	if a := d.admit(r); !strings.Contains(a.Note, "`acme/api`") {
		t.Errorf("%+v", a)
	}
}

// TestRecent: those repositories are offered first that somebody worked in last,
// and only those that they may still work in.
func TestRecent(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	for n := range 14 {
		name := fmt.Sprintf("acme/part%d", n)
		d.host.Repos = append(d.host.Repos, name)
		d.host.Allowed["ada-gh "+name] = true
		worked(d, name)
	}
	worked(d, "acme/part9")
	d.host.Allowed["ada-gh acme/part13"] = false
	a := d.admit(d.asks("ada", "and now?"))
	if a.Question == nil {
		t.Fatalf("%+v", a)
	}
	var offered []string
	for _, c := range a.Question.Choices {
		offered = append(offered, c.Value)
	}
	if !slices.Equal(offered[:3], []string{"acme/part9", "acme/part12", "acme/part11"}) || slices.Contains(offered, "acme/part13") || len(offered) != 10 {
		t.Errorf("offered %q", offered)
	}
	if a := d.admit(d.asks("bob", "and I?")); a.Repo.Name != "acme/api" {
		t.Errorf("one left: %+v", a)
	}
}

// worked has ada ask for something in a repository that needs no context, so that
// no time is spent waiting for Slack's rate.
func worked(d *desk, repo string) {
	d.t.Helper()
	r := d.asks("ada", "ready")
	r.Repo = repo
	if a := d.admit(r); a.Repo.Name != repo {
		d.t.Fatalf("%+v", a)
	}
}

// TestForgetful: that nothing can be kept hinders nothing but to keep it.
func TestForgetful(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.gate.Routes.Default = "acme/widgets"
	d.slack.vault = &full{Vault: &memory.Vault{}}
	if a := d.admit(d.asks("ada", "fix it")); a.Repo.Name != "acme/widgets" || !strings.Contains(d.log.String(), "not noted") {
		t.Errorf("%+v\n%s", a, d.log.String())
	}
	if _, err := d.try(d.asks("ada", "remember acme/api")); err == nil {
		t.Error("remembered nevertheless")
	}
}

// TestRememberIsOffered: below the answer to which repository is meant, once,
// and it stays there.
func TestRememberIsOffered(t *testing.T) {
	t.Parallel()
	f := quiet(t)
	ts := f.question(nameRepo)
	s := f.working()
	pressed := ref{kind: refButton, ts: ts, name: nameRepo, user: f.PersonID("ada")}
	s.Turn.Requests[0].Ref, s.Turn.Requests[0].Repo = pressed.String(), "acme/web"
	for range 2 {
		f.do(f.seen(session.Instruct, pressed, s))
	}
	got := f.Message("eng", ts)
	if !strings.HasSuffix(got.Plain, "\n(✓ `acme/web`, chosen by @ada)\n[Remember for this channel]") || got.Updates != 1 {
		t.Errorf("it reads %q", got.Plain)
	}
	d, err := f.Press(slacktest.Change{Channel: "eng", TS: ts, By: "ada"}, "Remember for this channel")
	if err != nil {
		t.Fatal(err)
	}
	p, err := decode[interaction](d.Payload)
	if err != nil {
		t.Fatal(err)
	}
	a, ignored, err := interacted(p)
	if err != nil || ignored != "" || a.command.Verb != session.Remember || a.command.Text != "acme/web" || a.ref.name != nameRemember {
		t.Errorf("%+v, %q, %v", a, ignored, err)
	}
}
