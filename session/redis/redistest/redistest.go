// Package redistest runs a real redis-server for a test.
package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a server may take to start or to end.
const patience = time.Minute

// Server is a redis-server on a unix socket in a directory of its own, in memory
// where there is room (see makeDir). It forces every write to its file unless
// told otherwise. It is used from the test's own goroutine.
type Server struct {
	tb      testing.TB
	dir     string
	program string
	args    []string
	env     []string

	process *os.Process
	exited  chan struct{} // closed when process has ended
	guard   *guard
}

// Start runs a server until the test ends. Arguments such as "--maxmemory",
// "4mb" come last and so override ours. A machine without redis-server fails
// the test: what it shows cannot be shown otherwise.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	s := prepare(tb)
	s.args = append([]string{
		"--port", "0", "--unixsocket", s.Socket(), "--dir", s.dir, "--save", "",
		"--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction",
	}, args...)
	s.Restart()
	return s
}

// StartNewer is Start for what only Redis 7.2 or newer can do. It skips the
// test where there is none: what is installed may be older. NewerEnv names
// another program to try.
func StartNewer(tb testing.TB, args ...string) *Server {
	tb.Helper()
	program := newer(tb)
	s := Start(tb, args...)
	s.Kill()
	s.program = program
	s.Restart()
	return s
}

// prepare makes the directory of a server, which ends with the test.
func prepare(tb testing.TB) *Server {
	tb.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		tb.Fatal("this test needs redis-server 7.0 or newer: apt install redis-server, dnf install redis, or brew install redis")
	}
	dir, err := makeDir(tb)
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{tb: tb, dir: dir, program: "redis-server"}
	tb.Cleanup(func() {
		s.Kill()
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
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

// Env sets variables of the environment, as NAME=VALUE, for the next Restart.
func (s *Server) Env(vars ...string) { s.env = vars }

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
	cmd := exec.Command(s.program, s.args...)
	cmd.Env = append(os.Environ(), s.env...)
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

// ping is nil when the server answers, if only that it wants a password.
func (s *Server) ping() error {
	line, err := s.ask("PING")
	if err == nil && line != "+PONG" && !strings.HasPrefix(line, "-NOAUTH") {
		err = fmt.Errorf("PING answered %q", line)
	}
	return err
}

// Do sends a command and returns the first line of the answer, or the text
// that follows it. An answer that is an error ends the test.
func (s *Server) Do(words ...string) string {
	s.tb.Helper()
	answer, err := s.ask(strings.Join(words, " "))
	if err != nil || strings.HasPrefix(answer, "-") {
		s.tb.Fatalf("%s: %s %v", strings.Join(words, " "), answer, err)
	}
	return answer
}

// ask speaks the protocol itself: go-redis stays in one package.
func (s *Server) ask(command string) (string, error) {
	conn, err := net.DialTimeout("unix", s.Socket(), time.Second)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // nothing is lost
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		return "", err
	}
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	line = strings.TrimSpace(line)
	if err != nil || !strings.HasPrefix(line, "$") {
		return line, err
	}
	size, err := strconv.Atoi(line[1:])
	if err != nil || size < 0 {
		return "", err
	}
	text := make([]byte, size)
	_, err = io.ReadFull(in, text)
	return string(text), err
}
