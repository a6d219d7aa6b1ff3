package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ship/integrations/github/githubtest"
	"ship/sandbox/agent/modeltest"
	"ship/sandbox/e2b/e2btest"
	"ship/session"
	"ship/session/redis"
	"ship/session/redis/redistest"
)

// TestMain lets the test binary be the coding agent of a box, and the first
// process of one at the stand-in for E2B.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == e2btest.Role {
		syscall.Exit(e2btest.Inside())
	}
	if len(os.Args) > 2 && os.Args[1] == "serve" && os.Args[2] == "--hostname" {
		fakeAgentMain(os.Args[2:])
	}
	// What tests do here is wait for other processes, so more of them may be
	// under way than there are cores.
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := p.Value.Set("24"); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// built is the program under test, with its faults, built once.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// agents are the places for real agents: each takes half a gigabyte.
var agents = make(chan struct{}, 4)

func program(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("/tmp", "shipbin"); built.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-tags", "faults", "-o", filepath.Join(built.dir, "ship"), ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped, and as boxes elsewhere need it
		out, err := cmd.CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "ship")
}

const (
	rigRepo   = "acme/widgets"
	rigSecret = "s3cret-of-the-webhook"
	modelKey  = "sk-key-of-the-model-provider"
)

// rig is a real `ship serve` on stand-ins that outlive it.
type rig struct {
	t      testing.TB
	host   *githubtest.Server
	model  *modeltest.Server
	redis  *redistest.Server
	eye    *eye
	dir    string
	addr   string
	config string
	cmd    *exec.Cmd
	exited chan struct{}
	log    *syncBuffer
	issue  int
	// role of the process; empty: all. args are further ones of its command.
	role string
	args []string
	// mortal: it was started to be killed at some point, which may come late.
	mortal bool
}

// syncBuffer collects a process's output.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// rigOptions vary a rig. The zero value runs the fake agent.
type rigOptions struct {
	script modeltest.Script
	// opencode runs the real agent.
	opencode bool
	files    map[string]string
	// more is added to the settings.
	more string
	// redis are arguments for its server.
	redis []string
}

func newRig(t testing.TB, o rigOptions) *rig {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ship-rig-") // short, for the sockets in it
	if err != nil {
		t.Fatal(err)
	}
	if o.opencode {
		agents <- struct{}{}
		t.Cleanup(func() { <-agents })
	}
	r := &rig{t: t, dir: dir, redis: redistest.Start(t, o.redis...), eye: &eye{}, log: &syncBuffer{}}
	t.Cleanup(r.eye.close)
	t.Cleanup(r.close)
	key, err := appKey()
	if err != nil {
		t.Fatal(err)
	}
	if r.host, err = githubtest.New(githubtest.Options{Key: key, Validator: validator(t)}); err != nil {
		t.Fatal(err)
	}
	if o.files == nil {
		o.files = map[string]string{"README.md": "# widgets\n"}
	}
	if err := r.host.CreateRepo(rigRepo, o.files); err != nil {
		t.Fatal(err)
	}
	r.host.SetPermission(rigRepo, "mona", "write")
	r.issue = r.host.CreateIssue(rigRepo, "mona", "Widgets are broken", "They do not turn.")
	if o.script == nil {
		o.script = modeltest.Steps(modeltest.Say("Nothing to do."))
	}
	r.model = modeltest.New(o.script)
	upstream := httptest.NewServer(r.model)
	t.Cleanup(upstream.Close)
	r.addr = freeAddr(t)
	r.writeConfig(upstream.URL, agentProgram(t, o.opencode), o.more)
	return r
}

