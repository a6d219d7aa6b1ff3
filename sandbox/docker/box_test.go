package docker_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ship/sandbox"
	"ship/sandbox/docker"
	"ship/sandbox/docker/dockertest"
)

// only returns the one container that there is.
func only(t *testing.T, e engine) dockertest.Container {
	t.Helper()
	all := e.Containers()
	if len(all) != 1 {
		t.Fatalf("there are %d containers: %+v", len(all), all)
	}
	return all[0]
}

// list returns the one box that there is.
func list(t *testing.T, p *docker.Provider) sandbox.Info {
	t.Helper()
	infos, err := p.List(t.Context(), nil)
	if err != nil || len(infos) != 1 {
		t.Fatalf("List: %+v, %v", infos, err)
	}
	return infos[0]
}

func wantErr(t *testing.T, what string, err, want error, words ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
	if err == nil {
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: error %v, without %q", what, err, word)
		}
	}
}

// TestClosed: what a box may do, and what it can learn.
func TestClosed(t *testing.T) { each(t, testClosed) }

func testClosed(t *testing.T, e engine) {
	p := open(t, e, docker.Config{})
	box := attach(t, p, create(t, p).ID)
	for name, script := range map[string]string{
		"root":      `test "$(id -u)" = 0`,
		"name":      `test "$(id -un)" != ship`,
		"system":    `touch /usr/x || touch /opt/ship/x || touch /x`,
		"expiry":    `touch /run/ship-host/expires`,
		"passwd":    `echo >> /etc/passwd`,
		"secret":    `cat /proc/1/environ`,
		"inherited": `env | grep SHIP_GUEST`,
		"network":   `grep -v -e lo: -e face -e Receive /proc/net/dev`,
		"engine":    `ls /var/run/docker.sock /run/docker.sock`,
	} {
		if out := run(t, box, name, "/bin/sh", "-c", script); out.ExitCode == 0 {
			t.Errorf("%s: it can, and says %q", name, out.Data)
		}
	}
	c := only(t, e)
	// More than there are would be refused; the machine of the stand-in has two.
	if got := c.Order.HostConfig.NanoCPUs; got != 2e9 {
		t.Errorf("limit of processors: %d", got)
	}
	if c.Order.Labels[sandbox.LabelSession] != t.Name() || c.Order.Labels[sandbox.LabelGeneration] != "1" {
		t.Errorf("labels: %v", c.Order.Labels)
	}
}

// TestBroker: the folder of the broker is the only way out.
func TestBroker(t *testing.T) { each(t, testBroker) }

