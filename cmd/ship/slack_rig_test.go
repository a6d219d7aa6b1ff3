package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ship/integrations/slack/slacktest"
	"ship/session"
)

// rigChannel is where ada asks.
const rigChannel = "general"

// slackRig is a rig with a workspace of Slack, in which ada, who is mona on
// GitHub, is in a channel with ship. The workspace is as strict as Slack about
// how fast an app may be.
type slackRig struct {
	*rig
	slack *slacktest.Server
	// socket: ship fetches what happens over Socket Mode.
	socket bool
}

type slackOptions struct {
	rigOptions
	socket bool
	// unrouted leaves it open which repository is meant: there are two.
	unrouted bool
	server   slacktest.Options
}

// ways are both ways in.
var ways = map[string]bool{"http": false, "socket": true}

func newSlackRig(t testing.TB, o slackOptions) *slackRig {
	t.Helper()
	o.server.Validator = slackValidator(t)
	stand, err := slacktest.New(o.server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, v := range stand.Violations() {
			t.Errorf("not as Slack describes its API: %s", v)
		}
		_ = stand.Close()
	})
	channel := stand.CreateChannel(slacktest.Channel{Name: rigChannel, Members: []string{"ada", "grace"}})
	o.more += slackSettings(stand, o)
	r := &slackRig{rig: newRig(t, o.rigOptions), slack: stand, socket: o.socket}
	if o.unrouted {
		if err := r.host.CreateRepo("acme/gadgets", map[string]string{"README.md": "# gadgets\n"}); err != nil {
			t.Fatal(err)
		}
		r.host.SetPermission("acme/gadgets", "mona", "write")
	} else {
		r.edit("CHANNEL", channel)
	}
	return r
}

// slackSettings are the sections for a workspace.
func slackSettings(stand *slacktest.Server, o slackOptions) string {
	door := "signing_secret: " + stand.SigningSecret()
	if o.socket {
		door = "app_token: " + stand.AppToken()
	}
	routes := "repositories: {channels: {CHANNEL: " + rigRepo + "}}\n"
	if o.unrouted {
		routes = ""
	}
	return fmt.Sprintf("slack:\n  bot_token: %s\n  %s\n  api_url: %s\naccess:\n  people: {ada@acme.example: mona}\n%s",
		stand.BotToken(), door, stand.APIURL(), routes)
}

// slackValidator checks blocks against Slack's own schema where that is at hand.
func slackValidator(t testing.TB) slacktest.Validator {
	t.Helper()
	v, err := descriptions.slack()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// mention has ada ask for something in the channel, and has that delivered: as a
// mention and as the message that it is.
func (r *slackRig) mention(text string) (root string) {
	r.t.Helper()
	root, ds := r.slack.Mention(slacktest.Said{Channel: rigChannel, By: "ada", Text: text})
	r.tell(ds...)
	return root
}

// reply has ada mention ship in a thread.
func (r *slackRig) reply(root, text string) (ts string) {
	r.t.Helper()
	ts, ds := r.slack.Mention(slacktest.Said{Channel: rigChannel, By: "ada", Text: text, Thread: root})
	r.tell(ds...)
	return ts
}

// press has ada press a button of a message that she sees.
func (r *slackRig) press(ts, button string) {
	r.t.Helper()
	d, err := r.slack.Press(r.at(ts), button)
	if err != nil {
		r.t.Fatalf("%v; the world:\n%s", err, r.world())
	}
	r.tell(d)
}

// at is a message of the channel, to which ada does something.
func (r *slackRig) at(ts string) slacktest.Change {
	return slacktest.Change{Channel: rigChannel, TS: ts, By: "ada"}
}

// tell delivers until each is accepted.
func (r *slackRig) tell(ds ...slacktest.Delivery) {
	r.t.Helper()
	for _, d := range ds {
		r.await("slack's delivery to be accepted", patience, func() bool { return r.post(d) })
	}
}

// post delivers once, whichever way, and tells whether it was accepted.
func (r *slackRig) post(d slacktest.Delivery) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if r.socket {
		_, err := r.slack.Send(ctx, d)
		return err == nil
	}
	a, err := r.slack.Deliver(ctx, "http://"+r.addr+"/webhooks/slack", d)
	return err == nil && a.Status == http.StatusOK
}

// said lists what ship said in a thread, the living messages left out.
func (r *slackRig) said(root string) (out []slacktest.Message) {
	return slices.DeleteFunc(r.ours(root), lives)
}

// living lists the living messages of a thread.
func (r *slackRig) living(root string) (out []slacktest.Message) {
	return slices.DeleteFunc(r.ours(root), func(m slacktest.Message) bool { return !lives(m) })
}

// opened is the message that ship began the channel's only thread of its own
// with; empty while there is none.
func (r *slackRig) opened() (root string) {
	for _, m := range r.slack.Messages(rigChannel) {
		if m.By == "ship" && m.Thread == "" {
			root = m.TS
		}
	}
	return root
}

// ours lists all that ship wrote in a thread.
func (r *slackRig) ours(root string) (out []slacktest.Message) {
	for _, m := range r.slack.Thread(rigChannel, root) {
		if m.By == "ship" {
			out = append(out, m)
		}
	}
	return out
}

