package slack

import (
	"strings"
	"testing"

	"ship/bot"
	"ship/integrations/slack/slacktest"
	"ship/session"
)

// TestLed: who says for somebody else where the work is to be done needs the
// right to have it done there, whichever way they say it.
func TestLed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		who, repo string
		leads     bool
	}{
		{"ada", "acme/widgets", true},
		{"bob", "acme/api", true},
		{"bob", "acme/widgets", false}, // without the right
		{"carl", "acme/api", false},    // without a login
		{"eve", "acme/api", false},     // of another company
		{"hal", "acme/api", false},     // a bot
	} {
		t.Run(tt.who+" in "+tt.repo, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil)
			d.AddPerson(slacktest.Person{Handle: "carl"})
			d.AddPerson(slacktest.Person{Handle: "eve", Team: "T0OTHER"})
			d.AddPerson(slacktest.Person{Handle: "hal", Bot: true})
			for _, login := range []string{"eve", "hal"} {
				d.host.Logins[login+"@acme.example"] = login + "-gh"
				d.host.Allowed[login+"-gh acme/api"] = true
			}
			r := d.asks("ada", "fix it")
			r.Repo = tt.repo
			if tt.who != "ada" {
				r.Led = session.Person{Login: d.PersonID(tt.who)}
			}
			a := d.admit(r)
			switch {
			case tt.leads && (a.Repo.Name != tt.repo || a.Question != nil):
				t.Errorf("%+v", a)
			case !tt.leads && (a.Repo.Name != "" || a.Question == nil || !strings.HasPrefix(a.Question.Text, bot.NotLed(session.Question{}).Text) || len(a.Question.Choices) != 2):
				t.Errorf("%+v", a)
			}
		})
	}
}
