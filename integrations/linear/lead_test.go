package linear

import (
	"strings"
	"testing"

	"ship/bot"
	"ship/session"
)

// TestLed: who says for somebody else where the work is to be done needs the
// right to have it done there.
func TestLed(t *testing.T) {
	t.Parallel()
	notLed := bot.NotLed(session.Question{}).Text
	for _, tt := range []struct {
		who, repo string
		leads     bool
	}{
		{"ada", "acme/widgets", true},
		{"bob", "acme/api", true},
		{"bob", "acme/widgets", false}, // without the right
		{"carl", "acme/api", false},    // without a login
	} {
		t.Run(tt.who+" in "+tt.repo, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			_, hook := d.Delegate(d.issue, "ada")
			r := d.request(hook)
			r.Repo = tt.repo
			if tt.who != "ada" {
				r.Led = session.Person{Login: d.PersonID(tt.who), Email: tt.who + "@acme.example"}
			}
			a := d.admit(r)
			switch {
			case tt.leads && (a.Repo.Name != tt.repo || a.Question != nil):
				t.Errorf("%+v", a)
			case !tt.leads && (a.Repo.Name != "" || a.Question == nil || !strings.HasPrefix(a.Question.Text, notLed) || len(a.Question.Choices) != 2):
				t.Errorf("%+v", a)
			}
		})
	}
}
