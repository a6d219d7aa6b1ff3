package slack

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ship/integrations/slack/slacktest"
	"ship/session"
)

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
	// Nothing is known of these, as if Redis had been emptied.
	seen, _ := o.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "acknowledged"})
	o.React(slacktest.Change{Channel: "eng", TS: seen, By: "ship"}, eyes)
	begun, _ := o.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "answered"})
	o.Post(slacktest.Said{Channel: "eng", By: "ship", Thread: begun, Text: "on it"})
	looked, _ := o.Mention(slacktest.Said{Channel: "eng", By: "ada", Text: "seen by a person"})
	o.React(slacktest.Change{Channel: "eng", TS: looked, By: "bob"}, eyes)
	o.recovers(1, time.Hour)
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
