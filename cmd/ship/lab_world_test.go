package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ship/integrations/github/githubtest"
	"ship/integrations/linear/lineartest"
	"ship/integrations/slack/slacktest"
	"ship/sandbox/e2b/e2btest"
	"ship/session"
)

// lab is a world of three platforms and one Redis, in which two real
// `ship serve` work at the same time. The platforms and the Redis outlive every
// fault; what they hold at the end is what the lab judges.
type lab struct {
	*rig
	linear *lineartest.Server
	slack  *slacktest.Server
	boxes  *e2btest.Server
	// issue that Linear's threads are about.
	linearIssue string
	ships       []*gateway
	story       *story
	ambushes    []*ambush
	tally       *tally
	redisDown   bool
	began       time.Time
	// events are what was done to it; notes, which invariants do not hold.
	events []string
	notes  *notes
}

// gateway is one of the ships, on a machine of its own: with a data_dir, a way
// to Redis and a clock that nobody else has.
type gateway struct {
	*rig
	lab  *lab
	name string
	net  *network
	// env is what each of its processes starts with, and program what it is.
	env     []string
	program string
	// lives are what its processes logged, one each.
	lives  []*syncBuffer
	frozen bool
	// open: a request that is sent to it may be answered.
	open atomic.Bool
}

// labOptions of a world.
type labOptions struct {
	// redis are arguments of its own.
	redis []string
	// disk is how many bytes a box has room for; zero: enough.
	disk int64
}

// newLab makes the world. No ship runs yet.
func newLab(t testing.TB, o labOptions) *lab {
	t.Helper()
	l := &lab{tally: newTally(), notes: &notes{TB: t}}
	l.openLinear(t)
	channel := l.openSlack(t)
	l.boxes = e2btest.New(t, e2btest.Options{Door: l.door(), Agent: true, Disk: o.disk})
	port := freePort(t)
	l.rig = newRig(t, rigOptions{
		redis: append([]string{"--port", port, "--bind", "127.0.0.1"}, o.redis...),
		more:  l.settings(channel),
	})
	l.linearIssue = l.linear.CreateIssue(lineartest.Issue{Team: "ENG", Title: "Widgets are broken", Description: "They do not turn."})
	for i, r := range []*rig{l.rig, l.twin()} {
		g := &gateway{env: []string{"SHIP_TEST_E2B=" + l.boxes.SandboxURL + " " + e2btest.AllowedURL}, rig: r, lab: l, name: string(rune('A' + i)), net: newNetwork(t, port)}
		r.edit(l.redis.URL(), "redis://"+g.net.addr())
		g.shareKey()
		l.ships = append(l.ships, g)
	}
	return l
}

// shareKey gives the ship the key that both have: each of them opens what the
// other's boxes hold.
func (g *gateway) shareKey() {
	g.t.Helper()
	dir := filepath.Join(g.dir, "data")
	err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "broker.key"), bytes.Repeat([]byte("k"), 32), 0o600))
	if err != nil {
		g.t.Fatal(err)
	}
}

// door is where boxes reach ship: a proxy in front of both.
func (l *lab) door() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", l.reachable() },
		ErrorLog:  log.New(io.Discard, "", 0),
		Transport: &http.Transport{DisableKeepAlives: true},
	}
}

// reachable is the address of a ship that runs, if there is one.
func (l *lab) reachable() string {
	for _, g := range l.ships {
		if g.open.Load() {
			return g.addr
		}
	}
	return "127.0.0.1:1"
}

