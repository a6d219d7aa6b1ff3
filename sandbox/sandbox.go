// Package sandbox is the contract between ship and whatever isolates a coding
// agent: a Provider makes boxes, a Box runs processes.
//
// Three ideas hold it together. A box is a cache: the branch on the remote is
// the truth, so every box may vanish at any moment. Nothing waits on a
// connection: a process belongs to the box, its output goes to a file that is
// read by offset and its exit code to another, so a gateway that was killed
// finds both again. Whatever may be asked twice carries a key, so that asking
// twice does it once.
package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"time"
)

// What a caller decides on. Providers wrap these; everything else is a bug or
// a passing fault.
var (
	// ErrGone: the box (or process) does not exist any more. Make a new one.
	ErrGone = errors.New("sandbox is gone")
	// ErrBusy: the box changes state just now. Ask again in a moment.
	ErrBusy = errors.New("sandbox is changing state")
	// ErrQuota: the provider has no place for another box. Wait in the queue.
	ErrQuota = errors.New("no sandbox is free")
	// ErrAuth: the provider refused our credentials. A person has to act.
	ErrAuth = errors.New("sandbox provider refused the credentials")
	// ErrTransient: the provider or the way to it failed. Ask again.
	ErrTransient = errors.New("sandbox provider failed")
	// ErrUnsupported: this provider cannot do that, ever.
	ErrUnsupported = errors.New("not supported by this sandbox provider")
	// ErrIsolation: this machine cannot isolate a box. A person has to act.
	ErrIsolation = errors.New("this machine cannot isolate a sandbox")
)

// The layout inside every box, whatever the provider.
const (
	// WorkDir is the one writable folder that lasts as long as the box.
	WorkDir = "/work"
	// RepoDir is where the repository is checked out.
	RepoDir = WorkDir + "/repo"
	// HomeDir is HOME of every process in the box.
	HomeDir = WorkDir + "/home"
	// RunDir holds what the guest and the gateway share: sockets, the turn's
	// token, output and exit files.
	RunDir = "/run/ship"
	// TokenPath holds the turn's broker token. The guest's bridge reads it at
	// every request, so that writing it anew is all that a new turn needs.
	TokenPath = RunDir + "/token"
	// BrokerURL is where a process in the box finds the broker: the guest
	// listens there and adds the turn's token.
	BrokerURL = "http://127.0.0.1:4010"
)

// Labels that every box carries.
const (
	LabelSession    = "ship_session"
	LabelGeneration = "ship_generation"
)

// Spec says which box is wanted.
type Spec struct {
	// Key is unique per session. Create looks for a living box of this key
	// before it makes one.
	Key string
	// Generation is the fencing token of the lease under which it is made.
	Generation int64
	// Labels are kept by the provider and found again by List. LabelSession and
	// LabelGeneration are set by Create from Key and Generation.
	Labels map[string]string
	// TTL is how long the box lives unless it is extended: the dead man's
	// switch for the case that all of ship is gone. Always explicit.
	TTL time.Duration
}

// State is what a provider says of a box.
type State string

// The states that a provider can report.
const (
	Running State = "running"
	Paused  State = "paused"
)

// Info describes one box. The provider's word is the truth, our record a cache.
type Info struct {
	ID         string
	Key        string
	Generation int64
	State      State
	Labels     map[string]string
	Created    time.Time
	Expires    time.Time
}

// Carries tells whether labels are among those of a box, as List has it.
func Carries(own, wanted map[string]string) bool {
	for name, value := range wanted {
		if got, ok := own[name]; !ok || got != value {
			return false
		}
	}
	return true
}

// Provider makes, finds and destroys boxes. All methods may be called
// concurrently and by several workers, and each may be performed twice.
type Provider interface {
	// Create returns the living box of spec.Key, or makes it. The TTL starts
	// anew in both cases.
	Create(ctx context.Context, spec Spec) (Info, error)
	// Attach returns a handle on a box, waking it when it is paused, and
	// probes it before it returns. ErrGone when it does not live.
	Attach(ctx context.Context, id string, ttl time.Duration) (Box, error)
	// Info returns what the provider says of one box now. It neither wakes nor
	// extends it. ErrGone when it does not live.
	Info(ctx context.Context, id string) (Info, error)
	// List returns the boxes that carry all of these labels: all pages.
	List(ctx context.Context, labels map[string]string) ([]Info, error)
	// Extend moves the expiry to until, and never shortens it.
	Extend(ctx context.Context, id string, until time.Time) error
	// Pause stops a box and keeps its files. A paused box: nil.
	Pause(ctx context.Context, id string) error
	// Destroy ends a box, its processes and its files. A box that is gone: nil.
	Destroy(ctx context.Context, id string) error
}

// Command is a process to start in a box.
type Command struct {
	// Name identifies the process within its box, and makes Spawn repeatable:
	// letters, digits, dot, dash and underscore.
	Name string
	Args []string
	// Env is added to the box's own small environment (PATH, HOME, LANG).
	Env []string
	// Dir is an absolute path in the box, of WorkDir, RunDir or what lies below
	// them: anything else is refused. Empty means RepoDir if it exists, else
	// WorkDir.
	Dir string
	// Stdin is handed to the process whole; empty means /dev/null.
	Stdin []byte
}

// Process is the state of a process in a box.
type Process struct {
	Name    string
	PID     int
	Running bool
	// ExitCode is -1 while it runs, or when a signal ended it.
	ExitCode int
	// Signal names what ended it, if a signal did.
	Signal string
	// Output is the path of the file in the box that holds stdout and stderr
	// together, in the order they were written.
	Output  string
	Started time.Time
	// Size of the output file, in bytes.
	Size int64
}

// Box is a handle on a living box. It holds nothing that matters: another
// handle on the same box, made by another process, sees the same.
type Box interface {
	// Spawn starts a process group, detached from the caller. If the box has
	// already had a process of that name, running or ended, that one is
	// returned and nothing is started.
	Spawn(ctx context.Context, cmd Command) (Process, error)
	// Process returns the state of one process; ErrGone if there was none.
	Process(ctx context.Context, name string) (Process, error)
	// Kill ends the whole process group: SIGTERM, then SIGKILL after grace. It
	// returns when the group is gone. A process that has ended: nil.
	Kill(ctx context.Context, name string, grace time.Duration) error
	// ReadFrom returns what a file holds from an offset, at most 1 MiB; empty
	// at the end. fs.ErrNotExist when there is no such file.
	ReadFrom(ctx context.Context, path string, off int64) ([]byte, error)
	// Write replaces a file atomically, making its parents. Paths lie below
	// WorkDir or RunDir; anything else is refused.
	Write(ctx context.Context, path string, data []byte, mode fs.FileMode) error
	// Dial connects to a TCP port on the box's own loopback.
	Dial(ctx context.Context, port int) (net.Conn, error)
}