// lives: it is one of the messages that change with their turn.
func lives(m slacktest.Message) bool { return strings.HasSuffix(outbox(m), "/living") }

// outbox is the id under which a message was decided.
func outbox(m slacktest.Message) string {
	var meta struct {
		Payload map[string]string `json:"event_payload"`
	}
	_ = json.Unmarshal(m.Metadata, &meta)
	return meta.Payload["outbox_id"]
}

// state is that of a thread's session.
func (r *slackRig) state(root string) session.State {
	r.t.Helper()
	all := r.states()
	i := slices.IndexFunc(all, func(s session.State) bool {
		return strings.HasSuffix(string(s.ID), "."+strings.ReplaceAll(root, ".", "-"))
	})
	if i < 0 {
		r.t.Fatalf("no session is named after %s", root)
	}
	return all[i]
}

// atWork: the agent has been given the words, and was seen to be at it.
func (r *slackRig) atWork() bool {
	return slices.ContainsFunc(r.states(), func(s session.State) bool {
		return s.Turn != nil && s.Turn.Stage == session.Running && s.Turn.Progress.Doing != ""
	})
}

// working waits until the agent is at it, and people can see that.
func (r *slackRig) working(root string) {
	r.t.Helper()
	r.await("the agent to work", patience, func() bool {
		all := r.living(root)
		return len(all) > 0 && offers(all[len(all)-1], "Stop") && r.atWork()
	})
}

// settled waits until ship has said so many things in a thread and nothing is
// left to do, then demands what holds whenever all is quiet. It returns what was
// said last.
func (r *slackRig) settled(root string, said int) (last slacktest.Message) {
	r.t.Helper()
	r.await(fmt.Sprintf("%d things to be said, and quiet", said), patience, func() bool {
		return len(r.said(root)) >= said && r.quiet()
	})
	all := r.said(root)
	if len(all) != said {
		r.t.Errorf("%d things were said, want %d:\n%s", len(all), said, r.slack.World())
	}
	r.checkSlack()
	return all[len(all)-1]
}

// checkSlack demands what holds in a workspace whenever all is quiet: nothing is
// there twice, each thread ends with what was said last, its living messages say
// that their turns are over, and only the newest of all has something to press.
func (r *slackRig) checkSlack() {
	r.t.Helper()
	seen := map[string]string{}
	for _, m := range append(r.slack.Messages(rigChannel), r.slack.Messages("@ada")...) {
		if m.By != "ship" {
			continue
		}
		id := outbox(m)
		if before, twice := seen[id]; twice || id == "" {
			r.t.Errorf("a message has the id %q, as has %q: %q", id, before, m.Plain)
		}
		seen[id] = m.Plain
	}
	for _, m := range r.slack.Messages(rigChannel) {
		if m.Thread == "" || m.Thread == m.TS {
			r.checkThread(m.TS)
		}
	}
}

func (r *slackRig) checkThread(root string) {
	r.t.Helper()
	living, said := r.living(root), r.said(root)
	if len(living) > 0 && (len(said) == 0 || said[len(said)-1].TS < living[len(living)-1].TS) {
		r.t.Errorf("a thread ends without a final message:\n%s", r.slack.World())
	}
	for i, m := range living {
		if !turnOver.MatchString(m.Plain) {
			r.t.Errorf("a turn goes on for ever: %q", m.Plain)
		}
		if i < len(living)-1 && pressable(m) {
			r.t.Errorf("an old turn has buttons: %q %v", m.Plain, m.Controls)
		}
	}
	for i, m := range said {
		if i < len(said)-1 && pressable(m) {
			r.t.Errorf("what was settled has buttons: %q %v", m.Plain, m.Controls)
		}
	}
}

// turnOver matches a living message whose turn has ended, or never was, or that
// waits for an answer.
var turnOver = regexp.MustCompile(`^(\*(✅|⚠️|⏹️|❓|🚢 Waiting to hear)|I have not begun with this)`)

// offers: people can press a button that is called so, or choose that.
func offers(m slacktest.Message, label string) bool {
	return slices.ContainsFunc(m.Controls, func(c string) bool { return strings.Contains(c, label) })
}

// pressable: there is something in a message that is about work to be done.
func pressable(m slacktest.Message) bool {
	return slices.ContainsFunc(m.Controls, func(label string) bool {
		return !strings.Contains(label, "Open PR") && !strings.Contains(label, remember)
	})
}

// world is what is left on both platforms.
func (r *slackRig) world() string {
	world := slackSession.ReplaceAllString(r.rig.world()+"\n"+timeless(r.slack.World()), "sl.SESSION")
	return slackPlace.ReplaceAllString(world, "archives/PLACE")
}

// slackPlace matches where a thread is, and slackSession the session's name, of
// which there may be no room for all.
var slackPlace = regexp.MustCompile(`archives/\w+/\w+`)

var slackSession = regexp.MustCompile(`\bsl[.-][0-9A-Z]+[.-][0-9A-Z]+[.-][0-9A-Z]+-?[0-9]*…?`)

func (r *slackRig) await(what string, limit time.Duration, done func() bool) {
	r.t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if done() {
			return
		}
	}
	r.t.Fatalf("waited %s for %s; the world:\n%s\nship said:\n%s", limit, what, r.world(), r.log)
}
