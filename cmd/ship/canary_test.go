package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ship/bot/standin"
	"ship/integrations/linear/lineartest"
	"ship/integrations/slack/slacktest"
)

// canary is a ship on all three platforms, whose every secret is a marker.
type canary struct {
	*rig
	linear  *linearRig
	slack   *slackRig
	markers *markers
	sink    *sink
	// env are the secrets that come by the environment.
	env []string
}

// planted are the secrets of the settings that the test chooses itself. The
// rest are the stand-ins' own.
var planted = map[string]string{
	"hook":    "canary-github-webhook-Zk3vQ8",
	"client":  "canary-linear-client-Wq7Lx2",
	"linhook": "canary-linear-webhook-Pd5Rt9",
	"tokens":  "canary-linear-token-key-0123456789abcdef-Hn4",
	"bot":     "xoxb-1000000001-2000000002-canarySlackBotMb6",
	"signing": "canary-slack-signing-Vc8Jf1",
	"app":     "xapp-1-A0123456789-3000000003-canaryslackapp0c1d2e3f",
	"e2b":     "e2b_ca9a7f0123456789abcdef0123456789abcdef01",
	"redis":   "canary-redis-password-Ty2Gs7",
	"watch":   "canary-sentinel-password-Rf6Nd3",
	"traces":  "canary-collector-key-Xu9Ke4",
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	c := &canary{markers: &markers{}}
	c.sink = &sink{t: t, markers: c.markers}
	hub, err := lineartest.New(lineartest.Options{ClientSecret: planted["client"]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Close() })
	chat, err := slacktest.New(slacktest.Options{BotToken: planted["bot"], AppToken: planted["app"], SigningSecret: planted["signing"]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chat.Close() })
	channel := chat.CreateChannel(slacktest.Channel{Name: rigChannel, Members: []string{"ada", "grace"}})
	c.rig = newRig(t, rigOptions{more: fmt.Sprintf(`linear: {client_id: %s, webhook_secret: [%s, %s], api_url: %s, token_url: %s}
slack: {bot_token: %s, api_url: %s}
access: {people: {ada@acme.example: mona}}
repositories: {teams: {ENG: %s}, channels: {%s: %s}}
sandbox: {max: 4}
`, hub.ClientID(), planted["linhook"], linearSecret, hub.APIURL(), hub.TokenURL(), planted["bot"], chat.APIURL(), rigRepo, channel, rigRepo)})
	c.linear, c.slack = &linearRig{rig: c.rig, linear: hub}, &slackRig{rig: c.rig, slack: chat}
	hub.CreateTeam("ENG", "Engineering")
	c.linear.issue = hub.CreateIssue(lineartest.Issue{Team: "ENG", Title: "SPILL it", Description: "They do not turn."})
	c.plant()
	c.observe()
	return c
}

// plant has every secret known, half of them by the environment.
func (c *canary) plant() {
	c.t.Helper()
	for name, secret := range planted {
		c.markers.add(name, secret)
	}
	c.markers.add("model", modelKey)
	c.markers.add("rig's webhook", rigSecret)
	c.markers.add("linear's webhook", linearSecret)
	c.markers.addLines("private key", c.host.PrivateKey())
	rdb := goredis.NewClient(&goredis.Options{Network: "unix", Addr: c.redis.Socket()})
	defer func() { _ = rdb.Close() }()
	if err := rdb.Do(c.t.Context(), "ACL", "SETUSER", "canary", "on", ">"+planted["redis"], "~*", "&*", "+@all").Err(); err != nil {
		c.t.Fatal(err)
	}
	c.env = []string{
		"SHIP_REDIS_URL=unix://canary:" + planted["redis"] + "@" + c.redis.Socket(),
		"SHIP_REDIS_SENTINEL_PASSWORD=" + planted["watch"],
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20" + planted["traces"],
		"SHIP_GITHUB_WEBHOOK_SECRET=" + rigSecret + "," + planted["hook"],
		"SHIP_LINEAR_CLIENT_SECRET=" + planted["client"],
		"SHIP_LINEAR_TOKEN_KEY=" + planted["tokens"],
		"SHIP_SLACK_SIGNING_SECRET=" + planted["signing"],
		"SHIP_SANDBOX_E2B_API_KEY=" + planted["e2b"],
	}
	// The agent knows them all, by a way that is none of ours.
	if _, err := c.host.Commit(rigRepo, "main", map[string]string{spillFile: disguised(c.markers.values())}, "know"); err != nil {
		c.t.Fatal(err)
	}
}

