package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ship/session"
)

const (
	// maxSocketPath is what sun_path leaves for a name on Linux, without the
	// zero at its end; other systems have a little less and say so themselves.
	maxSocketPath = 107
	// stopTime is how long a server may take to write its file and end.
	stopTime = 10 * time.Second
	// lookEvery is how often a server that gives no signal is looked at.
	lookEvery = 50 * time.Millisecond
)

// errInUse: another gateway has the directory.
var errInUse = errors.New("another ship is using it: stop that one, or set another data_dir")

// EmbeddedURL is where the server of a directory is reached while it runs.
func EmbeddedURL(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return (&url.URL{Scheme: "unix", Path: socketOf(dir)}).String()
}

func socketOf(dir string) string { return filepath.Join(dir, "redis.sock") }

// Server is the machine's own redis-server, run for one gateway. It listens on
// a unix socket only and forces every write to the disk.
type Server struct {
	dir     string
	log     *slog.Logger
	lock    *os.File    // held while this gateway lives; see unlock
	process *os.Process // of the server
	exited  chan struct{}
	state   string // how it ended, set before exited is closed
	stop    func() error
}

// Embedded makes sure that a redis-server runs on dir's data and waits until it
// answers. A server that outlived a killed gateway is taken over. It ends with
// Close or Run, and survives the death of this process.
func Embedded(ctx context.Context, dir string, log *slog.Logger) (*Server, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	dir, err := filepath.Abs(dir) // the server changes to it
	if err != nil {
		return nil, fmt.Errorf("find data_dir: %w", err)
	}
	s := &Server{dir: dir, log: log, exited: make(chan struct{})}
	s.stop = sync.OnceValue(s.shutdown)
	if err := s.start(ctx); err != nil {
		return nil, fmt.Errorf("run redis-server in %s: %w", dir, err)
	}
	return s, nil
}

// URL for Options.
func (s *Server) URL() string { return EmbeddedURL(s.dir) }

// Run returns when the server ended, which is an error, or when it was stopped
// because ctx ended or Close was called.
func (s *Server) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return s.Close()
	case <-s.exited:
		return s.Close()
	}
}

// Close stops the server and waits for it. Every call answers the same; an
// error says that it had ended by itself, or had to be killed.
func (s *Server) Close() error { return s.stop() }

