package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/integrations/slack/slacktest"
)

// TestSlackSweep is TestSweep for work that is asked for in Slack. It is killed
// at what Slack gets to see, and anywhere with SHIP_TEST_SWEEP=full.
func TestSlackSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	t.Parallel()
	want, points := slackCleanRun(t)
	if len(points) < 30 {
		t.Fatalf("a turn passed only %d points: %v", len(points), points)
	}
	sweep(t, chosen(points, "effect.acknowledge", "effect.begin", "effect.answer"), func(t *testing.T, n int) { slackKilledRun(t, n, want) })
}

func slackCleanRun(t *testing.T) (world string, points []string) {
	t.Helper()
	r := newSlackRig(t, slackOptions{rigOptions: sweepOptions()})
	trace := filepath.Join(r.dir, "points")
	r.start("SHIP_TEST_POINTS=" + trace)
	root := r.mention("fix the widgets")
	r.settled(root, 1)
	r.work(t, 1)
	world = r.world()
	r.stop()
	return world, r.points(trace)
}

func slackKilledRun(t *testing.T, n int, want string) {
	r := newSlackRig(t, slackOptions{rigOptions: sweepOptions()})
	r.start(fmt.Sprintf("SHIP_TEST_KILL_AT=%d", n))
	root, ds := r.slack.Mention(slacktest.Said{Channel: rigChannel, By: "ada", Text: "fix the widgets"})
	accepted := r.post(ds[0]) && r.post(ds[1])
	if r.died(func() bool { return accepted && len(r.said(root)) == 1 && r.quiet() }) {
		r.start()
	}
	if !accepted {
		r.tell(ds...) // Slack tries again
	}
	r.settled(root, 1)
	r.work(t, 1)
	if diff := cmp.Diff(want, r.world()); diff != "" {
		t.Errorf("the world (-clean +killed):\n%s", diff)
	}
	r.stop()
}

// TestSlackCommandSweep: a slash command opens one thread and leads to one turn,
// although ship dies while it opens the one or hands the request over to the
// other, and anywhere with SHIP_TEST_SWEEP=full.
func TestSlackCommandSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	t.Parallel()
	play := func(t *testing.T, env string) (*slackTold, string) {
		r := &slackTold{slackRig: newSlackRig(t, slackOptions{})}
		r.start(env)
		r.accepted(r.slack.Slash(slacktest.Command{Channel: rigChannel, By: "ada", Text: "turn them"}))
		r.until("the turn", func() bool { return r.opened() != "" && r.turns() == 1 && r.quiet() })
		r.settled(r.opened(), 2) // the message that begins the thread is one
		r.work(t, 1)
		world := r.world()
		r.stop()
		return r, world
	}
	trace := filepath.Join(t.TempDir(), "points")
	clean, want := play(t, "SHIP_TEST_POINTS="+trace)
	sweep(t, chosen(clean.points(trace), "effect.admit"), func(t *testing.T, n int) {
		if _, world := play(t, fmt.Sprintf("SHIP_TEST_KILL_AT=%d", n)); world != want {
			t.Errorf("the world (-clean +killed):\n%s", cmp.Diff(want, world))
		}
	})
}

// TestSlackStorySweep plays a longer conversation: a question that is answered
// with a button, a reply that steers, one that goes on after the end, and a stop
// in its middle. It is killed at the question, and anywhere with
// SHIP_TEST_SWEEP=full.
func TestSlackStorySweep(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	t.Parallel()
	clean := &slackTold{slackRig: newSlackRig(t, slackOptions{unrouted: true})}
	trace := filepath.Join(clean.dir, "points")
	clean.start("SHIP_TEST_POINTS=" + trace)
	clean.play()
	want := clean.world()
	clean.stop()
	sweep(t, chosen(clean.points(trace), "effect.ask"), func(t *testing.T, n int) {
		r := &slackTold{slackRig: newSlackRig(t, slackOptions{unrouted: true})}
		r.start(fmt.Sprintf("SHIP_TEST_KILL_AT=%d", n))
		r.play()
		if diff := cmp.Diff(want, r.world()); diff != "" {
			t.Errorf("the world (-clean +killed):\n%s", diff)
		}
		r.stop()
	})
}

// slackTold is a rig whose ship is started again when it dies in the middle of a
// story.
type slackTold struct{ *slackRig }

func (r *slackTold) play() {
	r.t.Helper()
	root, ds := r.slack.Mention(slacktest.Said{Channel: rigChannel, By: "ada", Text: "turn them"})
	r.accepted(ds...)
	r.until("the question", func() bool { return len(r.said(root)) == 1 && r.quiet() })
	r.pressed(r.said(root)[0].TS, rigRepo)
	r.until("the turn", func() bool { return r.turns() == 1 })
	_, ds = r.slack.Mention(slacktest.Said{Channel: rigChannel, By: "ada", Text: "and oil them", Thread: root})
	r.accepted(ds...)
	r.until("the first answer", func() bool { return len(r.said(root)) == 2 && r.quiet() })
	_, ds = r.slack.Mention(slacktest.Said{Channel: rigChannel, By: "ada", Text: "SLOWLY paint them", Thread: root})
	r.accepted(ds...)
	r.until("the agent to paint", func() bool { return r.atWork() && len(r.living(root)) == 2 && pressable(r.living(root)[1]) })
	r.pressed(r.newest(root), "Stop")
	r.until("the second answer", func() bool { return len(r.said(root)) == 3 && r.quiet() })
	r.checkSlack()
}

// pressed has ada press a button, until that is taken.
func (r *slackTold) pressed(ts, button string) {
	r.t.Helper()
	d, err := r.slack.Press(r.at(ts), button)
	if err != nil {
		r.t.Fatalf("%v; the world:\n%s", err, r.world())
	}
	r.accepted(d)
}

// accepted delivers until each is taken, twice.
func (r *slackTold) accepted(ds ...slacktest.Delivery) {
	r.t.Helper()
	for range 2 {
		for _, d := range ds {
			r.until("a delivery to be accepted", func() bool { return r.post(d) })
		}
	}
}

// until waits for the world, and starts ship again if it is gone.
func (r *slackTold) until(what string, done func() bool) {
	r.t.Helper()
	r.await(what, patience, func() bool {
		select {
		case <-r.exited:
			r.start()
		default:
		}
		return done()
	})
}
