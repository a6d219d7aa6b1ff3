package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ship/config"
	"ship/integrations/slack/slacktest"
	"ship/session"
	"ship/session/memory"
)

// lavish is a quota that denies nothing, for tests of something else.
type lavish struct{}

func (lavish) Take(context.Context, string, session.Allowance) (time.Duration, error) { return 0, nil }
func (lavish) Tell(context.Context, string, session.Rate) error                       { return nil }

// outage is a workspace whose events get lost, and a gateway that comes back
// after that.
type outage struct {
	*slacktest.Server
	t        *testing.T
	store    *memory.Store
	vault    memory.Vault
	receiver *Receiver
	recovery *Recovery
	log      bytes.Buffer
	// skew is how far the clocks were turned.
	skew time.Duration

	mu    sync.Mutex
	err   error
	taken []session.Delivery // guarded by mu
}

// Append notes what arrives at the store. It makes an outage a session.Inbox.
func (o *outage) Append(ctx context.Context, d session.Delivery) (session.Receipt, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return session.Receipt{}, o.err
	}
	receipt, err := o.store.Append(ctx, d)
	if err == nil && !receipt.Duplicate && !receipt.Unknown {
		o.taken = append(o.taken, d)
	}
	return receipt, err
}

// newOutage makes one with the channel #eng. Unlike most apps, this one may list
// who wrote to it directly.
func newOutage(t *testing.T, limits slacktest.Limits) *outage {
	t.Helper()
	s, err := slacktest.New(slacktest.Options{
		Limits: limits, Scopes: append(slacktest.DefaultScopes(), "im:read", "mpim:read"), SigningSecret: secret,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if v := s.Violations(); len(v) > 0 {
			t.Errorf("violations: %v", v)
		}
	})
	s.CreateChannel(slacktest.Channel{Name: "eng", Members: []string{"ada", "bob"}})
	o := &outage{Server: s, t: t, store: memory.New()}
	clock := func() time.Time { return time.Now().Add(o.skew) }
	o.receiver, err = NewReceiver(ReceiverConfig{Secrets: []string{secret}, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	o.recovery = o.gateway()
	return o
}

// gateway is one more process.
func (o *outage) gateway() *Recovery {
	return o.gatewayOver(&http.Transport{DisableKeepAlives: true}, lavish{})
}

func (o *outage) gatewayOver(wire http.RoundTripper, quota session.Quota) *Recovery {
	c := Config{
		Settings: Settings{APIURL: o.APIURL(), BotToken: config.NewSecret(o.BotToken())}, Quota: quota, Inbox: o, Archive: o.store, Vault: &o.vault,
		Transport: wire, Logger: slog.New(slog.NewTextHandler(&o.log, nil)),
	}
	r := newRecovery(newApp(c), c)
	r.now = func() time.Time { return time.Now().Add(o.skew) }
	return r
}

// wait lets time pass, in Slack and here.
func (o *outage) wait(d time.Duration) {
	o.skew += d
	o.Advance(d)
}

// recovers looks for what was missed since a while ago, and returns it as it
// was taken.
func (o *outage) recovers(want int, since time.Duration) []session.Delivery {
	o.t.Helper()
	o.taken = nil
	found, err := o.recovery.Recover(o.t.Context(), time.Now().Add(o.skew-since))
	if err != nil || found != want || len(o.taken) != want {
		o.t.Fatalf("found %d of %d and took %+v, %v", found, want, texts(o.taken), err)
	}
	return o.taken
}

func texts(ds []session.Delivery) []string {
	var all []string
	for _, d := range ds {
		all = append(all, string(d.Event.Request.Verb)+" "+d.Event.Request.Text)
	}
	return all
}

// hears has events come after all, and returns what they were decoded to.
func (o *outage) hears(ds []slacktest.Delivery) []session.Delivery {
	o.t.Helper()
	var all []session.Delivery
	for _, d := range ds {
		signed := d.Sign(secret, time.Now().Add(o.skew))
		got, err := o.receiver.Receive(o.t.Context(), signed.Header, signed.Body)
		if err != nil {
			o.t.Fatal(err)
		}
		all = append(all, got.Deliveries...)
	}
	return all
}

// takes has events come in time.
func (o *outage) takes(ds []slacktest.Delivery) {
	o.t.Helper()
	for _, d := range o.hears(ds) {
		if _, err := o.Append(o.t.Context(), d); err != nil {
			o.t.Fatal(err)
		}
	}
}

// works has the session of a thread be in some state.
func (o *outage) works(channel, root string, change func(*session.State, *session.Voice)) {
	o.t.Helper()
	t := thread{o.TeamID(), o.ChannelID(channel), root}
	s := session.State{ID: t.id(), Threads: []session.Voice{{Thread: t.session(), Talks: true}}}
	change(&s, &s.Threads[0])
	raw, err := s.Encode()
	if err != nil {
		o.t.Fatal(err)
	}
	c, err := o.store.Claim(o.t.Context(), t.id(), "token", time.Minute)
	if err != nil {
		o.t.Fatal(err)
	}
	err = o.store.Commit(o.t.Context(), c.Lease, session.Commit{
		Version: c.Version, Cursor: c.Cursor + int64(len(c.Events)), State: raw, StateVersion: session.StateVersion, Release: true, Due: -1,
	})
	if err != nil {
		o.t.Fatal(err)
	}
}

// begun is a thread with a session, the beginning of which was taken.
func (o *outage) begun(channel string) (root string) {
	root, ds := o.Mention(slacktest.Said{Channel: channel, By: "ada", Text: "fix it"})
	o.takes(ds)
	return root
}

// TestRecoverMissed: what is recovered is what the event would have brought, and
// either makes a duplicate of the other.
func TestRecoverMissed(t *testing.T) {
	t.Parallel()
	said := func(x slacktest.Said) func(*outage) []slacktest.Delivery {
		return func(o *outage) []slacktest.Delivery { _, ds := o.Post(x); return ds }
	}
	for name, happens := range map[string]func(*outage) []slacktest.Delivery{
		"mentioned": said(slacktest.Said{Channel: "eng", By: "ada", Text: "@ship [model=acme/small] fix <it>"}),
		"directly":  said(slacktest.Said{By: "ada", Text: "what are you working on?"}),
		"in private": func(o *outage) []slacktest.Delivery {
			o.CreateChannel(slacktest.Channel{Name: "secret", Private: true})
			return said(slacktest.Said{Channel: "secret", By: "ada", Text: "@ship fix it"})(o)
		},
		"between several": func(o *outage) []slacktest.Delivery {
			o.CreateChannel(slacktest.Channel{Name: "party", Group: true})
			return said(slacktest.Said{Channel: "party", By: "ada", Text: "@ship fix it"})(o)
		},
		"from another workspace": func(o *outage) []slacktest.Delivery {
			o.AddPerson(slacktest.Person{Handle: "eve", Team: "T2EXT"})
			o.CreateChannel(slacktest.Channel{Name: "shared", Shared: true})
			return said(slacktest.Said{Channel: "shared", By: "eve", Text: "@ship fix it"})(o)
		},
		"with a file": func(o *outage) []slacktest.Delivery {
			f := o.Upload(slacktest.File{Name: "a.txt", MIME: "text/plain", By: "ada"})
			return said(slacktest.Said{Channel: "eng", By: "ada", Text: "@ship look", Files: []string{f}})(o)
		},
		"below what people say": func(o *outage) []slacktest.Delivery {
			root, _ := o.Post(slacktest.Said{Channel: "eng", By: "bob", Text: "it is broken"})
			return said(slacktest.Said{Channel: "eng", By: "ada", Thread: root, Text: "@ship fix that"})(o)
		},
		"shown to all": func(o *outage) []slacktest.Delivery {
			return said(slacktest.Said{Channel: "eng", By: "ada", Thread: o.begun("eng"), Text: "@ship again", Broadcast: true})(o)
		},
		"in a session": func(o *outage) []slacktest.Delivery {
			return said(slacktest.Said{Channel: "eng", By: "bob", Thread: o.begun("eng"), Text: "@ship stop"})(o)
		},
		"in a session of old": func(o *outage) []slacktest.Delivery {
			root := o.begun("eng")
			o.works("eng", root, func(*session.State, *session.Voice) {})
			o.wait(5 * 24 * time.Hour)
			return said(slacktest.Said{Channel: "eng", By: "bob", Thread: root, Text: "@ship and the docs"})(o)
		},
		"edited since": func(o *outage) []slacktest.Delivery {
			ts, _ := o.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix it"})
			return o.Edit(slacktest.Change{Channel: "eng", TS: ts, By: "ada"}, "@ship fix that")[:1]
		},
	} {
		for _, late := range []bool{false, true} {
			t.Run(name+map[bool]string{false: ", event first", true: ", event late"}[late], func(t *testing.T) {
				t.Parallel()
				o := newOutage(t, slacktest.NoLimits())
				ds := happens(o)
				if !late {
					o.takes(ds)
					o.recovers(0, time.Hour)
					return
				}
				got := o.recovers(1, time.Hour)[0]
				for _, want := range o.hears(ds) {
					want.Keys = want.Keys[1:]
					if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(session.Event{}, "Delivery")); diff != "" {
						t.Errorf("recovered (-want +got):\n%s", diff)
					}
					if receipt, err := o.Append(t.Context(), want); err != nil || !receipt.Duplicate {
						t.Errorf("the event after that: %+v, %v", receipt, err)
					}
				}
				if got.Event.Delivery != "recovered:"+got.Event.Request.ID {
					t.Errorf("delivery %q", got.Event.Delivery)
				}
				o.recovers(0, time.Hour)
				o.recovery = o.gateway()
				o.recovers(0, time.Hour)
			})
		}
	}
}

// TestNothingToRecover: what would be nothing as an event is nothing here.
func TestNothingToRecover(t *testing.T) {
	t.Parallel()
	o := newOutage(t, slacktest.NoLimits())
	root := o.begun("eng")
	o.AddPerson(slacktest.Person{Handle: "robot", Bot: true})
	o.CreateChannel(slacktest.Channel{Name: "elsewhere", NoApp: true, Members: []string{"ada"}})
	gone, _ := o.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "no"})
	o.Post(slacktest.Said{Channel: "eng", By: "bob", Thread: gone, Text: "why?"})
	o.Delete(slacktest.Change{Channel: "eng", TS: gone, By: "ada"})
	for _, x := range []slacktest.Said{
		{Channel: "eng", By: "ada", Text: "lunch?"},
		{Channel: "eng", By: "robot", Text: "@ship fix it"},
		{Channel: "eng", By: "ada", Thread: root, Text: "nobody is meant"},
		{Channel: "elsewhere", By: "ada", Text: "@ship fix it"},
	} {
		o.Post(x)
	}
	o.recovers(0, time.Hour)
	o.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "too long ago"})
	o.wait(recoverable + time.Minute)
	o.recovers(0, 30*24*time.Hour)
}

