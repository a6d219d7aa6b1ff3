package redis_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ship/session/redis"
)

// gatewayEnv makes the test binary a gateway that runs an embedded server in
// the directory it names, until it is killed.
const gatewayEnv = "SHIP_TEST_GATEWAY_DIR"

// TestGatewayProcess is that gateway and no test by itself.
func TestGatewayProcess(t *testing.T) {
	dir := os.Getenv(gatewayEnv)
	if dir == "" {
		t.Skip("runs only as the child of TestEmbeddedTakeover")
	}
	srv, err := redis.Embedded(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := redis.Open(t.Context(), redis.Options{URL: srv.URL()})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, "a")
	fmt.Println("\nready")
	select {} // until SIGKILL
}

// shortDir is a directory whose sockets' paths are short enough.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ship")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "re%20dis ?") // a path, not a part of a URL
}

func embedded(t testing.TB, dir string) *redis.Server {
	t.Helper()
	srv, err := redis.Embedded(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return srv
}

func pidOf(t testing.TB, url string) int {
	t.Helper()
	info, err := raw(t, url).Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "process_id:")
	pid, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	for round := range 2 { // the data outlives the server
		srv := embedded(t, dir)
		s, err := redis.Open(t.Context(), redis.Options{URL: srv.URL()})
		if err != nil {
			t.Fatal(err)
		}
		if d, err := s.Durability(t.Context()); err != nil || !d.Safe() {
			t.Errorf("Durability = %s, %v; want it safe", d, err)
		}
		r, err := s.Append(t.Context(), delivery("a"))
		if err != nil || r.Duplicate != (round == 1) {
			t.Errorf("round %d: Append = %+v, %v", round, r, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := srv.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "redis.sock")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is still there: %v", err)
		}
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory's mode is %v, %v; want 0700", info.Mode(), err)
	}
}

func TestEmbeddedRunEnds(t *testing.T) {
	t.Parallel()
	srv := embedded(t, shortDir(t))
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx) }()
	cancel(errors.New("shutting down"))
	if err := <-ended; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}

func TestEmbeddedServerDies(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	srv := embedded(t, dir)
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(t.Context()) }()
	if err := syscall.Kill(pidOf(t, srv.URL()), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Run = %v, want it to say that the server was killed", err)
	}
	// Its socket is left behind; the next one starts nevertheless.
	if err := embedded(t, dir).Close(); err != nil {
		t.Error(err)
	}
}

// TestEmbeddedTakeover kills a gateway. Its server lives on, is found by the
// next gateway, and ends with that.
func TestEmbeddedTakeover(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	gateway := exec.Command(os.Args[0], "-test.run=^TestGatewayProcess$")
	gateway.Env = append(os.Environ(), gatewayEnv+"="+dir)
	out, err := gateway.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := gateway.Start(); err != nil {
		t.Fatal(err)
	}
	awaitLine(t, out, "ready")
	if _, err := redis.Embedded(t.Context(), dir, nil); err == nil || !strings.Contains(err.Error(), "another ship") {
		t.Errorf("a second gateway in the same directory: %v, want it refused", err)
	}
	pid := pidOf(t, redis.EmbeddedURL(dir))
	t.Cleanup(func() {
		if t.Failed() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // or it would outlive the test as well
		}
	})
	if err := gateway.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = gateway.Wait() // "signal: killed" is what was asked for

	srv := embedded(t, dir)
	if got := pidOf(t, srv.URL()); got != pid {
		t.Errorf("server %d runs, want %d to be taken over", got, pid)
	}
	s, err := redis.Open(t.Context(), redis.Options{URL: srv.URL()})
	if err != nil {
		t.Fatal(err)
	}
	if c := mustClaim(t, s, "t1"); len(c.Events) != 1 {
		t.Errorf("%d events, want the one that the killed gateway took in", len(c.Events))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := srv.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	// Not by its pid: nobody may have collected the orphan's status yet.
	if conn, err := net.Dial("unix", filepath.Join(dir, "redis.sock")); err == nil {
		t.Errorf("server %d still listens", pid)
		_ = conn.Close()
	}
}

// TestEmbeddedSilentServer: an earlier server that has the data but does not
// answer must not get company.
func TestEmbeddedSilentServer(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	lock, err := os.OpenFile(makeDir(t, dir)+"/server.lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := redis.Embedded(ctx, dir, nil); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "earlier") {
		t.Errorf("Embedded = %v, want it to wait for the earlier server", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := embedded(t, dir).Close(); err != nil {
		t.Error(err)
	}
}

func TestEmbeddedCannotStart(t *testing.T) {
	t.Run("not installed", func(t *testing.T) {
		t.Setenv("PATH", "/nonexistent")
		_, err := redis.Embedded(t.Context(), shortDir(t), nil)
		if err == nil || !strings.Contains(err.Error(), "apt install redis-server") {
			t.Errorf("Embedded = %v, want a remedy", err)
		}
	})
	t.Run("long path", func(t *testing.T) {
		_, err := redis.Embedded(t.Context(), filepath.Join(shortDir(t), strings.Repeat("x", 100)), nil)
		if err == nil || !strings.Contains(err.Error(), "shorter data_dir") {
			t.Errorf("Embedded = %v, want a remedy", err)
		}
	})
	t.Run("broken data", func(t *testing.T) {
		dir := shortDir(t)
		if err := os.WriteFile(filepath.Join(makeDir(t, dir), "appendonlydir"), []byte("not a directory"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := redis.Embedded(t.Context(), dir, nil)
		if err == nil || !strings.Contains(err.Error(), "redis.log") {
			t.Errorf("Embedded = %v, want it to name the log", err)
		}
	})
}

func makeDir(t testing.TB, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// awaitLine reads until a line.
func awaitLine(t testing.TB, r interface{ Read([]byte) (int, error) }, want string) {
	t.Helper()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if lines.Text() == want {
			return
		}
	}
	t.Fatalf("no line %q", want)
}
