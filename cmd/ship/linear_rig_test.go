package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"regexp"
	"testing"
	"time"

	ql "ship/graphql/linear"
	"ship/integrations/linear/lineartest"
)

const linearSecret = "s3cret-of-linears-webhook"

// linearRig is a rig with a workspace of Linear, in which ada, who is mona on
// GitHub, has an issue.
type linearRig struct {
	*rig
	linear *lineartest.Server
	issue  string
}

type linearOptions struct {
	rigOptions
	// unrouted leaves it open which repository is meant: there are two.
	unrouted bool
	server   lineartest.Options
}

func newLinearRig(t testing.TB, o linearOptions) *linearRig {
	t.Helper()
	o.server.Validator = linearValidator(t)
	stand, err := lineartest.New(o.server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, v := range stand.Violations() {
			t.Errorf("not as Linear describes its API: %s", v)
		}
		_ = stand.Close()
	})
	routes := "repositories: {teams: {ENG: " + rigRepo + "}}\n"
	if o.unrouted {
		routes = ""
	}
	o.more += fmt.Sprintf(`linear:
  client_id: %s
  client_secret: %s
  webhook_secret: %s
  api_url: %s
  token_url: %s
access:
  people: {ada@acme.example: mona}
%s`, stand.ClientID(), stand.ClientSecret(), linearSecret, stand.APIURL(), stand.TokenURL(), routes)
	r := &linearRig{rig: newRig(t, o.rigOptions), linear: stand}
	if o.unrouted {
		if err := r.host.CreateRepo("acme/gadgets", map[string]string{"README.md": "# gadgets\n"}); err != nil {
			t.Fatal(err)
		}
		r.host.SetPermission("acme/gadgets", "mona", "write")
	}
	stand.CreateTeam("ENG", "Engineering")
	r.issue = stand.CreateIssue(lineartest.Issue{Team: "ENG", Title: "Widgets are broken", Description: "They do not turn."})
	return r
}

// linearValidator checks against Linear's whole schema where that is at hand.
func linearValidator(t testing.TB) lineartest.Validator {
	t.Helper()
	v, err := descriptions.linear()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// assign has ada hand the issue over, and returns the agent session and the
// webhook, which is not delivered yet.
func (r *linearRig) assign() (id string, d lineartest.Delivery) {
	return r.linear.Delegate(r.issue, "ada")
}

// tell delivers a webhook until it is accepted, as Linear would.
func (r *linearRig) tell(d lineartest.Delivery) {
	r.t.Helper()
	r.await("linear's webhook to be accepted", patience, func() bool { return r.post(d) == http.StatusOK })
}

// post sends a webhook once and returns the status, zero when nobody answered.
func (r *linearRig) post(d lineartest.Delivery) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	d.Header = d.Header.Clone() // several may be sent at once
	status, err := lineartest.Deliver(ctx, "http://"+r.addr+"/webhooks/linear", d.Sign(linearSecret))
	if err != nil {
		return 0
	}
	return status
}

// last is what the app said last in a session.
func (r *linearRig) last(id string) (last lineartest.Activity) {
	for _, a := range r.linear.Session(id).Activities {
		if a.By == "ship" {
			last = a
		}
	}
	return last
}

// said lists what the app said in a session, ephemeral or not.
func (r *linearRig) said(id string, kind ql.ContentType) (bodies []string) {
	for _, a := range r.linear.Session(id).Activities {
		if a.By == "ship" && a.Content.Type == kind {
			bodies = append(bodies, a.Content.Body+a.Content.Action)
		}
	}
	return bodies
}

// finished tells whether the app had the last word in a session and all is
// quiet.
func (r *linearRig) finished(id string) bool {
	kind := r.last(id).Content.Type
	return (kind == ql.TypeResponse || kind == ql.TypeError) && r.quiet()
}

// answered waits for the last word in a session, and returns it.
func (r *linearRig) answered(id string, limit time.Duration) lineartest.Activity {
	r.t.Helper()
	r.await("the last word in linear", limit, func() bool { return r.finished(id) })
	return r.last(id)
}

// world is what is left on both platforms.
func (r *linearRig) world() string {
	return sessionName.ReplaceAllString(r.rig.world(), "ln.SESSION") + "\n" + timeless(r.linear.World())
}

// sessionName matches the session's name, in which the stand-in for GitHub may
// have taken parts for commits.
var sessionName = regexp.MustCompile(`\bln[.-](?:[0-9a-f]+|COMMIT)(?:-(?:[0-9a-f]+|COMMIT)){4}`)

func (r *linearRig) await(what string, limit time.Duration, done func() bool) {
	r.t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if done() {
			return
		}
	}
	r.t.Fatalf("waited %s for %s; the world:\n%s\nship said:\n%s", limit, what, r.world(), r.log)
}
