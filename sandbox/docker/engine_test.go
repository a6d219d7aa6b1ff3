package docker_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"ship/sandbox"
	"ship/sandbox/docker"
	"ship/sandbox/docker/dockertest"
	"ship/sandbox/sandboxtest"
)

// each runs a test on the stand-in, and on a real engine if there is one:
// SHIP_TEST_DOCKER_IMAGE names an image with /bin/sh and the usual small
// programs, DOCKER_HOST the engine.
func each(t *testing.T, test func(*testing.T, engine)) {
	t.Helper()
	if os.Getenv("SHIP_TEST_DOCKER_IMAGE") == "" {
		t.Parallel() // a stand-in is each test's own
	}
	t.Run("stand-in", func(t *testing.T) { test(t, newEngine(t)) })
	if os.Getenv("SHIP_TEST_DOCKER_IMAGE") != "" {
		t.Run("engine", func(t *testing.T) { test(t, realEngine(t)) })
	}
}

// daemon is a real engine. A test sees only the containers of its own boxes.
type daemon struct {
	t   *testing.T
	set docker.Settings
	api *client.Client
}

func realEngine(t *testing.T) *daemon {
	t.Helper()
	image := os.Getenv("SHIP_TEST_DOCKER_IMAGE")
	if image == "" {
		t.Skip("SHIP_TEST_DOCKER_IMAGE is not set: there is no engine to try")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := docker.CheckProgram(self); err != nil {
		t.Fatalf("the test binary is the guest, and has to be made with CGO_ENABLED=0: %v", err)
	}
	host := os.Getenv("DOCKER_HOST")
	if host == "" {
		host = "unix:///var/run/docker.sock"
	}
	set := settings(host)
	set.Image, set.Runtime = image, os.Getenv("SHIP_TEST_DOCKER_RUNTIME")
	api, err := client.New(client.WithHost(host))
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, set: set, api: api}
	t.Cleanup(d.clean)
	return d
}

// clean removes what a test has left; that a test leaves nothing is the
// contract's to check.
func (d *daemon) clean() {
	for _, c := range d.Containers() {
		if _, err := d.api.ContainerRemove(context.Background(), c.ID, client.ContainerRemoveOptions{Force: true}); err != nil {
			d.t.Errorf("removing what the test has left: %v", err)
		}
	}
	_ = d.api.Close()
}

func (d *daemon) Settings() docker.Settings { return d.set }

func (d *daemon) Containers() []dockertest.Container {
	d.t.Helper()
	found, err := d.api.ContainerList(context.Background(), client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", "ship_box")})
	if err != nil {
		d.t.Fatalf("listing containers: %v", err)
	}
	var all []dockertest.Container
	for _, c := range found.Items {
		if strings.HasPrefix(c.Labels[sandbox.LabelSession], d.t.Name()) {
			all = append(all, d.inspect(c.ID))
		}
	}
	return all
}

func (d *daemon) inspect(id string) dockertest.Container {
	d.t.Helper()
	found, err := d.api.ContainerInspect(context.Background(), id, client.ContainerInspectOptions{})
	if err != nil {
		d.t.Fatalf("looking at a container: %v", err)
	}
	c := found.Container
	return dockertest.Container{
		ID: c.ID, Name: strings.TrimPrefix(c.Name, "/"), State: c.State.Status,
		Order: container.CreateRequest{Config: c.Config, HostConfig: c.HostConfig},
	}
}

// End returns when the engine's list has it that the container has ended: a new
// engine's list follows what it says of one container a little later.
func (d *daemon) End(id string) {
	d.t.Helper()
	if _, err := d.api.ContainerKill(d.t.Context(), id, client.ContainerKillOptions{Signal: "SIGKILL"}); err != nil {
		d.t.Fatalf("ending a container: %v", err)
	}
	running := client.Filters{}.Add("id", id).Add("status", string(container.StateRunning))
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		found, err := d.api.ContainerList(d.t.Context(), client.ContainerListOptions{All: true, Filters: running})
		if err != nil || time.Now().After(deadline) {
			d.t.Fatalf("the container has not ended: %v", err)
		}
		if len(found.Items) == 0 {
			return
		}
	}
}

func (d *daemon) Freeze(id string) error {
	_, err := d.api.ContainerPause(d.t.Context(), id, client.ContainerPauseOptions{})
	return err
}

// TestEngine runs the contract on a real engine.
func TestEngine(t *testing.T) {
	e := realEngine(t)
	dir := t.TempDir()
	sandboxtest.Run(t, sandboxtest.Factory{
		Open: func(t *testing.T) sandbox.Provider { return open(t, e, docker.Config{Dir: dir}) },
		Echo: func(port int) []string { return []string{inBox, "echo", fmt.Sprint(port)} },
	})
	if left := e.Containers(); len(left) > 0 {
		t.Errorf("containers are left: %+v", left)
	}
}

// TestEngineLimits: what is too much ends or is refused, and the box can still
// be used. Only a real engine enforces limits.
func TestEngineLimits(t *testing.T) {
	e := realEngine(t)
	e.set.Memory, e.set.PIDs = 256<<20, 64
	p := open(t, e, docker.Config{})
	if err := p.Check(t.Context()); err != nil || len(p.Weak()) > 0 {
		t.Fatalf("Check: %v; weak: %v", err, p.Weak())
	}
	info, err := p.Create(t.Context(), sandbox.Spec{Key: t.Name(), Generation: 1, TTL: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	box := attach(t, p, info.ID)
	for name, script := range map[string]string{
		// A shell variable of a gigabyte, in a box of a quarter.
		"memory": `x=$(head -c 1073741824 /dev/zero | tr '\0' x); echo ${#x}`,
		// Half of the memory is what /tmp may hold.
		"tmp": `head -c 200000000 /dev/zero > /tmp/big`,
		"shm": `head -c 100000000 /dev/zero > /dev/shm/big`,
		// The shell gives up when it cannot fork.
		"processes": `i=0; while [ $i -lt 100 ]; do sleep 1000 & i=$((i+1)); done; echo all`,
	} {
		out := run(t, box, name, "/bin/sh", "-c", script)
		if out.ExitCode == 0 {
			t.Errorf("%s: it can, and says %q", name, out.Data)
		}
		shell(t, box, "after-"+name, "rm -f /tmp/big /dev/shm/big")
	}
	if now := only(t, e); now.State != container.StateRunning {
		t.Errorf("the container is %s", now.State)
	}
}
