package slack

import (
	"context"
	"errors"
	"strings"
	"testing"

	"ship/bot"
	"ship/integrations/slack/slacktest"
	"ship/session"
)

// tracker is a platform with issues.
type tracker struct {
	asked []string
	who   bot.Asker
	found []bot.Link
	err   error
}

func (l *tracker) Link(_ context.Context, text string, who bot.Asker) ([]bot.Link, error) {
	l.asked, l.who = append(l.asked, text), who
	return l.found, l.err
}

// TestLinks: what a request names elsewhere is shown the state, and told to the
// agent; the request does not fail with that.
func TestLinks(t *testing.T) {
	t.Parallel()
	issue := session.Thread{Platform: "linear", Key: "issue"}
	l := &tracker{found: []bot.Link{{Thread: issue, About: "Issue ENG-1:\n> flaky\n"}, {Thread: session.Thread{Platform: "linear", Key: "other"}}}}
	d := newDesk(t, func(c *Config) { c.Links = l })
	d.gate.Routes.Default = "acme/widgets"
	begun, _ := d.Post(slacktest.Said{Channel: "eng", By: "bob", Text: "see there"})
	_, ds := d.Mention(slacktest.Said{Channel: "eng", By: "ada", Thread: begun, Text: "fix https://linear.app/acme/issue/ENG-1"})
	r := d.request(ds...)
	a := d.admit(r)
	if len(a.Links) != 2 || a.Links[0] != issue || a.Context != "Issue ENG-1:\n> flaky\n\nMessage by bob:\n> see there\n\n" {
		t.Errorf("%+v", a)
	}
	if len(l.asked) != 1 || !strings.Contains(l.asked[0], "issue/ENG-1") || l.who.Email != "ada@acme.example" {
		t.Errorf("%q by %+v", l.asked, l.who)
	}
	l.err, l.found = errors.New("away"), l.found[:1]
	if a := d.admit(r); len(a.Links) != 1 || !strings.Contains(d.log.String(), "away") {
		t.Errorf("%+v", a)
	}
	if d.admit(d.replies(r, "bob", "status")); len(l.asked) != 2 {
		t.Errorf("asked for %q", l.asked)
	}
}
