package opencode

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"ship/sandbox"
	"ship/sandbox/agent"
)

const (
	// starting bounds a start: 2 to 10 seconds were measured, more on a machine
	// that is busy.
	starting = 90 * time.Second
	// grace between SIGTERM and SIGKILL. The server keeps nothing unwritten
	// that SIGTERM would save.
	grace = 2 * time.Second
	// glance is how often files in the box are looked at while waiting: a box
	// has no signal for "this file has grown".
	glance = 100 * time.Millisecond
	// maxProbe is how long the last probe of a server waits, after shorter ones:
	// 34 seconds in all.
	maxProbe = 16 * time.Second
	// marker is in the environment of the server and of all that its tools have
	// started, which are recognised by it after the server itself has died.
	marker = "SHIP_AGENT=" + sandbox.HomeDir
)

// listening is what the server prints when it is ready. A request that arrives
// after it has bound its port and before this line hangs for ever.
var listening = []byte("opencode server listening on")

var errStarting = errors.New("opencode did not come up in time")

// record is how a running server is found again.
type record struct {
	Process  string `json:"process"`
	Password string `json:"password"`
	Digest   string `json:"digest"`
}

// server is OpenCode's process in one box.
type server struct {
	box     sandbox.Box
	program string
	port    int
	config  []byte
	digest  string
	env     []string
}

func newServer(box sandbox.Box, setup agent.Setup, port int) (*server, error) {
	config, err := render(setup)
	if err != nil {
		return nil, err
	}
	return &server{
		box: box, program: setup.Program, port: port,
		config: config, digest: digest(setup, config), env: setup.Env,
	}, nil
}

// up returns a client of a server that answers. If one is running it is that
// one; else a new one is started.
func (s *server) up(ctx context.Context) (c *client, started bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, starting, errStarting)
	defer cancel()
	rec, err := s.recall(ctx)
	if err != nil {
		return nil, false, err
	}
	if rec.Process != "" {
		c, err := s.find(ctx, rec)
		if c != nil || err != nil {
			return c, false, err
		}
	}
	if err := s.bury(ctx, rec); err != nil {
		return nil, false, err
	}
	c, err = s.launch(ctx)
	return c, err == nil, err
}

// recall reads the record; the zero record when there is none.
func (s *server) recall(ctx context.Context) (record, error) {
	b, err := s.box.ReadFrom(ctx, recordPath, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	if err != nil {
		return record{}, fmt.Errorf("read %s: %w", recordPath, err)
	}
	var rec record
	if json.Unmarshal(b, &rec) != nil {
		// The agent may write here too. What cannot be read is started anew.
		return record{}, nil
	}
	return rec, nil
}

// find returns a client of the recorded server if it lives and may stay; nil
// without error says that a new one is needed.
func (s *server) find(ctx context.Context, rec record) (*client, error) {
	proc, err := s.box.Process(ctx, rec.Process)
	if errors.Is(err, sandbox.ErrGone) && !s.gone(ctx) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at process: %w", err)
	}
	if !proc.Running {
		return nil, nil
	}
	c := newClient(s.box, s.port, rec.Password)
	if err := s.well(ctx, c, rec.Process); err != nil {
		return nil, ignoreSick(ctx, err)
	}
	if rec.Digest == s.digest {
		return c, nil
	}
	busy, err := c.busy(ctx)
	if err != nil || busy {
		return c, err
	}
	return nil, nil
}

// well waits for a running server, but leaves time for another one.
func (s *server) well(ctx context.Context, c *client, process string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, starting/2, errStarting)
	defer cancel()
	return s.ready(ctx, c, process)
}

// gone tells a box that is gone from a process that never was: ErrGone may mean
// either.
func (s *server) gone(ctx context.Context) bool {
	_, err := s.box.ReadFrom(ctx, recordPath, 0)
	return errors.Is(err, sandbox.ErrGone)
}

// ignoreSick passes on what a new server would not cure.
func ignoreSick(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrAuth) {
		return err
	}
	return nil
}

// bury ends the recorded server, and everything that any server has left behind.
// Tools run in process groups of their own, so ending the server's group is not
// enough; and a record can be lost while its server holds the port.
func (s *server) bury(ctx context.Context, rec record) error {
	if rec.Process != "" {
		err := s.box.Kill(ctx, rec.Process, grace)
		if err != nil && (!errors.Is(err, sandbox.ErrGone) || s.gone(ctx)) {
			return fmt.Errorf("end old server: %w", err)
		}
	}
	return shell(ctx, s.box, "sweep", "-c", sweepScript, "sh", marker)
}

