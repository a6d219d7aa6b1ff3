package slack

import (
	"strings"
	"testing"

	"ship/integrations/slack/slacktest"
	"ship/session"
)

// TestSlashCommand: a command opens a thread, once, and is admitted there.
func TestSlashCommand(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.gate.Routes.Default = "acme/widgets"
	r := d.request(d.Slash(slacktest.Command{Channel: "eng", By: "ada", Text: "fix *this* <!channel> and @bob & all"}))
	for again := range 3 {
		p, err := d.perform(session.Effect{Kind: session.Admit, Thread: &r.Thread, Request: &r}, again > 0)
		if err != nil || !p.Admission.Void || p.Admission.Talks {
			t.Fatalf("%+v: %v", p, err)
		}
	}
	all := d.Messages("eng")
	if len(all) != 1 || all[0].By != "ship" || all[0].Thread != "" {
		t.Fatalf("%+v", all)
	}
	if text := all[0].Text; !strings.HasPrefix(text, "<@"+d.PersonID("ada")+"> asks:\n") || strings.Contains(text, "<!channel>") || strings.Contains(text, "<@"+d.PersonID("bob")) {
		t.Errorf("posted %q", text)
	}
	got := d.inbox.all()
	if len(got) != 1 {
		t.Fatalf("%d deliveries", len(got))
	}
	q := *got[0].Event.Request
	if at := parseTestThread(t, q); at.root != all[0].TS || got[0].Session != at.id() {
		t.Errorf("%+v", got[0])
	}
	a := d.admit(q)
	if a.Repo.Name != "acme/widgets" || a.Context != "" || a.Quote != "" || !strings.HasPrefix(a.Title, "fix *this*") || !a.Talks {
		t.Errorf("%+v", a)
	}
}

// TestSlashCommandLost: Slack posts, and the answer gets lost.
func TestSlashCommandLost(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	r := d.request(d.Slash(slacktest.Command{Channel: "eng", By: "ada", Text: "fix it"}))
	d.Inject(slacktest.Fault{On: "chat.postMessage", Lost: true})
	if a := d.admit(r); !a.Void || len(d.Messages("eng")) != 1 || len(d.inbox.all()) != 1 {
		t.Errorf("%+v, %d messages", a, len(d.Messages("eng")))
	}
}

// TestUninvited: where we cannot write, whoever asked is told what to do.
func TestUninvited(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.CreateChannel(slacktest.Channel{Name: "closed", NoApp: true, Private: true, Members: []string{"ada"}})
	r := d.request(d.Slash(slacktest.Command{Channel: "closed", By: "ada", Text: "fix it"}))
	_, err := d.try(r)
	if p := classify(err); p.Say != sayUninvited || p.Again {
		t.Errorf("%+v", p)
	}
	if d.Calls("chat.postEphemeral") != 1 || !strings.Contains(d.log.String(), "could not be told") || len(d.inbox.all()) != 0 {
		t.Errorf("%s", d.log.String())
	}
}

// TestUninvitedIsTold: Slack at times lets us speak with one person only.
func TestUninvitedIsTold(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	r := d.request(d.Slash(slacktest.Command{Channel: "eng", By: "ada", Text: "fix it"}))
	d.Inject(slacktest.Failing("chat.postMessage", "not_in_channel"))
	if a := d.admit(r); !a.Void || len(d.inbox.all()) != 0 {
		t.Errorf("%+v", a)
	}
	if seen := d.Whispers("ada"); len(seen) != 1 || !strings.Contains(seen[0].Text, "/invite") {
		t.Errorf("%+v", seen)
	}
}

// TestRefusedCommand: what was said of a command that never got a thread is told
// to whoever wrote it, and the channel is left alone.
func TestRefusedCommand(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	r := d.request(d.Slash(slacktest.Command{Channel: "eng", By: "ada", Text: "fix it"}))
	say := session.Effect{Kind: session.Say, Thread: &r.Thread, Ref: r.Ref, Request: &r, Text: "That is more than 60 requests, <!channel>. `/ship status` says more.", Refusal: true}
	if _, err := d.perform(say, false); err != nil {
		t.Fatal(err)
	}
	seen := d.Whispers("ada")
	if len(seen) != 1 || strings.Contains(seen[0].Text, "<!") || !strings.Contains(seen[0].Text, "`status` says more") || len(d.Messages("eng")) != 0 {
		t.Errorf("%+v, %+v", seen, d.Messages("eng"))
	}
	say.Ref = "command/" // as it was kept before
	if _, err := d.perform(say, false); err != nil || len(d.Whispers("ada")) != 1 || len(d.Messages("eng")) != 0 {
		t.Error(err)
	}
}

// TestCommandElsewhere: in a channel that two workspaces share, the command of
// the other one is not ours.
func TestCommandElsewhere(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	r := d.request(d.Slash(slacktest.Command{Channel: "eng", By: "ada", Text: "fix it"}))
	at := parseTestThread(t, r)
	at.team = "T0OTHER"
	r.Thread = at.session()
	if a := d.admit(r); a.Refusal != sayElsewhere || len(d.Messages("eng")) != 0 || len(d.inbox.all()) != 0 {
		t.Errorf("%+v, %+v", a, d.Messages("eng"))
	}
}
