package linear

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ship/config"
	ql "ship/graphql/linear"
	"ship/integrations/linear/lineartest"
	"ship/session"
	"ship/session/memory"
)

// outage is a workspace whose webhooks are held back, and a gateway that comes
// back after that.
type outage struct {
	*lineartest.Server
	t        *testing.T
	vault    *memory.Vault
	store    *memory.Store
	receiver *Receiver
	recovery *Recovery
	issue    string

	mu    sync.Mutex
	taken []session.Delivery // guarded by mu
}

// Append notes what arrives at the store. It makes an outage a session.Inbox.
func (o *outage) Append(ctx context.Context, d session.Delivery) (session.Receipt, error) {
	receipt, err := o.store.Append(ctx, d)
	if err == nil && !receipt.Duplicate {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.taken = append(o.taken, d)
	}
	return receipt, err
}

func newOutage(t *testing.T) *outage {
	t.Helper()
	v, err := published()
	if err != nil {
		t.Fatal(err)
	}
	server, err := lineartest.New(lineartest.Options{Validator: v})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		for _, v := range server.Violations() {
			t.Error(v)
		}
	})
	o := &outage{Server: server, t: t, vault: &memory.Vault{}, store: memory.New()}
	server.CreateTeam("ENG", "Engineering")
	o.issue = server.CreateIssue(lineartest.Issue{Team: "ENG", Title: "Login test is flaky", Creator: "ada"})
	o.recovery = o.gateway(GrantClient)
	o.receiver = receiverOver(t, o.vault, func(c *ReceiverConfig) {
		c.Tokens, c.Now = o.recovery.app.tokens, func() time.Time { return time.Now().Add(time.Second) }
	})
	return o
}

// gateway is one more process.
func (o *outage) gateway(grant string) *Recovery {
	o.t.Helper()
	next := &http.Transport{DisableKeepAlives: true}
	c := Config{Settings: Settings{APIURL: o.APIURL()}, Quota: &memory.Quota{}, Transport: next}
	tokens, err := NewTokens(TokensConfig{
		ClientID: o.ClientID(), ClientSecret: config.NewSecret(o.ClientSecret()), TokenURL: o.TokenURL(), Grant: grant,
		Vault: o.vault, Locker: o.vault, Transport: next,
	})
	if err != nil {
		o.t.Fatal(err)
	}
	c.Logger = slog.New(slog.DiscardHandler)
	return newRecovery(newApp(c, tokens), rolls{o.vault}, o)
}

// recovers looks for what was missed, and returns it as it was taken.
func (o *outage) recovers(want int) []session.Delivery {
	o.t.Helper()
	o.mu.Lock()
	o.taken = nil
	o.mu.Unlock()
	found, err := o.recovery.Recover(o.t.Context(), time.Now().Add(-time.Hour))
	if err != nil || found != want || len(o.taken) != want {
		o.t.Fatalf("found %d of %d and took %+v, %v", found, want, o.taken, err)
	}
	return o.taken
}

// hears has a webhook come after all, and returns what it was decoded to.
func (o *outage) hears(d lineartest.Delivery) session.Delivery {
	o.t.Helper()
	got, err := o.receiver.Receive(o.t.Context(), d.Sign(secret).Header, d.Body)
	if err != nil || len(got.Deliveries) != 1 {
		o.t.Fatalf("got %+v, %v", got, err)
	}
	return got.Deliveries[0]
}

// says has the app say something in a session.
func (o *outage) says(session string, c ql.Content) {
	o.t.Helper()
	w := o.recovery.app.workspace(o.OrganizationID())
	if _, err := ql.CreateActivity(o.t.Context(), w.client, derived("said", rand.Text()), session, c, false); err != nil {
		o.t.Fatal(err)
	}
}

