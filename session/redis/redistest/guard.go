package redistest

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
)

// guard is a process that ends a server and removes its directory when the test
// process dies without doing so: killed, or ended by a panic or a timeout.
type guard struct {
	cmd   *exec.Cmd
	alive io.WriteCloser // the kernel closes it with the test process
}

func newGuard(pid int, dir string) (*guard, error) {
	cmd := exec.Command("sh", "-c", `read -r _ || { kill -9 "$1"; rm -rf "$2"; }`, "sh", strconv.Itoa(pid), dir)
	alive, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("guard redis-server: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("guard redis-server: %w", err)
	}
	return &guard{cmd, alive}, nil
}

// dismiss tells the guard that the server has ended already.
func (g *guard) dismiss() error {
	_, err := io.WriteString(g.alive, "dismissed\n")
	return errors.Join(err, g.alive.Close(), g.cmd.Wait())
}
