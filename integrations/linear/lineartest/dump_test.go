package lineartest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/graphql/linear"
	"ship/integrations/linear/lineartest"
)

// TestWorldsAreComparable: what was done the same way looks the same, and what
// differs shows.
func TestWorldsAreComparable(t *testing.T) {
	t.Parallel()
	live := func(extra int, answer string) string {
		c := newClient(t, lineartest.Options{})
		session, _ := c.Delegate(c.issue, "ada")
		for n := range extra { // what is gone leaves no trace
			c.says(session, 100+n, linear.Thought("hm"), true)
		}
		url := []linear.URL{{Label: "Session", Url: c.URL + "/s/" + session}}
		if _, err := linear.SetURLs(t.Context(), c, session, url); err != nil {
			t.Fatal(err)
		}
		c.says(session, 1, linear.Response(answer), false)
		return c.World()
	}
	one, two, other := live(0, "done at 0a1b2c3d4e5f"), live(3, "done at ff00ff11"), live(0, "not done")
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("worlds differ:\n%s", diff)
	}
	if one == other {
		t.Error("other worlds look the same")
	}
	for _, want := range []string{"done at COMMIT", `link "Session" http://127.0.0.1:PORT/s/ID`, "session complete by ada"} {
		if !strings.Contains(one, want) {
			t.Errorf("%q is not in\n%s", want, one)
		}
	}
}

// TestDocuments: a session need not be on an issue.
func TestDocuments(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{})
	session, _ := c.Mention(lineartest.Mention{By: "ada", Body: "@ship in a document"})
	c.says(session, 1, linear.Response("hello"), false)
	got, err := linear.ReadSession(t.Context(), c, session)
	if err != nil || got.AgentSession.Issue != nil || got.AgentSession.Url != "" {
		t.Errorf("session %+v, %v", got, err)
	}
	if all := c.Sessions(""); len(all) != 1 || all[0].Issue != "" || !strings.Contains(c.World(), "session complete by ada") {
		t.Errorf("sessions %+v in\n%s", all, c.World())
	}
}
