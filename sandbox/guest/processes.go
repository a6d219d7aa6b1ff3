package guest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ship/sandbox"
)

// procDir holds one folder per process, with its output, its exit and what it
// is. They are for who reads them from outside; what the guest itself needs to
// know it keeps in memory, where no process of the box can change it.
const procDir = sandbox.RunDir + "/proc"

var processName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// validName refuses what cannot be the name of a process.
func validName(name string) error {
	if !processName.MatchString(name) || name == "." || name == ".." {
		return fmt.Errorf("process name %q: only letters, digits, dot, dash and underscore, at most 128: %w", name, fs.ErrInvalid)
	}
	return nil
}

// processes are all that were ever started in this box, by name.
type processes struct {
	files  *files
	places places
	reaper *reaper
	// tag marks the environment of every process that this guest starts.
	tag string

	mu     sync.Mutex
	byName map[string]*process
}

func newProcesses(files *files, places places) *processes {
	return &processes{
		files:  files,
		places: places,
		reaper: newReaper(),
		tag:    rand.Text(),
		byName: make(map[string]*process),
	}
}

// process is one that was started, or is about to be.
type process struct {
	name string
	// ready is closed when the attempt to start it is over. Then err or pid,
	// started and output are set, and never change.
	ready   chan struct{}
	err     error
	pid     int
	started time.Time
	output  *output
	// done is closed when it has ended. Then exit is set.
	done chan struct{}
	exit exit
}

// exit is how a process ended, as its exit file says it.
type exit struct {
	Code   int       `json:"code"`
	Signal string    `json:"signal,omitempty"`
	Ended  time.Time `json:"ended"`
}

// about is what a process's meta file says.
type about struct {
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	Args    []string  `json:"args"`
	Dir     string    `json:"dir"`
}

// spawn starts a process, unless this name was started before.
func (ps *processes) spawn(cmd sandbox.Command) (sandbox.Process, error) {
	if err := validName(cmd.Name); err != nil {
		return sandbox.Process{}, err
	}
	p, first := ps.reserve(cmd.Name)
	if first {
		if p.err = ps.start(p, cmd); p.err != nil {
			ps.forget(p.name)
		}
		close(p.ready)
	}
	<-p.ready
	if p.err != nil {
		return sandbox.Process{}, p.err
	}
	return p.state(), nil
}

// reserve returns the process of that name, and whether it is ours to start.
func (ps *processes) reserve(name string) (p *process, first bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p, ok := ps.byName[name]; ok {
		return p, false
	}
	p = &process{name: name, ready: make(chan struct{}), done: make(chan struct{})}
	ps.byName[name] = p
	return p, true
}

// forget makes a name free again whose process never started.
func (ps *processes) forget(name string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.byName, name)
}

// find returns a process that was started, or ErrGone.
func (ps *processes) find(name string) (*process, error) {
	ps.mu.Lock()
	p, ok := ps.byName[name]
	ps.mu.Unlock()
	if ok {
		<-p.ready
		ok = p.err == nil
	}
	if !ok {
		return nil, fmt.Errorf("process %q: %w", name, sandbox.ErrGone)
	}
	return p, nil
}

func (p *process) state() sandbox.Process {
	state := sandbox.Process{
		Name:     p.name,
		PID:      p.pid,
		Running:  true,
		ExitCode: -1,
		Output:   outputPath(p.name),
		Started:  p.started,
	}
	select {
	case <-p.done:
		state.Running, state.ExitCode, state.Signal = false, p.exit.Code, p.exit.Signal
	default:
	}
	state.Size = p.output.size.Load()
	return state
}

func outputPath(name string) string { return path.Join(procDir, name, "output") }

// finish waits for the end of a process and writes it down, last of all.
func (ps *processes) finish(p *process, status <-chan unix.WaitStatus) {
	p.exit = exitOf(<-status)
	p.output.settle()
	// The file may be impossible to write (the disk is full); what is in memory
	// counts.
	_ = ps.note(p.name, "exit", p.exit)
	close(p.done)
}

func exitOf(status unix.WaitStatus) exit {
	e := exit{Code: -1, Ended: time.Now().UTC()}
	if status.Signaled() {
		e.Signal = unix.SignalName(status.Signal())
	} else {
		e.Code = status.ExitStatus()
	}
	return e
}

// note writes one of the small files of a process.
func (ps *processes) note(name, file string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return ps.files.write(path.Join(procDir, name, file), bytes.NewReader(append(text, '\n')), 0o644)
}

// folder makes the process's folder anew.
func (ps *processes) folder(name string) error {
	dir := path.Join("proc", name)
	if err := ps.files.run.RemoveAll(dir); err != nil {
		return err
	}
	return ps.files.run.MkdirAll(dir, 0o755)
}

// create makes a file in a process's folder that was not there.
func (ps *processes) create(name, file string) (*os.File, error) {
	return ps.files.run.OpenFile(path.Join("proc", name, file), os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o644)
}