func testBroker(t *testing.T, e engine) {
	broker := t.TempDir()
	// The box's user is not ours when we are root.
	if err := os.Chmod(broker, 0o755); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(broker, "broker.sock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(broker, "broker.sock"), 0o777); err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	})}}
	server.Start()
	defer server.Close()
	p := open(t, e, docker.Config{Broker: broker})
	box := attach(t, p, create(t, p).ID)
	if err := box.Write(t.Context(), sandbox.TokenPath, []byte("turn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := run(t, box, "get", inBox, "get", sandbox.BrokerURL); string(out.Data) != "200 Bearer turn" {
		t.Errorf("%q", out.Data)
	}
}

// TestBinds: what is bound is found, read-only.
func TestBinds(t *testing.T) { each(t, testBinds) }

func testBinds(t *testing.T, e engine) {
	tool := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(tool, []byte("here\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := open(t, e, docker.Config{Binds: []docker.Bind{{Host: tool, Box: "/opt/ship/tool"}}})
	box := attach(t, p, create(t, p).ID)
	if got := shell(t, box, "tool", "cat /opt/ship/tool; (echo x > /opt/ship/tool) 2>/dev/null || echo no"); got != "here\nno" {
		t.Errorf("%q", got)
	}
	for _, b := range []docker.Bind{{Host: tool, Box: "/run/ship/x"}, {Host: tool, Box: "/run"}, {Host: "x", Box: "/x"}, {Host: tool, Box: "/"}} {
		cfg := docker.Config{Settings: e.Settings(), Dir: t.TempDir(), Binds: []docker.Bind{b}}
		if _, err := docker.New(cfg); err == nil {
			t.Errorf("%+v was taken", b)
		}
	}
}

// TestPause: no process and no memory is left, all files below /work are, and
// the container is the same one.
func TestPause(t *testing.T) { each(t, testPause) }

func testPause(t *testing.T, e engine) {
	p := open(t, e, docker.Config{})
	info := create(t, p)
	box := attach(t, p, info.ID)
	shell(t, box, "mark", "echo kept > /work/kept")
	if err := p.Pause(t.Context(), info.ID); err != nil {
		t.Fatalf("Pause: %v", err)
	}
	before := only(t, e)
	if got := list(t, p); got.State != sandbox.Paused || before.State != "exited" {
		t.Errorf("List says %s, the engine %s", got.State, before.State)
	}
	if _, err := box.Process(t.Context(), "mark"); !errors.Is(err, sandbox.ErrTransient) || errors.Is(err, sandbox.ErrGone) {
		t.Errorf("a handle on a paused box: %v", err)
	}
	if again := create(t, p); again.ID != info.ID || again.State != sandbox.Running {
		t.Errorf("Create woke %+v", again)
	}
	if got := list(t, p); got.State != sandbox.Running || only(t, e).ID != before.ID {
		t.Errorf("awake: %+v", got)
	}
	box = attach(t, p, info.ID)
	_, err := box.Process(t.Context(), "mark")
	wantErr(t, "a process of before the pause", err, sandbox.ErrGone)
	if got := shell(t, box, "look", "cat /work/kept"); got != "kept" {
		t.Errorf("/work/kept holds %q", got)
	}
	wantErr(t, "Pause of what never was", p.Pause(t.Context(), "no"), sandbox.ErrGone)
}

// TestFrozen: a person may have paused the container by hand.
func TestFrozen(t *testing.T) { each(t, testFrozen) }

func testFrozen(t *testing.T, e engine) {
	p := open(t, e, docker.Config{})
	info := create(t, p)
	if err := e.Freeze(only(t, e).ID); err != nil {
		t.Fatal(err)
	}
	if got := list(t, p); got.State != sandbox.Paused {
		t.Errorf("List says %s", got.State)
	}
	if err := p.Pause(t.Context(), info.ID); err != nil {
		t.Errorf("Pause: %v", err)
	}
	shell(t, attach(t, p, info.ID), "go", "true")
}

// TestCrash: a container that ended by itself is no box any more.
func TestCrash(t *testing.T) { each(t, testCrash) }

func testCrash(t *testing.T, e engine) {
	p := open(t, e, docker.Config{})
	info := create(t, p)
	box := attach(t, p, info.ID)
	e.End(only(t, e).ID)
	_, err := box.Process(t.Context(), "any")
	wantErr(t, "an old handle", err, sandbox.ErrGone)
	_, err = p.Attach(t.Context(), info.ID, time.Minute)
	wantErr(t, "Attach", err, sandbox.ErrGone)
	if again := create(t, p); again.ID == info.ID {
		t.Error("Create returned the dead box")
	}
	e.End(only(t, e).ID)
	if infos, err := p.List(t.Context(), nil); err != nil || len(infos) > 0 || len(e.Containers()) > 0 {
		t.Errorf("List: %+v, %v; containers: %+v", infos, err, e.Containers())
	}
}

// TestTrap: a box that puts something else in the place of its guest's socket
// leads us nowhere, and is made anew.
func TestTrap(t *testing.T) { each(t, testTrap) }

func testTrap(t *testing.T, e engine) {
	p := open(t, e, docker.Config{})
	info := create(t, p)
	box := attach(t, p, info.ID)
	p.SetPatience(3 * time.Second)
	socket := strings.TrimPrefix(e.Settings().Host, "unix://")
	_, err := box.Spawn(t.Context(), sandbox.Command{Name: "trap", Args: []string{"ln", "-sfn", socket, "/run/ship-door/guest.sock"}})
	for deadline := time.Now().Add(patience); err == nil && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		_, err = box.Process(t.Context(), "trap")
	}
	wantErr(t, "through a link", err, sandbox.ErrTransient, "no socket")
	_, err = p.Attach(t.Context(), info.ID, time.Minute)
	wantErr(t, "Attach", err, sandbox.ErrGone)
	p.SetPatience(patience)
	if again := create(t, p); again.ID == info.ID {
		t.Error("Create returned the box that cannot be reached")
	}
}

// TestLeftovers: whatever a gateway that was killed left behind is found and
// removed, and what another gateway has is left alone.
func TestLeftovers(t *testing.T) { each(t, testLeftovers) }

func testLeftovers(t *testing.T, e engine) {
	dir := t.TempDir()
	p, other := open(t, e, docker.Config{Dir: dir}), open(t, e, docker.Config{})
	theirs := create(t, other)
	info := create(t, p)
	if err := os.RemoveAll(filepath.Join(dir, info.ID)); err != nil {
		t.Fatal(err)
	}
	stray, young := filepath.Join(dir, "0123456789abcdef-0123456789"), filepath.Join(dir, "0123456789abcdef-9876543210")
	for _, path := range []string{stray, young, filepath.Join(dir, ".gone-x")} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(stray, old, old); err != nil {
		t.Fatal(err)
	}
	if infos, err := p.List(t.Context(), nil); err != nil || len(infos) > 0 {
		t.Errorf("List: %+v, %v", infos, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(young) {
		t.Errorf("left: %v, %v", entries, err)
	}
	if err := p.Destroy(t.Context(), theirs.ID); err != nil {
		t.Errorf("Destroy: %v", err)
	}
	if got := list(t, other); got.ID != theirs.ID {
		t.Errorf("the other gateway has %+v", got)
	}
}

// TestCancelled: whoever gives up gets to know just that.
func TestCancelled(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	p := open(t, e, docker.Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("no longer wanted")
	cancel(why)
	_, err := p.Create(ctx, spec(t))
	wantErr(t, "Create", err, why)
	_, err = p.List(ctx, nil)
	wantErr(t, "List", err, why)
}
