package lineartest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ship/integrations/linear/lineartest"
)

// event is what a webhook says, as far as the tests ask.
type event struct {
	Type, Action     string
	WebhookTimestamp int64
	PromptContext    string
	AgentSession     struct {
		ID, Status string
		Creator    *struct{ Email string }
		Issue      *struct{ Identifier string }
		Comment    struct{ Body string }
	}
	AgentActivity *struct {
		Content struct{ Type, Body string }
		Signal  string
		UserID  string
	}
	PreviousComments []struct{ Body string }
	Guidance         []struct{ Body string }
	Notification     struct{ Type string }
	RemovedTeamIds   []string
}

func read(t *testing.T, d lineartest.Delivery) event {
	t.Helper()
	var e event
	if err := json.Unmarshal(d.Body, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestSessionEvents(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{})
	c.SetGuidance("ENG", "Run the linter.")
	c.SetGuidance("", "Be brief.")
	session, d := c.Delegate(c.issue, "ada")
	got := read(t, d)
	if got.Type != "AgentSessionEvent" || got.Action != "created" || got.AgentSession.ID != session || got.AgentSession.Status != "pending" ||
		got.AgentSession.Creator.Email != "ada@acme.example" || got.AgentActivity != nil || c.Issue(c.issue).Delegate != "ship" {
		t.Errorf("delegated: %s", d.Body)
	}
	if len(got.Guidance) != 2 || got.Guidance[0].Body != "Run the linter." || !strings.Contains(got.PromptContext, `<issue identifier="ENG-1">`) {
		t.Errorf("delegated: %s", d.Body)
	}
	_, d = c.Delegate(c.issue, "")
	if got := read(t, d); got.AgentSession.Creator != nil {
		t.Errorf("by an automation: %s", d.Body)
	}
	d = c.Prompt(session, "bob", "use the staging database")
	got = read(t, d)
	if got.Action != "prompted" || got.AgentActivity.Content.Type != "prompt" || got.AgentActivity.Content.Body != "use the staging database" ||
		got.AgentActivity.UserID != c.PersonID("bob") || got.AgentActivity.Signal != "" {
		t.Errorf("prompted: %s", d.Body)
	}
	d = c.Stop(session, "ada")
	if got := read(t, d); got.Action != "prompted" || got.AgentActivity.Signal != "stop" {
		t.Errorf("stopped: %s", d.Body)
	}
}

func TestMentions(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{})
	top, _ := c.Comment(c.issue, "bob", "I saw it on CI too")
	session, d := c.Mention(lineartest.Mention{Issue: c.issue, By: "ada", Body: "@ship <look>", Thread: top})
	got := read(t, d)
	if len(got.PreviousComments) != 1 || got.AgentSession.Comment.Body != "@ship <look>" || !strings.Contains(got.PromptContext, "&lt;look&gt;") {
		t.Errorf("mentioned: %s", d.Body)
	}
	if c.Issue(c.issue).Delegate != "" {
		t.Error("a mention delegates nothing")
	}
	c.Prompt(session, "ada", "well?")
	if all := c.Comments(c.issue); len(all) != 3 || all[2].Parent != top {
		t.Errorf("comments %+v", all)
	}
	_, d = c.Mention(lineartest.Mention{By: "ada", Body: "@ship in a document"})
	if got := read(t, d); got.AgentSession.Issue != nil || got.PreviousComments != nil {
		t.Errorf("in a document: %s", d.Body)
	}
}

func TestNotifications(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{})
	c.Delegate(c.issue, "ada")
	_, commented := c.Comment(c.issue, "bob", "any news?")
	for want, d := range map[string]lineartest.Delivery{
		"issueAssignedToYou":     c.Assigned(c.issue, "ada"),
		"issueNewComment":        commented,
		"issueStatusChanged":     c.Move(c.issue, "ada", "Done"),
		"issueUnassignedFromYou": c.Unassign(c.issue, "ada"),
	} {
		if got := read(t, d); got.Type != "AppUserNotification" || got.Action != want || got.Notification.Type != want {
			t.Errorf("%s: %s", want, d.Body)
		}
	}
	if got := c.Issue(c.issue); got.Delegate != "" || got.State != "Done" {
		t.Errorf("issue %+v", got)
	}
	if got := read(t, c.ChangeAccess(nil, []string{"ENG"})); got.Type != "PermissionChange" || len(got.RemovedTeamIds) != 1 {
		t.Errorf("access: %+v", got)
	}
	if got := read(t, c.Revoke()); got.Type != "OAuthApp" || got.Action != "revoked" {
		t.Errorf("revoked: %+v", got)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{})
	c.Advance(-time.Minute)
	_, d := c.Delegate(c.issue, "ada")
	_, other := c.Delegate(c.issue, "ada")
	age := time.Since(time.UnixMilli(read(t, d).WebhookTimestamp))
	if age < time.Minute || age > 2*time.Minute {
		t.Errorf("it is %s old", age)
	}
	if d.ID() == other.ID() || len(d.ID()) != 36 || d.Header.Get("Linear-Event") != "AgentSessionEvent" ||
		d.Header.Get("Linear-Timestamp") != fmt.Sprint(read(t, d).WebhookTimestamp) {
		t.Errorf("headers %v", d.Header)
	}
}