func (s *Server) start(ctx context.Context) (err error) {
	if len(socketOf(s.dir)) > maxSocketPath {
		return fmt.Errorf("the path of its socket would have %d bytes, the system allows %d: set a shorter data_dir", len(socketOf(s.dir)), maxSocketPath)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(s.dir, 0o700); err != nil {
		return err
	}
	if s.lock, err = tryLock(filepath.Join(s.dir, "gateway.lock")); err != nil {
		return err
	}
	if s.lock == nil {
		return errInUse
	}
	if err := s.obtain(ctx); err != nil {
		return errors.Join(err, unlock(s.lock))
	}
	return nil
}

// obtain starts a server or takes one over. A server holds the lock of its data
// for as long as it lives, so that two never write to the same files: whoever
// gets the lock may start one, and as long as nobody gets it, one is there.
func (s *Server) obtain(ctx context.Context) error {
	for {
		lock, err := tryLock(s.lockFile())
		if err != nil {
			return err
		}
		if lock != nil {
			return s.launch(ctx, lock)
		}
		if err := s.adopt(ctx); err == nil {
			return nil
		}
		if err := session.Sleep(ctx, lookEvery); err != nil {
			return fmt.Errorf("an earlier redis-server has the data and does not answer on its socket: %w", err)
		}
	}
}

// tryLock returns nil when somebody else holds the lock.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close() // was only opened to be locked
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// unlock gives a lock back at once. Closing the file alone would leave it with a
// program that this process is just starting, until that runs.
func unlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// launch starts a server that inherits the lock, and waits for it.
func (s *Server) launch(ctx context.Context, lock *os.File) error {
	defer func() { _ = lock.Close() }() // the server has its own copy by then
	if err := os.Remove(socketOf(s.dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	out, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // likewise
	cmd := exec.Command("redis-server", embeddedArgs(s.dir)...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = []*os.File{lock}
	// Its own process group: a Ctrl-C at the terminal is for the gateway, which
	// still has to write its last commits.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return missing(err)
	}
	s.process = cmd.Process
	go func() {
		_ = cmd.Wait() // its state says all
		s.state = cmd.ProcessState.String()
		close(s.exited)
	}()
	if err := s.awaitReady(ctx); err != nil {
		return err
	}
	s.log.InfoContext(ctx, "redis-server started", "dir", s.dir, "pid", s.process.Pid)
	return nil
}

// missing says what to do when there is no redis-server.
func missing(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("redis-server is not installed: install it (apt install redis-server, dnf install redis, brew install redis) or set redis.url")
	}
	return err
}

func embeddedArgs(dir string) []string {
	return []string{
		"--port", "0", "--unixsocket", socketOf(dir), "--unixsocketperm", "700",
		"--dir", dir, "--daemonize", "no", "--save", "",
		"--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction",
	}
}

func (s *Server) lockFile() string { return filepath.Join(s.dir, "server.lock") }

func (s *Server) logFile() string { return filepath.Join(s.dir, "redis.log") }

// awaitReady returns when the server has loaded its data and answers. When it
// returns an error, no server runs.
func (s *Server) awaitReady(ctx context.Context) error {
	for {
		if _, err := s.ask(ctx); err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return s.end()
		default:
		}
		if err := session.Sleep(ctx, lookEvery); err != nil {
			return errors.Join(fmt.Errorf("wait for it: %w", err), s.end())
		}
	}
}

// ask returns the pid of the server on the socket, which answers only when its
// data is loaded.
func (s *Server) ask(ctx context.Context) (pid int, err error) {
	opts, err := parseSingle(s.URL())
	if err != nil {
		return 0, err
	}
	rdb := goredis.NewClient(opts)
	defer func() { _ = rdb.Close() }()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return 0, err
	}
	info, err := rdb.Info(ctx, "server").Result()
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(infoFields(info)["process_id"])
}

// adopt takes over the server that a killed gateway left behind. Asking again
// makes sure that the handle belongs to the server and not to a process that
// got its number in between.
func (s *Server) adopt(ctx context.Context) error {
	pid, err := s.ask(ctx)
	if err != nil {
		return err
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	if again, err := s.ask(ctx); err != nil || again != pid {
		return errors.Join(errors.New("the server changed"), err, process.Release())
	}
	lock, err := os.OpenFile(s.lockFile(), os.O_RDWR, 0)
	if err != nil {
		return errors.Join(err, process.Release())
	}
	s.process = process
	go s.watch(lock)
	s.log.InfoContext(ctx, "redis-server of an earlier run taken over", "dir", s.dir, "pid", pid)
	return nil
}

// watch waits for a server that is not our child. Its lock tells of its end,
// even where nobody collects the status of orphans.
func (s *Server) watch(lock *os.File) {
	defer close(s.exited)
	s.state = "its status is unknown"
	for errors.Is(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX), syscall.EINTR) {
		continue // a signal for us came in between
	}
	_ = unlock(lock) // there is nobody to tell
}

// shutdown ends the server and gives the directory back.
func (s *Server) shutdown() error { return errors.Join(s.end(), unlock(s.lock)) }

func (s *Server) end() error {
	select {
	case <-s.exited:
		return fmt.Errorf("redis-server ended by itself (%s): see %s", s.state, s.logFile())
	default:
	}
	if err := s.process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop redis-server: %w", err)
	}
	select {
	case <-s.exited:
		return nil
	case <-time.After(stopTime):
	}
	if err := s.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill redis-server: %w", err)
	}
	<-s.exited
	return fmt.Errorf("redis-server did not stop within %s and was killed", stopTime)
}