// TestRecoverOpenThreads: where replies need no mention, those after the last
// request are recovered. Those before were read along with it.
func TestRecoverOpenThreads(t *testing.T) {
	t.Parallel()
	o := newOutage(t, slacktest.NoLimits())
	o.recovery.open = true
	root := o.begun("eng")
	other, _ := o.Post(slacktest.Said{Channel: "eng", By: "bob", Text: "lunch?"})
	o.Post(slacktest.Said{Channel: "eng", By: "ada", Thread: other, Text: "yes"})
	o.Post(slacktest.Said{Channel: "eng", By: "bob", Thread: root, Text: "it is the login"})
	_, stop := o.Mention(slacktest.Said{Channel: "eng", By: "bob", Thread: root, Text: "stop"})
	o.Mention(slacktest.Said{Channel: "eng", By: "bob", Thread: root, Text: "and the docs"})
	last, ds := o.Mention(slacktest.Said{Channel: "eng", By: "ada", Thread: root, Text: "go on"})
	o.takes(ds)
	o.works("eng", root, func(_ *session.State, v *session.Voice) { v.Heard = moment(last) })
	o.Post(slacktest.Said{Channel: "eng", By: "bob", Thread: root, Text: "use staging"})
	if got := texts(o.recovers(2, time.Hour)); !slices.Equal(got, []string{"instruct and the docs", "instruct use staging"}) {
		t.Errorf("took %q, and the stop before that was %+v", got, stop)
	}
}

