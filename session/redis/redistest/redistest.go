// Package redistest runs a real redis-server for a test.
package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a server may take to start or to end.
const patience = time.Minute

// Server is a redis-server on a unix socket in a directory of its own. It
// forces every write to the disk unless told otherwise. It is used from the
// test's own goroutine.
type Server struct {
	tb   testing.TB
	dir  string
	args []string

	process *os.Process
	exited  chan struct{} // closed when process has ended
	guard   *guard
}

// Start runs a server until the test ends. Arguments such as "--maxmemory",
// "4mb" come last and so override ours. A machine without redis-server fails
// the test: what it shows cannot be shown otherwise.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		tb.Fatal("this test needs redis-server 7.0 or newer: apt install redis-server, dnf install redis, or brew install redis")
	}
	// Not tb.TempDir: a socket's path may have only 107 bytes.
	dir, err := os.MkdirTemp("/tmp", "ship")
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{tb: tb, dir: dir, args: args}
	tb.Cleanup(func() {
		s.Kill()
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	s.Restart()
	return s
}

// URL for redis.Options and for redis.url.
func (s *Server) URL() string { return "unix://" + s.Socket() }

// Socket is the path of the server's socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, "s") }

// Dir is where the server's data and its log are.
func (s *Server) Dir() string { return s.dir }

// Kill ends the server at once, as SIGKILL does, and waits. A server that does
// not run is left alone.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	if err := s.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.tb.Errorf("kill redis-server: %v", err)
	}
	<-s.exited
	s.process = nil
	if err := s.guard.dismiss(); err != nil {
		s.tb.Error(err)
	}
}

// Freeze stops the server's process until Thaw, as a machine that hangs.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw lets a frozen server go on.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.tb.Helper()
	if err := s.process.Signal(sig); err != nil {
		s.tb.Fatalf("send %s to redis-server: %v", sig, err)
	}
}

// Restart starts a server that was killed again, on the same data, and waits
// until it has loaded that.
func (s *Server) Restart() {
	s.tb.Helper()
	if s.process != nil {
		s.tb.Fatal("redistest: Restart of a server that runs")
	}
	out, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		s.tb.Fatal(err)
	}
	defer func() { _ = out.Close() }() // the server has its own copy
	ours := []string{
		"--port", "0", "--unixsocket", s.Socket(), "--dir", s.dir, "--save", "",
		"--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction",
	}
	cmd := exec.Command("redis-server", append(ours, s.args...)...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		s.tb.Fatalf("start redis-server: %v", err)
	}
	s.process, s.exited = cmd.Process, make(chan struct{})
	go func() {
		defer close(s.exited)
		_ = cmd.Wait() // "signal: killed" is what is asked for
	}()
	if s.guard, err = newGuard(cmd.Process.Pid, s.dir); err != nil {
		s.tb.Fatal(err)
	}
	if err := s.awaitReady(); err != nil {
		said, _ := os.ReadFile(out.Name())
		s.tb.Fatalf("%v; redis-server said:\n%s", err, said)
	}
}

// awaitReady polls, for a server gives no signal.
func (s *Server) awaitReady() error {
	limit := time.After(patience)
	for {
		err := s.ping()
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return errors.New("redis-server ended at once")
		case <-limit:
			return fmt.Errorf("redis-server was not ready within %s: %w", patience, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// ping speaks the protocol itself: go-redis stays in one package.
func (s *Server) ping() error {
	conn, err := net.DialTimeout("unix", s.Socket(), time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing is lost
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if strings.TrimSpace(line) != "+PONG" {
		return fmt.Errorf("PING answered %q", line)
	}
	return nil
}