// observe listens to what is said to the platforms, and to a collector of
// traces; what authorises ship there is secret from then on.
func (c *canary) observe() {
	heard := func(where string) standin.Fault {
		return standin.Fault{Times: -1, Do: func(r *http.Request) {
			_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			if user, password, ok := r.BasicAuth(); ok {
				c.sink.take(where, []byte(user))
				token = password
			}
			if strings.Count(token, ".") != 2 { // what an app signs with its key is good for minutes, and said to nobody else
				c.markers.add("minted for "+where, token)
			}
			body, _ := io.ReadAll(r.Body)
			if !strings.HasSuffix(r.URL.Path, "/oauth/token") {
				c.sink.take(where, []byte(r.URL.String()))
				c.sink.take(where, slackToken.ReplaceAll(body, nil))
			}
		}}
	}
	c.echo()
	c.host.Inject(heard("said to github"))
	c.linear.linear.Inject(heard("said to linear"))
	c.slack.slack.Inject(heard("said to slack"))
	var refused atomic.Bool
	traces := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if zipped, err := gzip.NewReader(r.Body); err == nil && r.Header.Get("Content-Encoding") == "gzip" {
			body = zipped
		}
		text, _ := io.ReadAll(body)
		c.sink.take("traces", text)
		if key := r.Header.Get("Authorization"); refused.CompareAndSwap(false, true) { // as whoever does not know it says
			if key != "Bearer "+planted["traces"] {
				c.t.Errorf("the collector was shown %q", key)
			}
			http.Error(w, "not for "+key, http.StatusForbidden)
		}
	}))
	c.t.Cleanup(traces.Close)
	c.env = append(c.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+traces.URL, "TMPDIR="+c.tmp())
}

// slackToken is where Slack's own client puts what authorises it: into a form.
var slackToken = regexp.MustCompile(`(^|&)token=[^&]*`)

// tmp is where ship and what it starts have temporary files.
func (c *canary) tmp() string {
	dir := filepath.Join(c.dir, "tmp")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.t.Fatal(err)
	}
	return dir
}

// echo has platforms refuse something once, in words that repeat what they were
// given to authorise it.
func (c *canary) echo() {
	all, err := json.Marshal("refused: " + strings.Join(c.markers.values(), " "))
	if err != nil {
		c.t.Fatal(err)
	}
	body := fmt.Sprintf(`{"ok":false,"message":%s,"error":%s,"errors":[{"message":%s,"extensions":{"code":"INTERNAL_SERVER_ERROR","userPresentableMessage":%s}}],"error_description":%s}`, all, all, all, all, all)
	for _, route := range []string{"POST /repos/{owner}/{repo}/pulls", "POST /repos/{owner}/{repo}/issues/{number}/comments", "GIT receive-pack", "POST /app/installations/{id}/access_tokens"} {
		c.host.Inject(standin.Fault{On: route, Status: http.StatusInternalServerError, Body: body})
	}
	for _, operation := range []string{"AgentActivityCreate", "token"} {
		c.linear.linear.Inject(standin.Fault{On: operation, Status: http.StatusInternalServerError, Body: body})
	}
	for _, method := range []string{"chat.postMessage", "chat.update"} {
		c.slack.slack.Inject(standin.Fault{On: method, Status: http.StatusOK, Body: body})
	}
}

