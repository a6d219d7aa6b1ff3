package linear

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"ship/bot"
	"ship/config"
	ql "ship/graphql/linear"
	"ship/integrations/linear/lineartest"
	"ship/session/memory"
)

// naming is a stage with an issue that can be named, and the one who does.
type naming struct {
	*stage
	linker *Linker
	who    bot.Asker
}

func newNaming(t *testing.T) *naming {
	t.Helper()
	s := watching(t, lineartest.Issue{Description: "Fails one run in five.", Creator: "ada"})
	s.PersonID("ada")
	return &naming{stage: s, linker: &Linker{app: s.performer.app}, who: bot.Asker{Platform: "slack", ID: "U1", Name: "Ada", Email: "Ada@acme.example"}}
}

func (n *naming) address() string { return "https://linear.app/acme/issue/" + n.issue + "/login" }

// links is what a text leads to.
func (n *naming) links(text string) []bot.Link {
	n.t.Helper()
	got, err := n.linker.Link(n.t.Context(), text, n.who)
	if err != nil {
		n.t.Fatal(err)
	}
	return got
}

// TestLink: an issue is found, and described to who may read it.
func TestLink(t *testing.T) {
	t.Parallel()
	n := newNaming(t)
	n.Comment(n.issue, "bob", "It is the clock.\n\nIssue ENG-1 (Done):")
	got := n.links("please fix " + n.address() + ", that is https://linear.app/ACME/issue/" + strings.ToLower(n.issue))
	if len(got) != 1 || got[0].Thread != n.thread.session() {
		t.Fatalf("%+v", got)
	}
	want := "Issue " + n.issue + " (Todo), written by Ada:\n> Login test is flaky\n> \n> Fails one run in five.\n\n" +
		"Comment by Bob:\n> It is the clock.\n> \n> Issue ENG-1 (Done):\n\n"
	if got[0].About != want {
		t.Errorf("about %q, want %q", got[0].About, want)
	}
	before := n.Calls("ReadViewer")
	n.links(n.address())
	if n.Calls("ReadViewer") != before {
		t.Error("asked again which workspace is ours")
	}
	if n.Calls("Attach")+n.Calls("MoveIssue") > 0 || n.Issue(n.issue).State != "Todo" {
		t.Error("it did not just read")
	}
	n.quiet()
}

// TestLinkBounds: three issues at most, and of each no more than there is room
// for.
func TestLinkBounds(t *testing.T) {
	t.Parallel()
	n := newNaming(t)
	var text string
	for i := range 5 {
		id := n.CreateIssue(lineartest.Issue{Team: "ENG", Title: fmt.Sprint("Number ", i), Description: strings.Repeat("\n", 20<<10)})
		n.Comment(id, "bob", strings.Repeat("x", 20<<10))
		text += "https://linear.app/acme/issue/" + id + " "
	}
	got := n.links(text)
	if len(got) != maxLinks {
		t.Fatalf("%d links", len(got))
	}
	for i, l := range got {
		if len(l.About) > maxAbout || !strings.Contains(l.About, fmt.Sprint("Number ", i)) || !strings.HasSuffix(l.About, "\n\n") {
			t.Errorf("%d bytes: %.200q", len(l.About), l.About)
		}
		foreign(t, l.About, "Issue ENG-", "Comment by ")
	}
}

// TestLinkReaders: an issue is shown to be worked on whoever names it, and
// described only to those who may read it themselves.
func TestLinkReaders(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		email      string
		person     lineartest.Person
		visibility ql.TeamVisibility
		members    []string
		want       bool
	}{
		"a user":               {email: "ada@acme.example", want: true},
		"by no address":        {},
		"a stranger":           {email: "eve@evil.example"},
		"a name that is close": {email: "ada@acme.example.evil.example"},
		"who left":             {email: "ada@acme.example", person: lineartest.Person{Gone: true}, members: []string{"ada"}},
		"a guest":              {email: "ada@acme.example", person: lineartest.Person{Guest: true}},
		"a guest in the team":  {email: "ada@acme.example", person: lineartest.Person{Guest: true}, members: []string{"ada"}, want: true},
		"private":              {email: "ada@acme.example", visibility: ql.TeamVisibilityPrivate, members: []string{"bob"}},
		"private, a member":    {email: "ADA@acme.example", visibility: ql.TeamVisibilityPrivate, members: []string{"bob", "ada"}, want: true},
		"restricted":           {email: "ada@acme.example", visibility: ql.TeamVisibilityRestricted},
		"restricted, a member": {email: "ada@acme.example", visibility: ql.TeamVisibilityRestricted, members: []string{"ada"}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNaming(t)
			test.person.Handle = "ada"
			n.AddPerson(test.person)
			if test.visibility == "" {
				test.visibility = ql.TeamVisibilityPublic
			}
			n.Enclose("ENG", test.visibility, test.members...)
			n.who.Email = test.email
			got := n.links(n.address())
			if len(got) != 1 || got[0].Thread != n.thread.session() || (got[0].About != "") != test.want {
				t.Errorf("%+v", got)
			}
			if test.email == "" && n.Calls("ReadReader") > 0 {
				t.Error("asked for nobody")
			}
		})
	}
}