// TestRecoverInPages: nothing is lost where Slack divides what it lists.
func TestRecoverInPages(t *testing.T) {
	t.Parallel()
	limits := slacktest.NoLimits()
	limits.Page = 2
	o := newOutage(t, limits)
	want := 0
	for n := range 5 {
		name := fmt.Sprint("room", n)
		o.CreateChannel(slacktest.Channel{Name: name})
		for range 5 {
			root, _ := o.Mention(slacktest.Said{Channel: name, By: "ada", Text: "fix it"})
			o.Post(slacktest.Said{Channel: name, By: "bob", Thread: root, Text: "hm"})
			o.Post(slacktest.Said{Channel: name, By: "bob", Thread: root, Text: "hm"})
			o.Mention(slacktest.Said{Channel: name, By: "ada", Thread: root, Text: "and the docs"})
			want += 2
		}
	}
	o.recovers(want, time.Hour)
}

// TestRecoverAgain: a look soon after another costs a call for each channel, and
// one for each thread in which somebody wrote.
func TestRecoverAgain(t *testing.T) {
	t.Parallel()
	o := newOutage(t, slacktest.NoLimits())
	old := o.begun("eng")
	o.works("eng", old, func(*session.State, *session.Voice) {})
	o.wait(4 * 24 * time.Hour)
	var roots []string
	for range 10 {
		root := o.begun("eng")
		o.Post(slacktest.Said{Channel: "eng", By: "bob", Thread: root, Text: "hm"})
		roots = append(roots, root)
	}
	replies := func(look func()) int {
		before := o.Calls("conversations.replies")
		look()
		return o.Calls("conversations.replies") - before
	}
	if n := replies(func() { o.recovers(0, recoverable) }); n != 11 {
		t.Errorf("the first look read %d threads", n)
	}
	if n := replies(func() { o.recovers(0, recoverable) }); n != 0 {
		t.Errorf("the second look read %d threads", n)
	}
	o.Mention(slacktest.Said{Channel: "eng", By: "ada", Thread: roots[3], Text: "and the docs"})
	if n := replies(func() { o.recovers(1, 2*time.Hour) }); n != 1 {
		t.Errorf("with one new reply %d threads were read", n)
	}
	o.wait(time.Hour)
	o.Mention(slacktest.Said{Channel: "eng", By: "ada", Thread: old, Text: "and the docs"})
	if n := replies(func() { o.recovers(1, time.Minute) }); n != 1 {
		t.Errorf("after a gap %d threads were read", n)
	}
	o.works("eng", old, func(s *session.State, _ *session.Voice) { s.Turn = &session.Turn{N: 1, Stage: session.Running} })
	o.Mention(slacktest.Said{Channel: "eng", By: "ada", Thread: old, Text: "stop"})
	if n := replies(func() { o.recovers(1, 2*time.Hour) }); n != 1 {
		t.Errorf("while it is at work %d threads were read", n)
	}
}