// TestRecoverMissed: what is recovered is what the webhook would have brought,
// but for what Linear writes only there, and either makes a duplicate of the
// other.
func TestRecoverMissed(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(*outage) lineartest.Delivery{
		"delegated":               func(o *outage) lineartest.Delivery { _, d := o.Delegate(o.issue, "ada"); return d },
		"delegated by automation": func(o *outage) lineartest.Delivery { _, d := o.Delegate(o.issue, ""); return d },
		"mentioned": func(o *outage) lineartest.Delivery {
			_, d := o.Mention(lineartest.Mention{Issue: o.issue, By: "ada", Body: "@ship [model=acme/small] fix it"})
			return d
		},
		"mentioned below a comment": func(o *outage) lineartest.Delivery {
			root, _ := o.Comment(o.issue, "bob", "It is broken.")
			_, d := o.Mention(lineartest.Mention{Issue: o.issue, By: "ada", Body: "@ship fix that", Thread: root})
			return d
		},
		"mentioned in a document": func(o *outage) lineartest.Delivery {
			_, d := o.Mention(lineartest.Mention{By: "ada", Body: "@ship what is this?"})
			return d
		},
		"prompted": func(o *outage) lineartest.Delivery { return o.Prompt(o.asked(), "bob", "use the staging database") },
		"stopped":  func(o *outage) lineartest.Delivery { return o.Stop(o.asked(), "ada") },
		"answered": func(o *outage) lineartest.Delivery {
			id := o.asked()
			o.says(id, ql.Elicitation("Which?"))
			return o.Prompt(id, "ada", "acme/widgets")
		},
	} {
		for _, late := range []bool{false, true} {
			t.Run(name+map[bool]string{false: ", webhook first", true: ", webhook late"}[late], func(t *testing.T) {
				t.Parallel()
				o := newOutage(t)
				d := happens(o)
				if !late {
					if receipt, err := o.Append(t.Context(), o.hears(d)); err != nil || receipt.Duplicate {
						t.Fatal(receipt, err)
					}
					o.recovers(0)
					return
				}
				got := o.recovers(1)[0]
				want := o.hears(d)
				ignored := []cmp.Option{
					cmpopts.IgnoreFields(session.Event{}, "Delivery"), cmpopts.IgnoreFields(session.Request{}, "Quote", "At"),
				}
				want.Keys[0] = "ln:recovered:" + want.Event.Request.ID
				if diff := cmp.Diff(want, got, ignored...); diff != "" {
					t.Errorf("recovered (-want +got):\n%s", diff)
				}
				if at := got.Event.Request.At; time.Since(at).Abs() > time.Minute {
					t.Errorf("at %s", at)
				}
				if receipt, err := o.Append(t.Context(), o.hears(d)); err != nil || !receipt.Duplicate {
					t.Errorf("the webhook after that: %+v, %v", receipt, err)
				}
				o.recovers(0)
			})
		}
	}
}

// asked is a session whose beginning was taken, and acknowledged.
func (o *outage) asked() string {
	o.t.Helper()
	id, d := o.Delegate(o.issue, "ada")
	if _, err := o.Append(o.t.Context(), o.hears(d)); err != nil {
		o.t.Fatal(err)
	}
	o.says(id, ql.Thought("On it."))
	return id
}

// TestRecoverInOrder: all that was missed in a session, and nothing that was
// settled.
func TestRecoverInOrder(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	id, _ := o.Delegate(o.issue, "ada")
	o.Prompt(id, "ada", "only the login test")
	o.Prompt(id, "bob", "status")
	verbs := func(want ...session.Verb) {
		t.Helper()
		var got []session.Verb
		for _, d := range o.recovers(len(want)) {
			got = append(got, d.Event.Request.Verb)
		}
		if !slices.Equal(got, want) {
			t.Errorf("recovered %v", got)
		}
	}
	verbs(session.Instruct, session.Instruct, session.Status)
	o.says(id, ql.Response("Done."))
	verbs()
	o.Prompt(id, "ada", "retry")
	o.says(id, ql.Thought("Got that."))
	o.Stop(id, "ada")
	verbs(session.Retry, session.Stop)
}

// TestRecoveredSessionIsOnTheRoll: what was recovered can be withdrawn.
func TestRecoveredSessionIsOnTheRoll(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	id, _ := o.Delegate(o.issue, "ada")
	o.recovers(1)
	d := o.hears(o.Unassign(o.issue, "ada"))
	if d.Session != session.ID("ln."+id) || d.Event.Request.Verb != session.Withdraw {
		t.Errorf("got %+v", d)
	}
	issue := o.Issue(o.issue).ID
	if n, err := (rolls{o.vault}).started(t.Context(), o.OrganizationID(), issue, time.Now().Add(-time.Hour)); err != nil || n != 1 {
		t.Errorf("%d began, %v", n, err)
	}
}

