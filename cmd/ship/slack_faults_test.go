package main

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ship/integrations/slack/slacktest"
	"ship/session"
)

// slackMethods are all that slackTour calls.
func slackMethods() []string {
	return []string{
		"auth.test", "users.info", "conversations.replies", "chat.postMessage", "chat.update", "reactions.add", "agents.sessions.setStatus",
	}
}

// asked is how often Slack was asked for anything.
func (r *slackRig) asked() (n int) {
	for _, name := range append(slackMethods(), "chat.delete", "conversations.info", "conversations.history", "usergroups.users.list") {
		n += r.slack.Calls(name)
	}
	return n
}

// calm demands that Slack is asked for nothing any more.
func (r *slackRig) calm() {
	r.t.Helper()
	before := r.asked()
	time.Sleep(3 * time.Second) // what is not to happen has no signal
	if n := r.asked() - before; n > 0 {
		r.t.Errorf("slack is asked for %d things more", n)
	}
}

// slackTour goes through all that there is: a question of ours, a turn with a
// plan, one that ends with the agent's question, and its answer.
func slackTour(t *testing.T, faults []slacktest.Fault) string {
	t.Helper()
	r := newSlackRig(t, slackOptions{unrouted: true})
	for _, f := range faults {
		r.slack.Inject(f)
	}
	r.start()
	root := r.mention("PLAN to turn them")
	r.press(r.settled(root, 1).TS, rigRepo)
	r.settled(root, 2)
	r.reply(root, "paint them ASK")
	r.press(r.settled(root, 3).TS, "Blue")
	r.settled(root, 4)
	for _, f := range faults {
		if n := r.slack.Calls(f.On); n <= f.Skip {
			t.Errorf("%s was asked for %d times, so nothing struck it", f.On, n)
		}
	}
	if n := r.asked(); n > 150 {
		t.Errorf("slack was asked for %d things", n)
	}
	r.work(t, 3)
	r.calm()
	r.stop()
	return anyOrder(r.world())
}

// anyOrder is a world in which messages of ours that follow on one another are
// sorted. The one that changes is posted after the question if it failed before.
func anyOrder(world string) string {
	var out, run []string
	flush := func() {
		slices.Sort(run)
		out, run = append(out, run...), nil
	}
	for line := range strings.Lines(world) {
		switch {
		case line == "    ship\n":
			run = append(run, line)
		case len(run) > 0 && strings.HasPrefix(line, "    |"):
			run[len(run)-1] += line
		default:
			flush()
			out = append(out, line)
		}
	}
	flush()
	return strings.Join(out, "")
}

// TestFaultsOfSlack: every method fails in each way that there is, and the world
// is as if nothing had.
func TestFaultsOfSlack(t *testing.T) {
	t.Parallel()
	every := func(kinds ...slacktest.Fault) (all []slacktest.Fault) {
		for i, name := range slackMethods() {
			f := kinds[i%len(kinds)]
			f.On = name
			all = append(all, f)
		}
		return all
	}
	tours(t, slackTour, map[string][]slacktest.Fault{
		"clean":       nil,
		"answer lost": every(slacktest.Fault{Lost: true}),
		"trouble": every(
			slacktest.Fault{Status: http.StatusBadGateway, Body: "<html>Bad Gateway</html>"},
			slacktest.Failing("", "internal_error"),
		),
		"rate": slices.DeleteFunc(every(slacktest.Limited("", time.Second)), func(f slacktest.Fault) bool {
			return f.On == "reactions.add" || f.On == "agents.sessions.setStatus" // which make way for more important things
		}),
	})
}

// TestSlackHangs: what is never answered is given up and repeated, and a stop
// does not wait for progress that is.
func TestSlackHangs(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"chat.postMessage", "chat.update", "users.info", "reactions.add", "agents.sessions.setStatus"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := newSlackRig(t, slackOptions{})
			r.slack.Inject(slacktest.Fault{On: what, Hang: true})
			r.start()
			root := r.mention("PLAN SLOWLY")
			r.await("the agent to work", patience, r.atWork)
			r.reply(root, "stop")
			r.settled(root, 1)
			r.work(t, 1)
			r.stop()
		})
	}
}

// TestSlackAway: Slack goes in mid-turn, and is told the end when it is back. It
// is not asked all the time meanwhile, and a stop needs nothing of it.
func TestSlackAway(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]string{"ends": "PLAN TAKING 5s", "is stopped": "PLAN SLOWLY"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSlackRig(t, slackOptions{socket: true})
			r.start()
			root := r.mention(words)
			r.working(root)
			r.slack.Inject(slacktest.Fault{Status: http.StatusServiceUnavailable, Times: -1})
			before := r.asked()
			if words == "PLAN SLOWLY" {
				r.reply(root, "stop")
			}
			r.await("the work to end", patience, func() bool { return r.state(root).Turn.Stage == session.Ended })
			time.Sleep(6 * time.Second)
			if n := r.asked() - before; n < 1 || n > 30 {
				t.Errorf("slack was asked for %d things while it was away", n)
			}
			r.slack.ClearFaults()
			r.settled(root, 1)
			r.reply(root, "oil them")
			r.settled(root, 2)
			r.calm()
			r.stop()
		})
	}
}

// TestSlackNewToken: in mid-turn Slack does not take the token any more. Whoever
// runs ship sets another, and the end is said.
func TestSlackNewToken(t *testing.T) {
	t.Parallel()
	r := newSlackRig(t, slackOptions{})
	r.start()
	root := r.mention("TAKING 3s")
	r.working(root)
	old := r.slack.BotToken()
	r.slack.Inject(slacktest.Fault{Status: http.StatusOK, Body: `{"ok":false,"error":"invalid_auth"}`, Times: -1})
	r.await("the turn to end", patience, func() bool { return r.state(root).Turn.Stage == session.Ended })
	r.stop()
	r.slack.ClearFaults()
	r.edit(old, r.slack.Reinstall())
	r.start()
	r.settled(root, 1)
	r.work(t, 2)
	r.stop()
}

// TestSlackRedisDies in mid-turn, for longer than the owner may go on.
func TestSlackRedisDies(t *testing.T) {
	t.Parallel()
	r := newSlackRig(t, slackOptions{socket: true})
	r.start()
	root := r.mention("PLAN TAKING 30s")
	r.working(root)
	r.redis.Kill()
	_, ds := r.slack.Mention(slacktest.Said{Channel: rigChannel, By: "ada", Text: "and oil them", Thread: root})
	if r.post(ds[0]) {
		t.Error("an envelope that nobody can keep is acknowledged")
	}
	time.Sleep(12 * time.Second)
	r.redis.Restart()
	r.tell(ds...)
	r.settled(root, 1)
	r.work(t, 3)
	r.stop()
}

// TestSlackSocketsCut: Slack replaces the connections, with and without a word,
// while people speak. Nothing is lost and nothing comes twice.
func TestSlackSocketsCut(t *testing.T) {
	t.Parallel()
	r := newSlackRig(t, slackOptions{socket: true})
	r.start()
	root := r.mention("TAKING 20s turn")
	var wg sync.WaitGroup
	wg.Go(func() {
		r.slack.Disconnect("warning", time.Second)
		r.slack.Cut()
		r.slack.Disconnect("refresh_requested", 0)
	})
	r.working(root)
	r.reply(root, "oil them")
	wg.Wait()
	r.reply(root, "paint them")
	r.settled(root, 1)
	r.work(t, 4)
	r.stop()
}