// TestCanary: no secret of the settings, and none that a platform hands out, is
// anywhere but where it is needed: not in what people see on any platform, in
// logs, transcripts, metrics or traces, in Redis, in boxes, in files, in the
// environment or the arguments of what ship starts, in what its commands print,
// or in the stacks of a process that is made to crash; also not when an agent
// tells all it knows, and platforms repeat what they were given.
func TestCanary(t *testing.T) {
	t.Parallel()
	c := newCanary(t)
	c.start(c.env...)
	c.onGitHub()
	c.onLinear()
	c.onSlack()
	c.forge()
	c.kill()
	c.start(c.env...)
	c.inBoxes()
	c.commands()
	c.fetch("/metrics", "/healthz", "/readyz", "/webhooks/github", "/broker/", "/nothing?token=1")
	c.crash()
	c.inRedis()
	c.sink.takeFolder("files", filepath.Join(c.dir, "data"), filepath.Join(c.dir, "data", "broker.key"))
	c.sink.takeFolder("files", filepath.Join(c.dir, "tmp"))
	c.sink.take("log", []byte(c.log.String()))
	c.sink.take("github", []byte(c.host.World()))
	c.sink.take("linear", []byte(c.linear.linear.World()))
	c.sink.take("slack", []byte(c.slack.slack.World()))
	key, err := os.ReadFile(filepath.Join(c.dir, "data", "broker.key"))
	if err != nil {
		t.Error(err)
	}
	c.markers.add("broker's key", strings.TrimSpace(string(key)))
	c.sink.check("log", "files", "github", "linear", "slack", "said to github", "said to linear", "said to slack",
		"redis", "redis's log of writes", "processes", "web", "ship sessions logs", "ship doctor")
	c.spilled()
}

// spilled: what was to be said was said, with the secrets taken out, or nothing
// was shown by all this.
func (c *canary) spilled() {
	c.t.Helper()
	for where, said := range map[string]string{
		"GitHub": c.host.World(), "Linear": c.linear.linear.World(), "Slack": c.slack.slack.World(),
		"the transcript": c.sink.texts["ship sessions logs"].String(),
	} {
		if !strings.Contains(said, "redacted]") {
			c.t.Errorf("nothing was redacted in %s:\n%s", where, said)
		}
	}
	if !strings.Contains(c.log.String(), "goroutine ") {
		c.t.Error("the crash left no stacks")
	}
}

func (c *canary) onGitHub() {
	c.t.Helper()
	c.deliver(c.says(c.issue, "/ship SPILL it"))
	c.endedTurns(1, patience)
	c.deliver(c.says(c.issue, "/ship SPILL and FAIL"))
	c.endedTurns(2, patience)
}

func (c *canary) onLinear() {
	c.t.Helper()
	id, d := c.linear.assign()
	c.linear.tell(d)
	c.linear.answered(id, patience)
	c.linear.tell(c.linear.linear.Prompt(id, "ada", "SPILL and FAIL"))
	c.linear.answered(id, patience)
}

func (c *canary) onSlack() {
	c.t.Helper()
	root := c.slack.mention("SPILL and ASK")
	c.await("Slack to be asked", patience, func() bool { return len(c.slack.said(root)) > 0 && c.quiet() })
}

// forge sends what is to be refused, with secrets where they do not belong.
func (c *canary) forge() {
	c.t.Helper()
	for _, platform := range []string{"github", "linear", "slack"} {
		for _, secret := range planted {
			r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, "http://"+c.addr+"/webhooks/"+platform, strings.NewReader(`{"action":"`+secret+`"`))
			if err != nil {
				c.t.Fatal(err)
			}
			for _, name := range []string{"X-Hub-Signature-256", "Linear-Signature", "X-Slack-Signature", "X-Github-Event", "X-Github-Delivery", "Linear-Event", "Authorization"} {
				r.Header.Set(name, secret)
			}
			r.Header.Set("X-Slack-Request-Timestamp", strconv.FormatInt(time.Now().Unix(), 10))
			c.ask(r)
		}
	}
}

// fetch asks ship for pages.
func (c *canary) fetch(paths ...string) {
	c.t.Helper()
	for _, path := range paths {
		r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, "http://"+c.addr+path, nil)
		if err != nil {
			c.t.Fatal(err)
		}
		c.ask(r)
	}
}