// TestRecoverAfterRestart: a gateway that starts goes on where one of them came
// to the end. What was broken off is looked through again.
func TestRecoverAfterRestart(t *testing.T) {
	t.Parallel()
	o := newOutage(t, slacktest.NoLimits())
	for range 10 {
		o.Post(slacktest.Said{Channel: "eng", By: "bob", Thread: o.begun("eng"), Text: "hm"})
	}
	o.wait(24 * time.Hour)
	o.Inject(slacktest.Failing("conversations.replies", "internal_error"))
	if _, err := o.recovery.Recover(t.Context(), time.Time{}); err == nil {
		t.Fatal("no error")
	}
	for look, want := range []int{10, 0} {
		before := o.Calls("conversations.replies")
		o.recovery = o.gateway()
		o.recovers(0, recoverable)
		if n := o.Calls("conversations.replies") - before; n != want {
			t.Errorf("look %d read %d threads", look, n)
		}
	}
	o.wait(overlook)
	o.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix that"})
	o.recovery = o.gateway()
	o.recovers(1, recoverable)
}

// TestRecoverManyThreads: all under messages of late, and of the older ones
// those in which something happened last.
func TestRecoverManyThreads(t *testing.T) {
	t.Parallel()
	o := newOutage(t, slacktest.NoLimits())
	var roots []string
	for range 300 {
		roots = append(roots, o.begun("eng"))
	}
	for _, root := range roots {
		o.Mention(slacktest.Said{Channel: "eng", By: "ada", Thread: root, Text: "and the docs"})
	}
	o.recovers(300, time.Hour)
	o.wait(4 * 24 * time.Hour)
	for _, root := range roots {
		o.Mention(slacktest.Said{Channel: "eng", By: "ada", Thread: root, Text: "and the tests"})
	}
	o.recovery = o.gateway()
	got := o.recovers(maxAwake, time.Hour)
	if oldest := got[len(got)-1].Event.Request.Thread.Key; !strings.HasSuffix(oldest, roots[100]) {
		t.Errorf("the last that was read began with %s, not %s", oldest, roots[100])
	}
}