func agentProgram(t testing.TB, real bool) string {
	t.Helper()
	if !real {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		return self
	}
	path := filepath.Join("..", "..", ".tools", "node_modules", "opencode-ai", "bin", "opencode.exe")
	if set := os.Getenv("SHIP_OPENCODE"); set != "" {
		path = set
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(abs); err != nil {
		t.Skip("OpenCode is not installed: make setup")
	}
	return abs
}

// ports are handed out from a block that is this process's alone, because it
// listens on the first. They lie below those that the kernel gives to whoever
// asks for any, so that nobody takes one between two starts of the same ship.
var ports struct {
	once  sync.Once
	block net.Listener
	first int64
	used  atomic.Int64
}

const (
	firstPort = 12000
	blocks    = 40
	blockSize = 500
)

// freeAddr is a loopback address that nobody listens on, or will.
func freeAddr(t testing.TB) string {
	t.Helper()
	ports.once.Do(func() {
		for n := range int64(blocks) {
			at := firstPort + n*blockSize
			if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", at)); err == nil {
				ports.block, ports.first = l, at
				return
			}
		}
	})
	if ports.block == nil {
		t.Fatal("no block of ports is free")
	}
	for range blockSize {
		addr := fmt.Sprintf("127.0.0.1:%d", ports.first+1+ports.used.Add(1)%(blockSize-1))
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

func (r *rig) writeConfig(model, agent, more string) {
	r.t.Helper()
	key := strings.ReplaceAll(strings.TrimSpace(r.host.PrivateKey()), "\n", "\n    ")
	text := fmt.Sprintf(`listen: %s
data_dir: %s
redis:
  url: %s
github:
  app_id: 4242
  private_key: |
    %s
  webhook_secret: %s
  api_url: %s
  web_url: %s
agent:
  model: stand-in/scripted
  opencode: %s
models:
  stand-in:
    base_url: %s/v1
    api_key: %s
    models:
      scripted: {input: 3, output: 15, cached: 0.3}
%s`, r.addr, filepath.Join(r.dir, "data"), r.redis.URL(), key, rigSecret, r.host.APIURL(), r.host.URL, agent, model, modelKey, more)
	r.config = filepath.Join(r.dir, "ship.yaml")
	if err := os.WriteFile(r.config, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// start runs `ship serve` and waits until it is ready, or has been killed at
// the point that env names.
func (r *rig) start(env ...string) {
	r.t.Helper()
	args := append([]string{"serve", "--config", r.config, "--role", cmp.Or(r.role, "all")}, r.args...)
	r.cmd = exec.Command(program(r.t), args...)
	r.cmd.Env = append(os.Environ(), env...)
	r.cmd.Stderr, r.cmd.Stdout = r.log, r.log
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.mortal = len(env) > 0
	exited, cmd := make(chan struct{}), r.cmd
	go func() { _ = cmd.Wait(); close(exited) }()
	r.exited = exited
	r.await("ship to be ready", patience, func() bool {
		select {
		case <-exited:
			if len(env) == 0 {
				r.t.Fatalf("ship ended at its start:\n%s", r.log)
			}
			return true // killed where env says
		default:
		}
		resp, err := http.Get("http://" + r.addr + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// kill ends ship as a crash would.
func (r *rig) kill() {
	if r.cmd != nil {
		_ = r.cmd.Process.Kill()
		<-r.exited
	}
}

// stop ends ship as an operator would.
func (r *rig) stop() {
	r.t.Helper()
	err := r.cmd.Process.Signal(syscall.SIGTERM)
	if err != nil && !(r.mortal && errors.Is(err, os.ErrProcessDone)) {
		r.t.Fatal(err)
	}
	select {
	case <-r.exited:
	case <-time.After(patience):
		r.t.Error("ship did not end")
	}
}

func (r *rig) close() {
	r.kill()
	if r.host != nil {
		for _, v := range r.host.Violations() {
			r.t.Errorf("not as GitHub describes its API: %s", v)
		}
		_ = r.host.Close()
	}
	killBoxes(r.t, filepath.Join(r.dir, "data"))
	if r.t.Failed() {
		r.t.Logf("ship said:\n%s", r.log)
	}
	if err := os.RemoveAll(r.dir); err != nil {
		r.t.Error(err)
	}
}

// await polls for what has no signal of its own: the outside world of another
// process.
func (r *rig) await(what string, limit time.Duration, done func() bool) {
	r.t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if done() {
			return
		}
	}
	r.t.Fatalf("waited %s for %s; the world:\n%s\nship said:\n%s", limit, what, r.host.World(), r.log)
}

// deliver sends a webhook until it is accepted, as a patient platform would.
func (r *rig) deliver(d githubtest.Delivery) {
	r.t.Helper()
	r.await("the delivery to be accepted", patience, func() bool { return r.send(d) == http.StatusOK })
}

// send sends a webhook once and returns the status, zero when nobody answered.
func (r *rig) send(d githubtest.Delivery) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	d.Header = d.Header.Clone() // several may be sent at once
	status, err := githubtest.Deliver(ctx, "http://"+r.addr+"/webhooks/github", d.Sign(rigSecret))
	if err != nil {
		return 0
	}
	return status
}

// says is a comment on an issue, not yet delivered.
func (r *rig) says(number int, text string) githubtest.Delivery {
	return r.host.IssueComment(rigRepo, number, "mona", text)
}

// sticky is the status comment of a thread; empty while there is none.
func (r *rig) sticky(number int) string {
	for _, c := range r.host.Comments(rigRepo, number) {
		if strings.HasPrefix(c.Body, "<!-- ship:session=") && strings.HasSuffix(c.Author, "[bot]") {
			return c.Body
		}
	}
	return ""
}

// ended waits until the thread's status comment says that its turn ended, in
// whatever way, and no session has anything left to do but to sweep later.
func (r *rig) ended(number int, limit time.Duration) string {
	r.t.Helper()
	r.await("the turn to end", limit, func() bool { return stickyEnded.MatchString(r.sticky(number)) })
	r.await("all sessions to be quiet", patience, r.quiet)
	return r.sticky(number)
}

func (r *rig) quiet() bool { return atRest(r.states()) }

// atRest: nothing is left to do but to sweep later.
func atRest(all []session.State) bool {
	for _, s := range all {
		if s.Turn != nil && s.Turn.Stage != session.Ended {
			return false
		}
		for _, e := range s.Pending {
			if e.Kind != session.Sweep {
				return false
			}
		}
	}
	return true
}

// states are those of all sessions, read as `ship sessions` does.
func (r *rig) states() []session.State {
	r.t.Helper()
	var all []session.State
	r.look(func(ctx context.Context, store *redis.Store) error {
		all = nil
		ids, err := store.Sessions(ctx)
		for _, id := range ids {
			s, peekErr := peek(ctx, store, id)
			all, err = append(all, s), errors.Join(err, peekErr)
		}
		return err
	})
	return all
}

// look has something read in Redis until there is an answer: the server may just
// be starting again, and the machine busy with many ships.
func (r *rig) look(read func(ctx context.Context, store *redis.Store) error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		store, err := r.eye.open(ctx, r.redis.URL())
		if err == nil {
			err = read(ctx, store)
		}
		switch {
		case err == nil:
			return
		case session.Sleep(ctx, 100*time.Millisecond) != nil:
			r.t.Fatalf("redis does not answer: %v", err)
		}
	}
}

// eye is one connection for all that tests look for in a Redis.
type eye struct {
	mu    sync.Mutex
	store *redis.Store
}

func (e *eye) open(ctx context.Context, url string) (_ *redis.Store, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.store == nil {
		e.store, err = redis.Open(ctx, redis.Options{URL: url})
	}
	return e.store, err
}

func (e *eye) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.store != nil {
		_ = e.store.Close()
	}
}

// seq is how many events all inboxes have taken.
func (r *rig) seq() (n int64) {
	r.t.Helper()
	r.look(func(ctx context.Context, store *redis.Store) error {
		n = 0
		ids, err := store.Sessions(ctx)
		for _, id := range ids {
			c, peekErr := store.Peek(ctx, id)
			err = errors.Join(err, peekErr)
			n += c.Cursor + int64(len(c.Events))
		}
		return err
	})
	return n
}

// stickyEnded matches the headings of a turn that has ended.
var stickyEnded = regexp.MustCompile(`### (✅|⚠️|⏹️|⏸️)`)

// world is what is left outside, without what depends on the clock.
func (r *rig) world() string { return timeless(r.host.World()) }

// timeless takes out of a text what differs from run to run.
func timeless(text string) string {
	text = regexp.MustCompile(`(?: ·|,) box (?:\d+ h )?\d+ min`).ReplaceAllString(text, "") // shorter ones are not shown
	text = regexp.MustCompile(`\b\d+ (s|min)( \d+ s)?\b`).ReplaceAllString(text, "TIME")
	text = regexp.MustCompile(`\b\d+ model calls?\b|\$\d+\.\d\d`).ReplaceAllString(text, "USAGE") // what a kill cut may be asked again
	text = regexp.MustCompile(`Done in [0-9a-f]{7}\b`).ReplaceAllString(text, "Done in COMMIT")
	text = regexp.MustCompile(`ship:say=\S+`).ReplaceAllString(text, "ship:say=EFFECT")
	text = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).ReplaceAllString(text, "HOST")
	return text
}
