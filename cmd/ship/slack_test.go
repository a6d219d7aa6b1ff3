package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"ship/integrations/slack/slacktest"
	"ship/session"
)

// bothWays runs a story over HTTP and over Socket Mode.
func bothWays(t *testing.T, story func(t *testing.T, socket bool)) {
	t.Helper()
	for name, socket := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, socket)
		})
	}
}

// TestSlackConversation: a mention becomes a draft pull request, after a
// question that is answered with a button. What is said to ship while it works
// steers the turn, what people say to each other does not, and what is asked
// after the end goes on with the same branch and pull request, also from there.
func TestSlackConversation(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, socket bool) {
		r := newSlackRig(t, slackOptions{unrouted: true, socket: socket})
		r.start()
		root := r.mention("TAKING 12s to turn them")
		r.await("the question", patience, func() bool { return len(r.said(root)) == 1 })
		r.checkSeen(t, root)
		asked := r.settled(root, 1)
		if !offers(asked, rigRepo) || !offers(asked, "acme/gadgets") {
			t.Fatalf("the question offers %v", asked.Controls)
		}
		r.press(asked.TS, rigRepo)
		r.working(root)
		r.reply(root, "and oil them")
		_, ds := r.slack.Post(slacktest.Said{Channel: rigChannel, By: "grace", Thread: root, Text: "nice weather"})
		r.tell(ds...)
		done := r.settled(root, 2)
		if !strings.Contains(done.Plain, "Did: ") || !offers(done, "Open PR") {
			t.Errorf("the end is told as %q %v", done.Plain, done.Controls)
		}
		pr := r.work(t, 3)

		r.reply(root, "paint them too")
		r.settled(root, 3)
		r.work(t, 4)
		if n := len(r.living(root)); n != 2 {
			t.Errorf("two turns have %d living messages", n)
		}

		r.deliver(r.says(pr, "/ship polish them as well"))
		r.settled(root, 4)
		r.work(t, 5)
		world := r.slack.World()
		if strings.Contains(world, "polish") || strings.Contains(r.state(root).Turn.Requests[0].Text, "weather") {
			t.Errorf("what was said elsewhere is repeated in Slack:\n%s", world)
		}
		r.stop()
	})
}

// checkSeen: who asked saw soon that it was seen; people wait for three seconds.
func (r *slackRig) checkSeen(t *testing.T, root string) {
	t.Helper()
	asked, living := r.slack.Message(rigChannel, root), r.living(root)
	if !slices.Contains(asked.Reactions, ":eyes: ship") || len(living) != 1 {
		t.Fatalf("reactions %v, %d living messages:\n%s", asked.Reactions, len(living), r.slack.World())
	}
	took := living[0].Created.Sub(asked.Created)
	if t.Logf("the first sign of life took %s", took); took > crowded*3*time.Second {
		t.Errorf("that is too long for whoever waits")
	}
}

// TestSlackStop: what runs can be stopped in three ways, and taken up again in
// two.
func TestSlackStop(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(r *slackRig, root string){
		"button": func(r *slackRig, root string) { r.press(r.newest(root), "Stop") },
		"word":   func(r *slackRig, root string) { r.reply(root, "stop") },
		"native": func(r *slackRig, root string) {
			d, err := r.slack.StopSession(r.at(root))
			if err != nil {
				r.t.Fatal(err)
			}
			r.tell(d)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSlackRig(t, slackOptions{socket: name == "native"})
			r.start()
			root := r.mention("SLOWLY turn them")
			r.working(root)
			stop(r, root)
			r.settled(root, 1)
			r.checkStopped(t, root)
			if name == "button" {
				r.press(r.newest(root), "Retry")
			} else {
				r.reply(root, "retry")
			}
			r.working(root)
			stop(r, root)
			r.settled(root, 2)
			r.checkStopped(t, root)
			r.stop()
		})
	}
}

// newest is the living message of the newest turn.
func (r *slackRig) newest(root string) (ts string) {
	r.t.Helper()
	all := r.living(root)
	if len(all) == 0 {
		r.t.Fatalf("there is no living message:\n%s", r.slack.World())
	}
	return all[len(all)-1].TS
}

func (r *slackRig) checkStopped(t *testing.T, root string) {
	t.Helper()
	m := r.slack.Message(rigChannel, r.newest(root))
	if !strings.HasPrefix(m.Plain, "*⏹️") || !offers(m, "Retry") {
		t.Errorf("a turn that was stopped shows %q %v", m.Plain, m.Controls)
	}
	if s := r.slack.Session(rigChannel, root).Status; s != "active" {
		t.Errorf("the thread is %q", s)
	}
}