// TestRecoverWithinLimits: however much there is to be read, Slack has to refuse
// nothing, and there is an end to it.
func TestRecoverWithinLimits(t *testing.T) {
	t.Parallel()
	o := newOutage(t, slacktest.Limits{})
	const threads = 300
	for range threads {
		o.Mention(slacktest.Said{Channel: "eng", By: "ada", Thread: o.begun("eng"), Text: "and the docs"})
	}
	clock := time.Now()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		w := &wire{
			server: o.Server, begun: begun, next: &http.Transport{DisableKeepAlives: true},
			done: map[string]int{}, over: map[string]int{},
		}
		r := o.gatewayOver(w, &memory.Quota{})
		r.now = func() time.Time { return clock.Add(time.Since(begun)) }
		found, err := r.Recover(t.Context(), clock.Add(-time.Hour))
		if err != nil || found != threads || total(w.over) > 0 {
			t.Errorf("found %d, refused %v, %v", found, w.over, err)
		}
		if took := time.Since(begun); took < 5*time.Minute || took > 15*time.Minute {
			t.Errorf("it took %s", took)
		} else {
			t.Logf("%d threads in %s with %d requests", threads, took, total(w.done))
		}
	})
}

// TestRecoverThroughRefusals: Slack being short of time costs time.
func TestRecoverThroughRefusals(t *testing.T) {
	t.Parallel()
	o := newOutage(t, slacktest.NoLimits())
	root, _ := o.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix it"})
	o.Mention(slacktest.Said{Channel: "eng", By: "ada", Thread: root, Text: "and the docs"})
	for _, method := range []string{"users.conversations", "conversations.history", "conversations.replies"} {
		o.Inject(slacktest.Limited(method, time.Second))
	}
	o.recovers(2, time.Hour)
}

