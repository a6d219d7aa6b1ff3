package linear

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/integrations/linear/lineartest"
	"ship/session"
)

// TestPeople: who may ask, and by which name.
func TestPeople(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		by        string // empty: an automation
		person    lineartest.Person
		unmatched string
		people    func(d *desk) map[string]string
		want      string
		stranger  bool
	}{
		"by address":         {by: "ada", want: "ada-gh"},
		"by the settings":    {by: "cleo", people: func(*desk) map[string]string { return map[string]string{"Cleo@acme.example": "ada-gh"} }, want: "ada-gh"},
		"by id":              {by: "cleo", people: func(d *desk) map[string]string { return map[string]string{d.PersonID("cleo"): "ada-gh"} }, want: "ada-gh"},
		"without the right":  {by: "bob", want: "bob-gh", stranger: true},
		"nobody knows":       {by: "cleo", stranger: true},
		"allowed":            {by: "cleo", unmatched: "allow", want: "Cleo on Linear"},
		"allowed, bad name":  {by: "cleo", person: lineartest.Person{Name: "@all `rm`\n# x"}, unmatched: "allow", want: "all rm # x on Linear"},
		"automation":         {by: "", stranger: true},
		"allowed automation": {by: "", unmatched: "allow", want: "an automation on Linear"},
		"known automation":   {by: "", people: func(*desk) map[string]string { return map[string]string{automation: "ada-gh"} }, want: "ada-gh"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.gate.Routes.Default = "acme/widgets"
			if test.unmatched != "" {
				d.gate.People.Unmatched = test.unmatched
			}
			if test.people != nil {
				d.gate.People.People = test.people(d)
			}
			if test.person.Name != "" {
				test.person.Handle = test.by
				d.AddPerson(test.person)
			}
			_, hook := d.Delegate(d.issue, test.by)
			a := d.admit(d.request(hook))
			if a.Stranger != test.stranger || (a.Refusal != "") != test.stranger || !strings.HasPrefix(a.By.Login, test.want) {
				t.Errorf("%+v", a)
			}
			if test.by != "" && strings.Contains(a.Refusal, d.PersonID(test.by)) || strings.ContainsAny(a.By.Login, "`@\n") {
				t.Errorf("%q: %q", a.By.Login, a.Refusal)
			}
		})
	}
}

// TestPeopleWithoutAddress: a webhook without the e-mail address has Linear
// asked for it.
func TestPeopleWithoutAddress(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.gate.Routes.Default = "acme/widgets"
	id, hook := d.Delegate(d.issue, "ada")
	r := d.request(hook)
	r.By.Email = ""
	a := d.admit(r)
	if diff := cmp.Diff(session.Person{Login: "ada-gh", Name: "Ada", Email: "ada-gh@users.noreply.github.example"}, a.By); diff != "" {
		t.Error(diff)
	}
	d.learn(r, a)
	before := d.calls()
	r = d.request(d.Prompt(id, "ada", "go on"))
	r.By.Email, r.By.Name = "", ""
	if a := d.admit(r); a.By.Login != "ada-gh" || d.calls()-before != 3 {
		t.Errorf("%+v after %d calls", a, d.calls()-before)
	}
	r.By.Login = "nobody-of-this-workspace"
	if a := d.admit(r); !a.Stranger {
		t.Errorf("%+v", a)
	}
}
