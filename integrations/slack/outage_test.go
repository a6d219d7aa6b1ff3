package slack

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

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
