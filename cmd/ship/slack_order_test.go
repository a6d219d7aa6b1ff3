package main

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ship/integrations/slack/slacktest"
	"ship/session"
)

// TestSlackTwins: a mention is told as a mention and as a message, each of them
// again and again and all at the same time. It is carried out once.
func TestSlackTwins(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, socket bool) {
		r := newSlackRig(t, slackOptions{socket: socket})
		r.start()
		root, ds := r.slack.Mention(slacktest.Said{Channel: rigChannel, By: "ada", Text: "turn them"})
		if len(ds) != 2 {
			t.Fatalf("a mention is told %d times", len(ds))
		}
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				if !r.post(ds[i%2].Retry(i/2, "http_timeout")) {
					t.Error("a delivery was not accepted")
				}
			})
		}
		wg.Wait()
		r.settled(root, 1)
		before := r.world()
		r.tell(ds[1].Retry(1, "http_timeout"), ds[0].Retry(2, "http_timeout"))
		if !r.quiet() || r.seq() != 1 || r.world() != before {
			t.Errorf("the redelivery was taken for another request: %d events\n%s", r.seq(), r.world())
		}
		r.work(t, 1)
		r.stop()
	})
}

// TestSlackAtTheEnd: what is said in the very moment in which a turn ends is
// carried out, by it or by another.
func TestSlackAtTheEnd(t *testing.T) {
	t.Parallel()
	r := newSlackRig(t, slackOptions{rigOptions: rigOptions{more: "sandbox: {max: 8}\n"}})
	r.start()
	const threads = 4
	var roots []string
	for range threads {
		roots = append(roots, r.mention("turn them"))
	}
	var wg sync.WaitGroup
	for i, root := range roots {
		wg.Go(func() {
			for !r.publishing(root) {
				time.Sleep(20 * time.Millisecond)
			}
			time.Sleep(time.Duration(i) * 100 * time.Millisecond)
			r.reply(root, "and oil them")
		})
	}
	wg.Wait()
	for _, root := range roots {
		r.settled(root, 2)
	}
	for _, pr := range r.host.PullRequests(rigRepo) {
		if text, _ := r.host.File(rigRepo, pr.Head, "WORK.md"); text != "turn them\nand oil them" {
			t.Errorf("%s holds %q", pr.Head, text)
		}
	}
	r.stop()
}

// publishing: the agent is done in a thread.
func (r *slackRig) publishing(root string) bool {
	t := r.state(root).Turn
	return t != nil && t.Stage != session.Preparing && t.Stage != session.Running
}

// TestSlackShuffled: somebody asks, adds to it and says stop, and the deliveries
// come in any order, twice. Stop was last, so nothing runs on.
func TestSlackShuffled(t *testing.T) {
	t.Parallel()
	r := newSlackRig(t, slackOptions{})
	r.start()
	for _, order := range [][3]int{{2, 0, 1}, {1, 2, 0}} {
		var all [3][]slacktest.Delivery
		root, ds := r.slack.Mention(slacktest.Said{Channel: rigChannel, By: "ada", Text: "SLOWLY turn them"})
		all[0] = ds
		for i, text := range []string{"and oil them", "stop"} {
			_, all[i+1] = r.slack.Mention(slacktest.Said{Channel: rigChannel, By: "ada", Text: text, Thread: root})
		}
		for _, i := range order {
			r.tell(all[i]...)
			r.tell(all[i][1], all[i][0])
		}
		r.await("the thread to come to rest", patience, func() bool { return len(r.said(root)) > 0 && r.quiet() })
		r.checkSlack()
	}
	if n := len(r.host.PullRequests(rigRepo)); n > 1 {
		t.Errorf("%d pull requests", n)
	}
	r.stop()
}

// frozenPair is two workers, the first of which is frozen when it posts the
// message that match tells of, which reaches Slack only when it is let go.
func (r *slackRig) frozenPair(words string, match func(session.State) bool) (b *slackRig, root string, arrive func()) {
	r.t.Helper()
	var first atomic.Bool
	sent, held, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r.slack.Inject(slacktest.Fault{On: "chat.postMessage", Times: -1, Do: func(*http.Request) {
		if all := r.states(); len(all) == 1 && match(all[0]) && first.CompareAndSwap(false, true) {
			defer close(done)
			close(sent)
			<-held
		}
	}})
	b = &slackRig{rig: r.twin(), slack: r.slack}
	r.start()
	root = r.mention(words)
	select {
	case <-sent:
	case <-time.After(time.Minute):
		r.t.Fatalf("nothing was sent; ship said:\n%s", r.log)
	}
	r.freeze()
	b.start()
	return b, root, func() { close(held); <-done }
}

// TestSlackFrozen: an owner stands still with a message on its way to Slack, and
// wakes when another has said the same. For a while it is there twice, and then
// once: the one that people read first.
func TestSlackFrozen(t *testing.T) {
	if testing.Short() {
		t.Skip("the sweep comes after a minute and a half")
	}
	t.Parallel()
	for name, match := range map[string]func(session.State) bool{
		"in the answer":      func(s session.State) bool { return s.Turn != nil && s.Turn.Stage == session.Ended },
		"in the first words": func(s session.State) bool { return s.Turns == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newSlackRig(t, slackOptions{})
			b, root, arrive := a.frozenPair("PLAN TAKING 2s", match)
			b.settled(root, 1)
			before := b.ours(root)
			time.Sleep(1500 * time.Millisecond) // Slack takes one message in a second
			arrive()
			a.await("the twin", patience, func() bool { return len(a.ours(root)) == len(before)+1 })
			a.thaw()
			a.await("the first to notice", patience, func() bool { return strings.Contains(a.log.String(), "lease lost") })
			b.await("the sweep", patience, func() bool { return b.told() && b.quiet() && len(b.ours(root)) == len(before) })
			b.settled(root, 1)
			for i, m := range b.ours(root) {
				if m.TS != before[i].TS {
					t.Errorf("another message is left than what people read first: %q", m.Plain)
				}
			}
			b.calm()
			b.stop()
			a.stop()
		})
	}
}