func freePort(t testing.TB) string {
	t.Helper()
	_, port, err := net.SplitHostPort(freeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func (l *lab) openLinear(t testing.TB) {
	t.Helper()
	var err error
	if l.linear, err = lineartest.New(lineartest.Options{Validator: linearValidator(t)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, v := range l.linear.Violations() {
			t.Errorf("not as Linear describes its API: %s", v)
		}
		_ = l.linear.Close()
	})
	l.linear.CreateTeam("ENG", "Engineering")
}

func (l *lab) openSlack(t testing.TB) (channel string) {
	t.Helper()
	var err error
	if l.slack, err = slacktest.New(slacktest.Options{Validator: slackValidator(t)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, v := range l.slack.Violations() {
			t.Errorf("not as Slack describes its API: %s", v)
		}
		_ = l.slack.Close()
	})
	return l.slack.CreateChannel(slacktest.Channel{Name: rigChannel, Members: []string{"ada", "grace"}})
}

// settings are those that both ships share.
func (l *lab) settings(channel string) string {
	return fmt.Sprintf(`linear:
  client_id: %s
  client_secret: %s
  webhook_secret: %s
  api_url: %s
  token_url: %s
slack:
  bot_token: %s
  signing_secret: %s
  api_url: %s
access:
  people: {ada@acme.example: mona}
repositories:
  teams: {ENG: %s}
  channels: {%s: %s}
public_url: https://ship.example.com
sandbox:
  provider: e2b
  max: 8
  idle_pause: 10s
  idle_destroy: %s
  e2b: {api_key: %s, api_url: %s}
limits: {sessions_per_user: 50, requests_per_minute: 600}
`, l.linear.ClientID(), l.linear.ClientSecret(), linearSecret, l.linear.APIURL(), l.linear.TokenURL(),
		l.slack.BotToken(), l.slack.SigningSecret(), l.slack.APIURL(), rigRepo, channel, rigRepo, labIdle, e2btest.Key, l.boxes.URL)
}

// labIdle is how long an idle box may be there.
const labIdle = time.Minute

// up starts the ship, which may die at once. It does not wait.
func (g *gateway) up(env ...string) {
	if g.alive() {
		return
	}
	life := &syncBuffer{}
	g.lives = append(g.lives, life)
	cmd := exec.Command(cmp.Or(g.program, program(g.t)), "serve", "--config", g.config, "--role", cmp.Or(g.role, "all"))
	cmd.Env = append(append(os.Environ(), g.env...), env...)
	cmd.Stdout, cmd.Stderr = life, life
	if err := cmd.Start(); err != nil {
		g.t.Errorf("start %s: %v", g.name, err)
		return
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	g.cmd, g.exited, g.mortal = cmd, exited, true
	g.open.Store(true)
}

func (g *gateway) alive() bool {
	if g.exited == nil {
		return false
	}
	select {
	case <-g.exited:
		return false
	default:
		return true
	}
}

// die ends the ship as a crash does, frozen or not.
func (g *gateway) die() {
	if g.alive() {
		g.kill()
	}
	g.open.Store(false)
	g.frozen = false
}

// ready: it would accept something.
func (g *gateway) ready() bool {
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get("http://" + g.addr + "/readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (g *gateway) linearRig() *linearRig { return &linearRig{rig: g.rig, linear: g.lab.linear} }
func (g *gateway) slackRig() *slackRig   { return &slackRig{rig: g.rig, slack: g.lab.slack} }

// takesGitHub posts a delivery once, and tells whether it was accepted.
func (g *gateway) takesGitHub(d githubtest.Delivery) bool { return g.send(d) == 200 }
func (g *gateway) takesLinear(d lineartest.Delivery) bool { return g.linearRig().post(d) == 200 }
func (g *gateway) takesSlack(d slacktest.Delivery) bool   { return g.slackRig().post(d) }

// heal ends all faults: everything that is down comes up again.
func (l *lab) heal() {
	l.host.ClearFaults()
	l.linear.ClearFaults()
	l.slack.ClearFaults()
	l.redisUp()
	for _, g := range l.ships {
		g.net.mend()
		g.thawed()
		g.up()
	}
}

// redisUp undoes what may have been done to the server.
func (l *lab) redisUp() {
	if l.redisDown {
		l.redis.Restart()
		l.redisDown = false
	}
	for _, undo := range [][]string{{"CONFIG", "SET", "maxmemory", "0"}, {"REPLICAOF", "NO", "ONE"}} {
		l.redisSays(undo...)
	}
}

// redisSays has the server do something, past all that is between it and ship.
func (l *lab) redisSays(args ...string) {
	out, err := exec.Command("redis-cli", append([]string{"-s", l.redis.Socket()}, args...)...).CombinedOutput()
	if err != nil {
		l.t.Errorf("redis-cli %v: %v: %s", args, err, out)
	}
}

func (g *gateway) thawed() {
	if g.frozen && g.alive() {
		g.thaw()
		g.open.Store(true)
	}
	g.frozen = false
}

// rest waits until nothing is left to do in the whole world.
func (l *lab) rest() {
	l.t.Helper()
	most := max(len(l.ships[0].lives), len(l.ships[1].lives))
	l.within("both ships to be ready", func() bool {
		for _, g := range l.ships {
			// One that was just beginning when the fault was over may end yet.
			if g.up(); len(g.lives) > most+len(l.ships) {
				l.t.Fatalf("ship %s ends by itself:\n%s", g.name, g.lives[len(g.lives)-1])
			}
			if !g.ready() {
				return false
			}
		}
		return true
	})
	l.within("all to be accepted", l.story.over)
	l.within("all sessions to come to rest", func() bool { return l.quiet() && l.answered() })
}

// within waits for the world, and says all that there is to know if it does not
// come to that.
func (l *lab) within(what string, done func() bool) {
	l.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if done() {
			return
		}
	}
	l.t.Fatalf("waited %s for %s\n%s", patience, what, l.dump())
}

// dump is the world, the story, the states and what the ships said.
func (l *lab) dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n%s\n%s\n%s\n", l.host.World(), l.linear.World(), l.slack.World(), l.story, l.history())
	for _, s := range l.states() {
		text, _ := json.Marshal(s)
		fmt.Fprintf(&b, "state %s\n", text)
	}
	for _, g := range l.ships {
		for i, life := range g.lives {
			fmt.Fprintf(&b, "---- ship %s, life %d:\n%s", g.name, i+1, life)
		}
	}
	return b.String()
}

// swept: nothing is left to be said of any turn.
func (l *lab) swept() bool {
	return !slices.ContainsFunc(l.states(), func(s session.State) bool { return s.Turn != nil && !s.Turn.Told })
}

// answered: every thread has had its last word.
func (l *lab) answered() bool {
	for _, th := range l.story.threads {
		if th.spoken() && !th.ended() {
			return false
		}
	}
	return true
}