// TestSignature holds our signatures against one that was made elsewhere.
func TestSignature(t *testing.T) {
	t.Parallel()
	const hello = "88aab3ede8d3adf94d26ab90d3bafd4a2083070c3bcce9c014ee04a443847c0b" // openssl dgst -sha256 -hmac secret
	d := lineartest.Delivery{Header: http.Header{}, Body: []byte("hello")}.Sign("secret")
	if got := d.Header.Get("Linear-Signature"); got != hello {
		t.Errorf("signature %s", got)
	}
	b, err := os.ReadFile(shared(t, "webhooks", "vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct{ Platform, Secret, Body, Header, Value string }
	if err := json.Unmarshal(b, &vectors); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(vectors, func(v struct{ Platform, Secret, Body, Header, Value string }) bool { return v.Platform == "linear" })
	v := vectors[at]
	d = lineartest.Delivery{Header: http.Header{}, Body: []byte(v.Body)}.Sign(v.Secret)
	if got := d.Header.Get(v.Header); got != v.Value {
		t.Errorf("signature %s, want %s", got, v.Value)
	}
}

func TestDeliver(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{})
	_, d := c.Delegate(c.issue, "ada")
	d.Sign("a secret")
	var got []byte
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		if r.Header.Get("Linear-Signature") == "" || r.Header.Get("Linear-Delivery") != d.ID() {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	defer hook.Close()
	status, err := lineartest.Deliver(t.Context(), hook.URL, d)
	http.DefaultClient.CloseIdleConnections()
	if err != nil || status != 200 || !bytes.Equal(got, d.Body) {
		t.Errorf("got %d, %v", status, err)
	}
}

// TestShapes holds webhooks against examples: the same fields, of the same
// kinds where neither is null.
func TestShapes(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{})
	c.SetGuidance("ENG", "Run the linter.")
	c.SetGuidance("", "Be brief.")
	top, commented := c.Comment(c.issue, "bob", "I saw it on CI too")
	session, delegated := c.Delegate(c.issue, "ada")
	_, mentioned := c.Mention(lineartest.Mention{Issue: c.issue, By: "ada", Body: "@ship look", Thread: top})
	for name, d := range map[string]lineartest.Delivery{
		"AgentSessionEvent.created.delegated":            delegated,
		"AgentSessionEvent.created.mentioned-in-comment": mentioned,
		"AgentSessionEvent.prompted":                     c.Prompt(session, "ada", "use the staging database"),
		"AgentSessionEvent.prompted.stop":                c.Stop(session, "ada"),
		"AppUserNotification.issueAssignedToYou":         c.Assigned(c.issue, "ada"),
		"AppUserNotification.issueNewComment":            commented,
		"AppUserNotification.issueUnassignedFromYou":     c.Unassign(c.issue, "ada"),
		"PermissionChange.teamAccessChanged":             c.ChangeAccess([]string{"ENG"}, nil),
		"OAuthApp.revoked":                               c.Revoke(),
	} {
		b, err := os.ReadFile(shared(t, "webhooks", "linear", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(d.Body, &got); err != nil {
			t.Fatal(err)
		}
		sameShape(t, name, want, got)
	}
}

func sameShape(t *testing.T, at string, want, got any) {
	t.Helper()
	if want == nil || got == nil {
		return
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s is no object", at)
			return
		}
		for key := range w {
			if _, there := g[key]; !there {
				t.Errorf("%s.%s is missing", at, key)
			}
			sameShape(t, at+"."+key, w[key], g[key])
		}
		for key := range g {
			if _, there := w[key]; !there {
				t.Errorf("%s.%s is not in the example", at, key)
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok {
			t.Errorf("%s is no list", at)
			return
		}
		for n := range min(len(w), len(g)) {
			sameShape(t, fmt.Sprintf("%s.%d", at, n), w[n], g[n])
		}
	default:
		if fmt.Sprintf("%T", want) != fmt.Sprintf("%T", got) {
			t.Errorf("%s is %T, not %T", at, got, want)
		}
	}
}