// TestRecoverBrokenOff: what a look did not come to, the next one finds.
func TestRecoverBrokenOff(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		breaks, mends func(*outage)
		before        int
	}{
		"inbox away": {
			func(o *outage) { o.err = errors.New("away") }, func(o *outage) { o.err = nil }, 0,
		},
		"slack away": {
			func(o *outage) { o.Inject(slacktest.Fault{On: "conversations.replies", Status: 503, Times: -1}) }, func(o *outage) { o.ClearFaults() }, 1,
		},
		"slack broken": {
			func(o *outage) { o.Inject(slacktest.Failing("conversations.replies", "internal_error")) }, func(*outage) {}, 1,
		},
		"history broken": {
			func(o *outage) { o.Inject(slacktest.Failing("conversations.history", "fatal_error")) }, func(*outage) {}, 0,
		},
		"list broken": {
			func(o *outage) { o.Inject(slacktest.Fault{On: "users.conversations", Lost: true}) }, func(*outage) {}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOutage(t, slacktest.NoLimits())
			root, _ := o.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix it"})
			o.Mention(slacktest.Said{Channel: "eng", By: "ada", Thread: root, Text: "and the docs"})
			tt.breaks(o)
			found, err := o.recovery.Recover(t.Context(), time.Now().Add(-time.Hour))
			if err == nil || found != tt.before {
				t.Fatalf("found %d, %v", found, err)
			}
			tt.mends(o)
			o.recovers(2-tt.before, time.Hour)
		})
	}
}

// TestRecoverWithoutAccess: when the access was taken back there is an end to
// it, and no secret in what it says.
func TestRecoverWithoutAccess(t *testing.T) {
	t.Parallel()
	o := newOutage(t, slacktest.NoLimits())
	o.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix it"})
	if _, err := o.recovery.app.self(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.Uninstall()
	found, err := o.recovery.Recover(t.Context(), time.Now().Add(-time.Hour))
	if found != 0 || err == nil || !strings.Contains(err.Error(), "account_inactive") || strings.Contains(err.Error(), o.BotToken()) {
		t.Errorf("found %d, %v", found, err)
	}
	if n := o.Calls("users.conversations"); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestRecoverWithFewScopes: what may not be read is left out, and that is said
// once. Direct messages are found all the same where somebody was answered.
func TestRecoverWithFewScopes(t *testing.T) {
	t.Parallel()
	o := newOutage(t, slacktest.NoLimits())
	o.CreateChannel(slacktest.Channel{Name: "secret", Private: true})
	o.SetScopes("app_mentions:read", "chat:write", "channels:read", "groups:read", "channels:history", "im:history", "users:read")
	_, ds := o.DM("ada", "fix it")
	o.takes(ds)
	o.DM("ada", "fix that")
	o.DM("bob", "nobody knows of this")
	o.Mention(slacktest.Said{Channel: "secret", By: "ada", Text: "fix it"})
	o.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix all"})
	if got := texts(o.recovers(2, time.Hour)); !slices.Contains(got, "instruct fix that") || !slices.Contains(got, "instruct fix all") {
		t.Errorf("took %q", got)
	}
	o.recovers(0, time.Hour)
	if n := strings.Count(o.log.String(), "no scope"); n != 3 { // im, mpim, and the history of private channels
		t.Errorf("logged\n%s", &o.log)
	}
}

// TestRecoverBySeveral: gateways that look at once take each request once.
func TestRecoverBySeveral(t *testing.T) {
	t.Parallel()
	o := newOutage(t, slacktest.NoLimits())
	for range 20 {
		o.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "fix it"})
	}
	other := o.gateway()
	results := make(chan int, 4)
	for _, r := range []*Recovery{o.recovery, other, o.recovery, other} {
		go func() {
			found, err := r.Recover(t.Context(), time.Now().Add(-time.Hour))
			if err != nil {
				t.Error(err)
			}
			results <- found
		}()
	}
	total := 0
	for range 4 {
		total += <-results
	}
	if total != 20 || len(o.taken) != 20 {
		t.Errorf("found %d, took %d", total, len(o.taken))
	}
}
