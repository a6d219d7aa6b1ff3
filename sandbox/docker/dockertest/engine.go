// Package dockertest is a stand-in for a container engine: the few calls of its
// API that ship makes, on a unix socket.
//
// It is all of our own writing, after the API's documentation. Its containers
// are real: each has processes, files and a network of its own, made by
// bubblewrap on this machine, with exactly the mounts and the user that were
// asked for. Limits and filters are only noted.
package dockertest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/system"
)

// Image is the only image that an Engine has. In it is what this machine has in
// /usr.
const Image = "ship-box"

// Engine is the stand-in. Its methods may be called concurrently.
type Engine struct {
	// Host is its address.
	Host string

	dir string

	mu         sync.Mutex
	info       system.Info     // guarded by mu
	containers map[string]*box // guarded by mu, by id
	faults     []*Fault        // guarded by mu
	complaints []string        // guarded by mu
}

// Fault is an answer instead of the engine's own, once.
type Fault struct {
	// On is the call: "info", "image", "create", "start", "list", "stop",
	// "unpause", "remove", "wait" or "logs".
	On string
	// Status and Message are answered. Zero: the connection is cut.
	Status  int
	Message string
	// After: the call is done before.
	After bool
	// Then, if set, makes it no fault but a delay: it is called when the call is
	// done and its answer is on the way.
	Then func()
}

// New starts an engine, which ends with the test together with its containers.
// The test is skipped where no container can be made.
func New(t testing.TB) *Engine {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("the containers of the stand-in for an engine need bubblewrap, which is not installed")
	}
	// A socket's address is short, and a test's folder is not.
	dir, err := os.MkdirTemp("", "engine")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{Host: "unix://" + socket, dir: dir, containers: map[string]*box{}, info: system.Info{
		OSType: "linux", NCPU: 2, MemoryLimit: true, PidsLimit: true, CPUCfsQuota: true,
		SecurityOptions: []string{"name=apparmor", "name=seccomp,profile=builtin", "name=cgroupns"},
		Runtimes:        map[string]system.RuntimeWithStatus{"runc": {}},
	}}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: e.routes()}}
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, c := range e.containers {
			c.halt(0)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("removing the engine: %v", err)
		}
	})
	return e
}

// Inform changes what the engine says of itself.
func (e *Engine) Inform(change func(*system.Info)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.info)
}

// Strike makes the next call of a kind fail.
func (e *Engine) Strike(f Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults = append(e.faults, &f)
}

// Complaints are what a careful client does not leave open, one by one.
func (e *Engine) Complaints() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.complaints)
}

// Container is what a test may know of a container.
type Container struct {
	ID, Name string
	State    container.ContainerState
	Order    container.CreateRequest
}

// Containers returns all, by name.
func (e *Engine) Containers() []Container {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []Container
	for _, c := range e.containers {
		all = append(all, Container{c.id, c.name, c.state(), c.order})
	}
	slices.SortFunc(all, func(a, b Container) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// End ends the processes of a container from outside, as a crash would.
func (e *Engine) End(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.containers[id].halt(0)
}

// Freeze pauses a container, as a person would by `docker pause`.
func (e *Engine) Freeze(id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.containers[id].freeze()
}

// take returns the fault that is due for a call.
func (e *Engine) take(call string) *Fault {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, f := range e.faults {
		if f.On == call {
			e.faults = slices.Delete(e.faults, i, i+1)
			return f
		}
	}
	return nil
}

func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	reply(w, status, map[string]string{"message": fmt.Sprintf(format, args...)})
}

func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