// TestSlackPlaces: work begins by a slash command, which opens a thread; by the
// shortcut on somebody else's message; and in a direct message.
func TestSlackPlaces(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, socket bool) {
		r := newSlackRig(t, slackOptions{socket: socket})
		r.start()
		r.tell(r.slack.Slash(slacktest.Command{Channel: rigChannel, By: "ada", Text: "turn them"}))
		r.await("the turn of the command", patience, func() bool { return r.opened() != "" && r.turns() == 1 && r.quiet() })
		root := r.opened()
		r.settled(root, 2) // the root is one
		if w := r.slack.Whispers("ada"); len(w) != 1 || !strings.Contains(w[0].Plain, "thread") {
			t.Errorf("the command is answered with %+v", w)
		}

		ts, _ := r.slack.Post(slacktest.Said{Channel: rigChannel, By: "grace", Text: "the widgets squeak"})
		r.tell(r.slack.Shortcut(r.at(ts), "ship_message"))
		r.await("the turn of the shortcut", patience, func() bool { return r.turns() == 2 })
		r.settled(ts, 1)

		_, ds := r.slack.DM("ada", "paint them")
		r.tell(ds...)
		r.await("the turn of the direct message", patience, func() bool { return r.turns() == 3 && r.quiet() })
		all := r.slack.Messages("@ada")
		if last := all[len(all)-1]; last.By != "ship" || !strings.Contains(last.Plain, "Did: paint them") {
			t.Errorf("the end is told as %q", last.Plain)
		}
		r.settled(root, 2)
		if n := len(r.host.PullRequests(rigRepo)); n != 3 {
			t.Errorf("%d pull requests", n)
		}
		r.stop()
	})
}

// TestSlackStranger: who is of another company is refused politely, and so is
// who is not known on the code host; nothing runs for either.
func TestSlackStranger(t *testing.T) {
	t.Parallel()
	r := newSlackRig(t, slackOptions{})
	r.slack.AddPerson(slacktest.Person{Handle: "eve", Team: "T0999999999", Email: "ada@acme.example"})
	r.start()
	for _, by := range []string{"eve", "mallory"} {
		root, ds := r.slack.Mention(slacktest.Said{Channel: rigChannel, By: by, Text: "turn them"})
		r.tell(ds...)
		if no := r.settled(root, 1); len(no.Controls) > 0 || !strings.Contains(no.Plain, "orry") {
			t.Errorf("%s is told %q %v", by, no.Plain, no.Controls)
		}
	}
	if r.turns() > 0 {
		t.Error("a turn has begun")
	}
	r.stop()
}

// TestSlackEdit: who changes the words while ship waits for an answer has the
// new ones carried out.
func TestSlackEdit(t *testing.T) {
	t.Parallel()
	r := newSlackRig(t, slackOptions{unrouted: true})
	r.start()
	root := r.mention("trun them")
	asked := r.settled(root, 1)
	r.tell(r.slack.Edit(r.at(root), "@ship turn them")...)
	r.press(asked.TS, rigRepo)
	r.settled(root, 2)
	if work, _ := r.host.File(rigRepo, r.host.PullRequests(rigRepo)[0].Head, "WORK.md"); work != "turn them" {
		t.Errorf("the work is %q", work)
	}
	r.stop()
}

// TestSlackRemembered: what was chosen once for a channel is not asked again.
func TestSlackRemembered(t *testing.T) {
	t.Parallel()
	r := newSlackRig(t, slackOptions{unrouted: true, socket: true})
	r.start()
	root := r.mention("turn them")
	r.press(r.settled(root, 1).TS, rigRepo)
	r.await("the turn to end", patience, func() bool { return r.turns() == 1 && r.quiet() })
	pressed := false
	for _, m := range r.ours(root) {
		if offers(m, remember) {
			r.press(m.TS, remember)
			pressed = true
		}
	}
	if !pressed {
		t.Fatalf("nobody can say that it be remembered:\n%s", r.slack.World())
	}
	r.await("the press to be seen to", patience, func() bool { return len(r.said(root)) == 3 && r.quiet() })
	for _, m := range r.ours(root) {
		if offers(m, remember) {
			t.Errorf("it can be remembered again: %q", m.Plain)
		}
	}
	again := r.mention("oil them")
	r.settled(again, 1)
	if n := len(r.host.PullRequests(rigRepo)); n != 2 {
		t.Errorf("%d pull requests:\n%s", n, r.world())
	}
	r.stop()
}

const remember = "Remember for this channel"

// TestSlackUninstalled: when the workspace removes ship, what runs ends, and what
// was done is kept.
func TestSlackUninstalled(t *testing.T) {
	t.Parallel()
	r := newSlackRig(t, slackOptions{})
	r.start()
	root := r.mention("SLOWLY turn them")
	r.working(root)
	r.tell(r.slack.Uninstall()...)
	r.await("the turn to end", patience, r.quiet)
	s := r.state(root)
	if s.Turn == nil || s.Turn.Stage != session.Ended || slices.ContainsFunc(s.Threads, func(v session.Voice) bool { return v.Talks }) {
		t.Errorf("the session goes on: %+v", s)
	}
	r.stop()
}

// TestSlackDoor: a ship that fetches what happens has no door for it.
func TestSlackDoor(t *testing.T) {
	t.Parallel()
	r := newSlackRig(t, slackOptions{socket: true})
	r.start()
	resp, err := http.Post("http://"+r.addr+"/webhooks/slack", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("a webhook is answered with %d", resp.StatusCode)
	}
	r.mention("help")
	r.await("the envelopes to be counted", patience, func() bool { return strings.Contains(r.metrics(), `platform="slack"`) })
	r.stop()
}

// metrics are what ship tells of itself.
func (r *rig) metrics() string {
	r.t.Helper()
	resp, err := http.Get("http://" + r.addr + "/metrics")
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	var b strings.Builder
	if err := resp.Write(&b); err != nil {
		r.t.Fatal(err)
	}
	return b.String()
}
