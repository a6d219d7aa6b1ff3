package dockertest

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/moby/moby/api/types/container"
)

// box is guarded by the engine's lock; its processes live on their own.
type box struct {
	id, name string
	order    container.CreateRequest
	created  time.Time
	// first is its first process; 0: it was never started.
	first  int
	exited chan struct{}
	frozen bool
	said   text
	// removed is closed when it is no more.
	removed chan struct{}
}

// text is written by a process and read meanwhile.
type text struct {
	mu   sync.Mutex
	data []byte // guarded by mu
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	return len(p), nil
}

func (t *text) take() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.data)
}

func (c *box) state() container.ContainerState {
	switch {
	case c.first == 0:
		return container.StateCreated
	case c.hasExited():
		return container.StateExited
	case c.frozen:
		return container.StatePaused
	}
	return container.StateRunning
}

func (c *box) hasExited() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// carries: each is "name=value" or a name alone.
func (c *box) carries(labels map[string]bool) bool {
	for label := range labels {
		name, want, valued := strings.Cut(label, "=")
		got, ok := c.order.Labels[name]
		if !ok || valued && got != want {
			return false
		}
	}
	return true
}

// start starts the first process, in namespaces of its own.
func (c *box) start() error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = read.Close() }()
	cmd := exec.Command("bwrap", c.args()...)
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.ExtraFiles = []*os.File{write, read}
	cmd.Stdout, cmd.Stderr = &c.said, &c.said
	err = cmd.Start()
	_ = write.Close()
	if err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	text, err := io.ReadAll(read)
	if err != nil {
		return err
	}
	var info struct {
		PID int `json:"child-pid"`
	}
	if err := json.Unmarshal(text, &info); err != nil {
		return fmt.Errorf("starting a container: %w", err)
	}
	c.first, c.exited, c.frozen = info.PID, exited, false
	return nil
}

// args are those of bubblewrap. As root it makes no user namespace, so that the
// container's user is that of the machine, as with an engine.
func (c *box) args() []string {
	h := c.order.HostConfig
	uid, gid, _ := strings.Cut(c.order.User, ":")
	args := []string{
		"--info-fd", "3", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--as-pid-1",
		"--new-session", "--hostname", c.order.Hostname, "--clearenv", "--chdir", c.order.WorkingDir,
		"--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "--ro-bind", "/usr", "/usr",
	}
	for _, pair := range c.order.Env {
		name, value, _ := strings.Cut(pair, "=")
		args = append(args, "--setenv", name, value)
	}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
		} else {
			args = append(args, "--ro-bind-try", dir, dir)
		}
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev")
	// What bubblewrap makes on the way is for its own user only.
	for _, dir := range []string{"/etc", "/opt", "/opt/ship", "/run"} {
		args = append(args, "--perms", "0755", "--dir", dir)
	}
	for path := range h.Tmpfs {
		args = append(args, "--perms", "1777", "--tmpfs", path)
	}
	for _, m := range h.Mounts {
		how := "--bind"
		if m.ReadOnly {
			how = "--ro-bind"
		}
		args = append(args, how, m.Source, m.Target)
	}
	if h.ReadonlyRootfs {
		args = append(args, "--remount-ro", "/")
	}
	command := append(append([]string{}, c.order.Entrypoint...), c.order.Cmd...)
	if os.Getuid() != 0 {
		args = append(args, "--unshare-user", "--uid", uid, "--gid", gid, "--")
		return append(args, command...)
	}
	args = append(args, "--", "/usr/bin/setpriv", "--reuid="+uid, "--regid="+gid, "--clear-groups",
		"--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--")
	return append(args, command...)
}

// halt ends all processes: the first one is asked, and killed after grace.
func (c *box) halt(grace time.Duration) {
	if c.first == 0 || c.hasExited() {
		return
	}
	_ = c.thaw()
	if grace > 0 {
		_ = syscall.Kill(c.first, syscall.SIGTERM)
		select {
		case <-c.exited:
			return
		case <-time.After(grace):
		}
	}
	_ = syscall.Kill(c.first, syscall.SIGKILL)
	<-c.exited
}

func (c *box) freeze() error {
	c.frozen = true
	return syscall.Kill(c.first, syscall.SIGSTOP)
}

func (c *box) thaw() error {
	c.frozen = false
	return syscall.Kill(c.first, syscall.SIGCONT)
}
