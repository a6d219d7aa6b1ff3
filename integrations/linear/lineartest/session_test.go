package lineartest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/graphql/linear"
	"ship/integrations/linear/lineartest"
)

func TestStatuses(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{})
	session, _ := c.Delegate(c.issue, "")
	is := func(want linear.AgentSessionStatus) {
		t.Helper()
		if got := c.Session(session).Status; got != want {
			t.Errorf("status %s, want %s", got, want)
		}
	}
	is(linear.AgentSessionStatusPending)
	c.Advance(31 * time.Minute)
	is(linear.AgentSessionStatusStale)
	if got := c.Session(session).Answered; got >= 0 {
		t.Errorf("answered after %s", got)
	}
	c.says(session, 1, linear.Thought("back"), true)
	is(linear.AgentSessionStatusActive)
	if got := c.Session(session).Answered; got < 31*time.Minute {
		t.Errorf("answered after %s", got)
	}
	c.says(session, 2, linear.Elicitation("which?"), false)
	c.Advance(hour)
	is(linear.AgentSessionStatusAwaitinginput)
	c.Prompt(session, "ada", "this")
	is(linear.AgentSessionStatusActive)
	c.says(session, 3, linear.Failure("no"), false)
	is(linear.AgentSessionStatusError)
	c.Prompt(session, "ada", "again")
	c.says(session, 4, linear.Response("yes"), false)
	c.Advance(hour)
	is(linear.AgentSessionStatusComplete)
}

func TestEphemeral(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{})
	session, _ := c.Delegate(c.issue, "ada")
	visible := func(want ...string) {
		t.Helper()
		got, err := linear.ReadActivities(t.Context(), c, session, "")
		if err != nil {
			t.Fatal(err)
		}
		var bodies []string
		for _, a := range slices.Backward(got.AgentSession.Activities.Nodes) {
			bodies = append(bodies, a.Content.Body)
		}
		if diff := cmp.Diff(want, bodies); diff != "" {
			t.Error(diff)
		}
	}
	c.says(session, 1, linear.Thought("one"), true)
	c.Prompt(session, "ada", "well?")
	visible("one", "well?")
	c.says(session, 2, linear.Thought("two"), true)
	visible("well?", "two")
	c.says(session, 3, linear.Response("done"), false)
	visible("well?", "done")
	// What is gone was still created.
	if _, err := linear.ReadActivity(t.Context(), c, c.id(1)); err != nil {
		t.Error(err)
	}
	_, err := linear.CreateActivity(t.Context(), c, c.id(1), session, linear.Thought("one"), true)
	c.mustFail(err, "INPUT_ERROR")
}

func TestPages(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{})
	session, _ := c.Delegate(c.issue, "ada")
	for n := range 120 {
		c.says(session, n+1, linear.Thought(hex12(n)), false)
	}
	var sizes []int
	var all []string
	for after, more := "", true; more; {
		got, err := linear.ReadActivities(t.Context(), c, session, after)
		if err != nil {
			t.Fatal(err)
		}
		page := got.AgentSession.Activities
		sizes = append(sizes, len(page.Nodes))
		for _, a := range page.Nodes {
			all = append(all, a.Content.Body)
		}
		after, more = page.PageInfo.EndCursor, page.PageInfo.HasNextPage
	}
	if !slices.Equal(sizes, []int{50, 50, 20}) || all[0] != hex12(119) || all[119] != hex12(0) {
		t.Errorf("pages of %v from %s to %s", sizes, all[0], all[len(all)-1])
	}
}