// ask takes what ship answers.
func (c *canary) ask(r *http.Request) {
	c.t.Helper()
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Error(err)
		return
	}
	defer a.Body.Close()
	var all bytes.Buffer
	if err := a.Write(&all); err != nil {
		c.t.Error(err)
	}
	c.sink.take("web", all.Bytes())
}

// inBoxes looks at what ship starts while an agent works: its environment and
// its arguments, in the box and around it, and the box's files.
func (c *canary) inBoxes() {
	c.t.Helper()
	turns := c.turns()
	number := c.host.CreateIssue(rigRepo, "mona", "Again", "It does not turn.")
	c.deliver(c.says(number, "/ship SLOWLY"))
	c.await("the agent to work", patience, c.slack.atWork)
	children := descendants(c.cmd.Process.Pid)
	if len(children) < 3 {
		c.t.Errorf("only %d processes belong to ship", len(children))
	}
	for _, pid := range children {
		for _, file := range []string{"environ", "cmdline"} {
			if text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file)); err == nil {
				c.sink.take("processes", text)
			}
		}
	}
	c.sink.takeFolder("files", filepath.Join(c.dir, "data", "boxes"))
	c.deliver(c.says(number, "/ship stop"))
	c.await("the turn to end", patience, func() bool { return c.turns() == turns+1 && c.quiet() })
}

// descendants are the processes that one has started, and those by them.
func descendants(of int) (all []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				all = append(append(all, pid), descendants(pid)...)
			}
		}
	}
	return all
}

// commands takes what an operator's commands print.
func (c *canary) commands() {
	c.t.Helper()
	for _, s := range c.states() {
		for _, args := range []string{"sessions show", "sessions logs", "sessions export", "sessions export --markdown", "deliveries list --session"} {
			c.command(append(strings.Fields(args), string(s.ID))...)
		}
	}
	for _, line := range []string{"sessions list", "sessions show nothing", "deliveries list", "deliveries list --json", "doctor", "doctor --json", "send github ping"} {
		c.command(strings.Fields(line)...)
	}
}

func (c *canary) command(args ...string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(c.t), append(args, "--config", c.config)...)
	cmd.Env = append(os.Environ(), c.env...)
	out, _ := cmd.CombinedOutput() // some have something to complain of
	c.sink.take("ship "+strings.Join(args[:min(2, len(args))], " "), out)
	c.sink.take("ship "+args[0], out)
}

// crash makes ship write down all its stacks and end.
func (c *canary) crash() {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		c.t.Fatal(err)
	}
	select {
	case <-c.exited:
	case <-time.After(patience):
		c.t.Error("ship did not end")
	}
}

// inRedis takes all that is kept, and the log of all that was ever written.
func (c *canary) inRedis() {
	c.t.Helper()
	ctx := c.t.Context()
	rdb := goredis.NewClient(&goredis.Options{Network: "unix", Addr: c.redis.Socket()})
	defer func() { _ = rdb.Close() }()
	keys, err := rdb.Keys(ctx, "*").Result()
	if err != nil || len(keys) == 0 {
		c.t.Fatalf("%d keys, %v", len(keys), err)
	}
	for _, key := range keys {
		var value any
		switch kind := rdb.Type(ctx, key).Val(); kind {
		case "string":
			value, err = rdb.Get(ctx, key).Result()
		case "hash":
			value, err = rdb.HGetAll(ctx, key).Result()
		case "stream":
			value, err = rdb.XRange(ctx, key, "-", "+").Result()
		case "zset":
			value, err = rdb.ZRange(ctx, key, 0, -1).Result()
		case "set":
			value, err = rdb.SMembers(ctx, key).Result()
		case "list":
			value, err = rdb.LRange(ctx, key, 0, -1).Result()
		default:
			c.t.Errorf("%s is a %s, at which nobody looks", key, kind)
		}
		if err != nil {
			c.t.Error(err)
		}
		c.sink.take("redis", fmt.Appendf(nil, "%s = %v", key, value))
	}
	c.sink.takeFolder("redis's log of writes", filepath.Join(c.redis.Dir(), "appendonlydir"))
}