// TestRecoverIsCheap: who we are is asked once, and a session is read once
// until it changes.
func TestRecoverIsCheap(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	id, _ := o.Delegate(o.issue, "ada")
	calls := func(viewer, sessions, activities, comments int) {
		t.Helper()
		got := [4]int{o.Calls("ReadViewer"), o.Calls("ReadSessions"), o.Calls("ReadActivities"), o.Calls("ReadComments")}
		if want := [4]int{viewer, sessions, activities, comments}; got != want {
			t.Errorf("calls %v, want %v", got, want)
		}
	}
	o.recovers(1)
	calls(2, 1, 1, 1)
	o.recovers(0)
	calls(2, 2, 1, 1)
	o.says(id, ql.Thought("On it."))
	o.recovers(0)
	calls(2, 3, 2, 1)
	o.says(id, ql.Response("Done."))
	o.recovers(0)
	calls(2, 4, 2, 1)
}

// TestRecoverPages: many sessions, of which only those that changed lately are
// of interest.
func TestRecoverPages(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	for range 51 {
		o.Delegate(o.issue, "ada")
	}
	o.Advance(2 * time.Hour)
	id, _ := o.Delegate(o.issue, "ada")
	got, err := o.recovery.Recover(t.Context(), time.Now().Add(time.Hour))
	if err != nil || got != 1 || o.taken[0].Session != session.ID("ln."+id) || o.Calls("ReadSessions") != 1 {
		t.Errorf("%d by %d calls, %v", got, o.Calls("ReadSessions"), err)
	}
	if got, err = o.recovery.Recover(t.Context(), time.Now().Add(-time.Hour)); err != nil || got != 51 || o.Calls("ReadSessions") != 3 {
		t.Errorf("%d by %d calls, %v", got, o.Calls("ReadSessions"), err)
	}
}

// TestRecoverPassesOver a session that Linear does not let us read, and gives
// up when there is nobody.
func TestRecoverPassesOver(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	for range 3 {
		o.Delegate(o.issue, "ada")
	}
	since := time.Now().Add(-time.Hour)
	o.Inject(lineartest.Failing("ReadActivities", http.StatusOK, "INPUT_ERROR", "Entity not found: AgentSession"))
	if found, err := o.recovery.Recover(t.Context(), since); err == nil || found != 2 {
		t.Errorf("found %d, %v", found, err)
	}
	for range 2 {
		o.Delegate(o.issue, "ada")
	}
	before := o.Calls("ReadActivities")
	o.Inject(lineartest.Fault{On: "ReadActivities", Status: http.StatusServiceUnavailable})
	if found, err := o.recovery.Recover(t.Context(), since); err == nil || found != 0 || o.Calls("ReadActivities") != before+1 {
		t.Errorf("found %d by %d calls, %v", found, o.Calls("ReadActivities")-before, err)
	}
	o.recovers(3)
}

// TestRecoverAtOnce: several gateways and the webhook itself bring one request.
func TestRecoverAtOnce(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	_, d := o.Delegate(o.issue, "ada")
	d = d.Sign(secret)
	var all sync.WaitGroup
	for range 4 {
		g := o.gateway(GrantClient)
		all.Go(func() {
			if _, err := g.Recover(t.Context(), time.Now().Add(-time.Hour)); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			got, err := o.receiver.Receive(t.Context(), d.Header, d.Body)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := o.Append(t.Context(), got.Deliveries[0]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(o.taken) != 1 {
		t.Errorf("took %+v", o.taken)
	}
}

// TestRecoverInstalled: every workspace in which the app was installed, and in
// silence none that revoked the access.
func TestRecoverInstalled(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	o.recovery = o.gateway(GrantCode)
	tokens := o.recovery.app.tokens
	o.Delegate(o.issue, "ada")
	o.recovers(0)
	grant := Grant{Access: config.NewSecret(o.Token()), Refresh: config.NewSecret("r"), Lives: time.Hour}
	if err := tokens.Keep(t.Context(), o.OrganizationID(), grant); err != nil {
		t.Fatal(err)
	}
	o.recovers(1)
	if _, err := tokens.Revoke(t.Context(), o.OrganizationID(), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	o.Delegate(o.issue, "ada")
	o.recovers(0)
	if err := tokens.list(t.Context(), func([]string) []string { return []string{o.OrganizationID(), "gone"} }); err != nil {
		t.Fatal(err)
	}
	o.recovers(0) // as between the two writes of Keep
}

func TestRecoverEnds(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	o.Inject(lineartest.Fault{On: "ReadSessions", Hang: true, Do: func(*http.Request) { cancel(gone) }})
	if _, err := o.recovery.Recover(ctx, now); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	if _, err := newRecovery(o.recovery.app, rolls{o.vault}, nil).Recover(t.Context(), now); !errors.Is(err, errNoInbox) {
		t.Errorf("got %v", err)
	}
}