// sweepScript kills every process that has $1 in its environment, several
// times because they may be forking.
const sweepScript = `
for round in 1 2 3 4 5; do
	found=$(grep -lzxF -e "$1" /proc/[0-9]*/environ 2>/dev/null)
	[ -n "$found" ] || break
	for file in $found; do
		pid=${file#/proc/}
		kill -9 "${pid%/environ}" 2>/dev/null
	done
done
exit 0`

// launch starts a new server. The record is written first, so that a crash
// right after Spawn leaves nothing behind that is not known.
func (s *server) launch(ctx context.Context) (*client, error) {
	rec := record{Process: "opencode-" + random(6), Password: random(16), Digest: s.digest}
	b, err := json.Marshal(rec)
	if err != nil {
		return nil, fmt.Errorf("write record: %w", err)
	}
	if err := s.box.Write(ctx, configPath, s.config, 0o600); err != nil {
		return nil, fmt.Errorf("write settings: %w", err)
	}
	if err := s.box.Write(ctx, recordPath, b, 0o600); err != nil {
		return nil, fmt.Errorf("write record: %w", err)
	}
	_, err = s.box.Spawn(ctx, sandbox.Command{
		Name: rec.Process, Dir: sandbox.RepoDir, Env: environment(rec, s.env),
		Args: []string{s.program, "serve", "--hostname", "127.0.0.1", "--port", strconv.Itoa(s.port)},
	})
	if err != nil {
		return nil, fmt.Errorf("spawn: %w", err)
	}
	c := newClient(s.box, s.port, rec.Password)
	if err := s.ready(ctx, c, rec.Process); err != nil {
		return nil, err
	}
	return c, nil
}

// ready waits for the line, and then for an answer, with more patience each time:
// a request that hangs is of no use, and a server whose machine is busy is none
// that hangs, and has tools to lose.
func (s *server) ready(ctx context.Context, c *client, process string) error {
	if err := s.awaitLine(ctx, process); err != nil {
		return err
	}
	for patience := time.Second; patience <= maxProbe; patience *= 2 {
		if c.healthy(ctx, patience) {
			return nil
		}
		if err := sandbox.Sleep(ctx, patience/10); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: no answer to the health probe", agent.ErrDown)
}

// awaitLine reads the output file by offset until the line is there.
func (s *server) awaitLine(ctx context.Context, process string) error {
	var seen []byte
	var off int64
	for {
		proc, err := s.box.Process(ctx, process)
		if err != nil {
			return fmt.Errorf("look at process: %w", err)
		}
		more, err := s.box.ReadFrom(ctx, proc.Output, off)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read output: %w", err)
		}
		off += int64(len(more))
		seen = append(seen, more...)
		if bytes.Contains(seen, listening) {
			return nil
		}
		if !proc.Running {
			return fmt.Errorf("%w: opencode ended with code %d: %s", agent.ErrDown, proc.ExitCode, tail(seen))
		}
		// Keep enough to find a line that is split between two reads.
		seen = seen[max(0, len(seen)-2048):]
		if err := sandbox.Sleep(ctx, glance); err != nil {
			return err
		}
	}
}

// tail is the end of an output, fit for an error.
func tail(b []byte) string {
	b = bytes.TrimSpace(b)
	return string(bytes.ToValidUTF8(b[max(0, len(b)-500):], nil))
}

// healthy asks once.
func (c *client) healthy(ctx context.Context, patience time.Duration) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errStarting)
	defer cancel()
	var out struct {
		Healthy bool `json:"healthy"`
	}
	err := c.get(ctx, "/global/health", &out)
	return err == nil && out.Healthy
}

// shell runs a small script in the box. A process name is used once only, so
// that a repeat really runs again.
func shell(ctx context.Context, box sandbox.Box, name string, args ...string) error {
	name += "-" + random(6)
	out, err := sandbox.Exec(ctx, box, sandbox.Command{
		Name: name, Dir: sandbox.WorkDir, Args: append([]string{"/bin/sh"}, args...),
	})
	if err != nil {
		return err
	}
	if out.ExitCode != 0 {
		return fmt.Errorf("%s: exit code %d: %s", name, out.ExitCode, tail(out.Data))
	}
	return nil
}

func random(n int) string {
	b := make([]byte, n)
	// Read never fails and always fills b, by its documentation.
	rand.Read(b)
	return hex.EncodeToString(b)
}
