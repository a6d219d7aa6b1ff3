package slack

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ship/integrations/slack/slacktest"
	"ship/session"
	"ship/session/memory"
)

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
