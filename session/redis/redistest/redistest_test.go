package redistest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// orphanEnv makes TestOrphan the process that dies with a server running.
const orphanEnv = "SHIP_TEST_ORPHAN"

func TestOrphan(t *testing.T) {
	if os.Getenv(orphanEnv) == "" {
		t.Skip("runs only as the child of TestNothingOutlivesTheTest")
	}
	fmt.Println("dir=" + Start(t).Dir())
	os.Exit(3) // as a panic or a timeout: no cleanup runs
}

func TestNothingOutlivesTheTest(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^TestOrphan$")
	cmd.Env = append(os.Environ(), orphanEnv+"=1")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Fatalf("the child ended with %v:\n%s", err, out)
	}
	_, rest, _ := strings.Cut(string(out), "dir=")
	dir, _, _ := strings.Cut(rest, "\n")
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			return
		}
	}
	t.Errorf("%s is still there", dir)
}

func TestRestartKeepsData(t *testing.T) {
	t.Parallel()
	s := Start(t)
	pid := s.process.Pid
	s.Freeze()
	s.Thaw()
	s.Kill()
	s.Kill() // the second time there is nothing to kill
	if err := s.ping(); err == nil {
		t.Error("a killed server answers")
	}
	s.Restart()
	if err := s.ping(); err != nil || s.process.Pid == pid {
		t.Errorf("after Restart: %v, pid %d and before %d", err, s.process.Pid, pid)
	}
}