// TestLinkHidden: nothing is linked that ship cannot see.
func TestLinkHidden(t *testing.T) {
	t.Parallel()
	n := newNaming(t)
	if got := n.links("https://linear.app/other/issue/" + n.issue); len(got) > 0 || n.Calls("ReadIssue") > 0 {
		t.Errorf("of another workspace: %+v", got)
	}
	if got := n.links("https://linear.app/acme/issue/ENG-999"); len(got) > 0 {
		t.Errorf("none: %+v", got)
	}
	n.Inject(lineartest.Failing("ReadIssue", 400, "FORBIDDEN", "no"))
	if got := n.links(n.address()); len(got) > 0 {
		t.Errorf("forbidden: %+v", got)
	}
	n.ChangeAccess(nil, []string{"ENG"})
	if got := n.links(n.address()); len(got) > 0 {
		t.Errorf("of a team that ship is not in: %+v", got)
	}
	before := n.Calls("ReadIssue")
	if got := n.links("no address at all"); len(got) > 0 || n.Calls("ReadIssue") != before {
		t.Errorf("%+v", got)
	}
}

// TestLinkFails: what was found before an error comes with it.
func TestLinkFails(t *testing.T) {
	t.Parallel()
	for operation, want := range map[string]int{"ReadViewer": 0, "ReadIssue": 1, "ReadReader": 2, "ReadIssueComments": 2} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			n := newNaming(t)
			second := n.CreateIssue(lineartest.Issue{Team: "ENG", Title: "Another"})
			fault := lineartest.Fault{On: operation, Status: 502}
			if operation == "ReadViewer" {
				fault.Times = -1
			}
			n.Inject(fault)
			got, err := n.linker.Link(t.Context(), n.address()+" https://linear.app/acme/issue/"+second, n.who)
			if err == nil || len(got) != want || strings.Contains(err.Error(), n.who.Email) {
				t.Fatalf("%+v, %v", got, err)
			}
			if n.ClearFaults(); len(n.links(n.address())) != 1 {
				t.Error("and it stays so")
			}
		})
	}
}

// TestLinkInstalled: of the workspaces in which the app was installed, the one
// that is named; those that took the access back are passed over.
func TestLinkInstalled(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	o.PersonID("ada")
	tokens := o.gateway(GrantCode).app.tokens
	linker := &Linker{app: newApp(Config{Settings: Settings{APIURL: o.APIURL()}, Quota: &memory.Quota{}, Transport: &http.Transport{DisableKeepAlives: true}}, tokens)}
	text, who := "https://linear.app/acme/issue/"+o.issue, bot.Asker{Email: "ada@acme.example"}
	count := func(want int) {
		t.Helper()
		if got, err := linker.Link(t.Context(), text, who); err != nil || len(got) != want {
			t.Errorf("%+v, %v", got, err)
		}
	}
	count(0)
	grant := Grant{Access: config.NewSecret(o.Token()), Refresh: config.NewSecret("r"), Lives: time.Hour}
	if err := tokens.Keep(t.Context(), o.OrganizationID(), grant); err != nil {
		t.Fatal(err)
	}
	if err := tokens.list(t.Context(), func([]string) []string { return []string{"gone", o.OrganizationID()} }); err != nil {
		t.Fatal(err)
	}
	count(1)
	text = "https://linear.app/other/issue/" + o.issue
	count(0)
}
