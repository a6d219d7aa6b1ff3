package opencode

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ship/sandbox"
)

// hostBox is a box without walls, for tests: plain processes of this machine.
// The folders of a box lie in one of its own, and their paths are moved there
// in everything that passes through.
type hostBox struct {
	root string
	move *strings.Replacer

	mu    sync.Mutex
	procs map[string]*hostProc
	// lost makes every call fail as if the box were gone.
	lost error
}

type hostProc struct {
	cmd  *exec.Cmd
	out  string
	done chan struct{}
}

func newHostBox(t testing.TB) *hostBox {
	t.Helper()
	root := t.TempDir()
	b := &hostBox{
		root: root, procs: map[string]*hostProc{},
	}
	var pairs []string
	for _, dir := range []string{sandbox.RepoDir, sandbox.HomeDir, sandbox.RunDir, shelfDir} {
		pairs = append(pairs, dir, b.path(dir))
	}
	b.move = strings.NewReplacer(pairs...)
	for _, dir := range []string{sandbox.RepoDir, sandbox.HomeDir, sandbox.RunDir} {
		if err := os.MkdirAll(b.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(b.close)
	return b
}

func (b *hostBox) path(p string) string { return filepath.Join(b.root, p) }

func (b *hostBox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.procs {
		// The group may have ended by itself.
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
	}
}

func (b *hostBox) gone() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}

func (b *hostBox) Spawn(_ context.Context, c sandbox.Command) (sandbox.Process, error) {
	if err := b.gone(); err != nil {
		return sandbox.Process{}, err
	}
	b.mu.Lock()
	_, had := b.procs[c.Name]
	b.mu.Unlock()
	if !had {
		if err := b.spawn(c); err != nil {
			return sandbox.Process{}, err
		}
	}
	return b.Process(context.Background(), c.Name)
}

func (b *hostBox) spawn(c sandbox.Command) error {
	out := b.path(sandbox.RunDir + "/" + c.Name + ".out")
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer f.Close()
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		args[i] = b.move.Replace(a)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = b.path(cmp.Or(c.Dir, sandbox.RepoDir))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HOME=" + b.path(sandbox.HomeDir)}
	for _, e := range c.Env {
		cmd.Env = append(cmd.Env, b.move.Replace(e))
	}
	cmd.Stdin = bytes.NewReader(c.Stdin)
	cmd.Stdout, cmd.Stderr = f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	p := &hostProc{cmd: cmd, out: sandbox.RunDir + "/" + c.Name + ".out", done: make(chan struct{})}
	go func() {
		defer close(p.done)
		// How it ended is in ProcessState.
		_ = cmd.Wait()
	}()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.procs[c.Name] = p
	return nil
}

func (b *hostBox) proc(name string) *hostProc {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.procs[name]
}

func (b *hostBox) Process(_ context.Context, name string) (sandbox.Process, error) {
	if err := b.gone(); err != nil {
		return sandbox.Process{}, err
	}
	p := b.proc(name)
	if p == nil {
		return sandbox.Process{}, fmt.Errorf("process %s: %w", name, sandbox.ErrGone)
	}
	out := sandbox.Process{Name: name, PID: p.cmd.Process.Pid, Running: true, ExitCode: -1, Output: p.out}
	select {
	case <-p.done:
		out.Running, out.ExitCode = false, p.cmd.ProcessState.ExitCode()
	default:
	}
	if info, err := os.Stat(b.path(p.out)); err == nil {
		out.Size = info.Size()
	}
	return out, nil
}

func (b *hostBox) Kill(_ context.Context, name string, grace time.Duration) error {
	if err := b.gone(); err != nil {
		return err
	}
	p := b.proc(name)
	if p == nil {
		return fmt.Errorf("process %s: %w", name, sandbox.ErrGone)
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		// ESRCH says that it has ended, which is what is wanted.
		_ = syscall.Kill(-p.cmd.Process.Pid, sig)
		select {
		case <-p.done:
			return nil
		case <-time.After(grace):
		}
	}
	return errors.New("process does not end")
}

func (b *hostBox) ReadFrom(_ context.Context, path string, off int64) ([]byte, error) {
	if err := b.gone(); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(b.path(path))
	if err != nil {
		return nil, err
	}
	off = min(off, int64(len(data)))
	return data[off:min(off+1<<20, int64(len(data)))], nil
}

func (b *hostBox) Write(_ context.Context, path string, data []byte, mode fs.FileMode) error {
	if err := b.gone(); err != nil {
		return err
	}
	return os.WriteFile(b.path(path), []byte(b.move.Replace(string(data))), mode)
}

func (b *hostBox) Dial(ctx context.Context, port int) (net.Conn, error) {
	if err := b.gone(); err != nil {
		return nil, err
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", fmt.Sprint("127.0.0.1:", port))
}
