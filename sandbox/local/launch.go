package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"ship/sandbox/guest"
)

// launchPatience is how long a box may take to start.
const launchPatience = 30 * time.Second

// wrapper is what surrounds the guest of a box.
type wrapper interface {
	// check returns an error that wraps ErrIsolation if this machine cannot.
	check(ctx context.Context) error
	// command starts the guest of a box, which gets its listening socket as
	// descriptor 3. If info is true, the number of the guest's process comes in
	// JSON from descriptor 4; else it is that of the command.
	command(h home, id string) (cmd *exec.Cmd, info bool)
}

var errSlow = errors.New("it did not start in time")

// launch starts the guest of a box and returns when it serves. The order makes
// sure that there is never a box that nobody knows: the guest waits until its
// record is written, and ends if the one who writes it dies before.
func (p *Provider) launch(ctx context.Context, r *record) error {
	ctx, cancel := context.WithTimeoutCause(ctx, launchPatience, errSlow)
	defer cancel()
	h := p.home(r.ID)
	if err := h.make(); err != nil {
		return err
	}
	start, err := p.start(h, r.ID)
	if err != nil {
		return err
	}
	defer start.close()
	stop := context.AfterFunc(ctx, start.close)
	defer stop()
	if err := p.introduce(start, h, r); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("starting its guest: %w (%s)", err, h.tail())
	}
	return nil
}

// introduce gets the guest to serve.
func (p *Provider) introduce(start *start, h home, r *record) error {
	pid, err := start.pid()
	if err != nil {
		return err
	}
	if r.Process, err = identify(pid); err != nil {
		return err
	}
	r.Cgroups = p.cgroups.names(r.ID)
	if err := h.save(*r); err != nil {
		return err
	}
	if err := p.cgroups.join(r.Cgroups, pid); err != nil {
		return err
	}
	if err := writeFile(h.expires(), guest.FormatExpiry(r.Expires)); err != nil {
		return err
	}
	if _, err := start.stdin.Write([]byte{1}); err != nil {
		return err
	}
	return start.ready()
}

// start is a guest that is being started, with our ends of its pipes.
type start struct {
	cmd                 *exec.Cmd
	stdin, stdout, info *os.File
}

func (p *Provider) start(h home, id string) (*start, error) {
	cmd, info := p.wrapper.command(h, id)
	s := &start{cmd: cmd}
	var theirs []*os.File
	defer func() { closeAll(theirs) }()
	log, err := os.OpenFile(h.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	theirs = append(theirs, log)
	cmd.Stderr = log
	socket, err := listener(h.socket())
	if err != nil {
		return nil, err
	}
	theirs = append(theirs, socket)
	if err := s.pipes(&theirs, info); err != nil {
		s.close()
		return nil, err
	}
	cmd.Dir = "/"
	// A session of its own: no signal for us reaches it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.ExtraFiles = append([]*os.File{socket}, cmd.ExtraFiles...)
	if err := cmd.Start(); err != nil {
		s.close()
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	// Only so that it does not stay behind as a zombie while we live.
	go func() { _ = cmd.Wait() }()
	return s, nil
}

// pipes connects the guest with us. What it gets is appended to theirs.
func (s *start) pipes(theirs *[]*os.File, info bool) error {
	stdin, input, err := os.Pipe()
	if err != nil {
		return err
	}
	*theirs = append(*theirs, stdin)
	s.cmd.Stdin, s.stdin = stdin, input
	output, stdout, err := os.Pipe()
	if err != nil {
		return err
	}
	*theirs = append(*theirs, stdout)
	s.cmd.Stdout, s.stdout = stdout, output
	if !info {
		return nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	*theirs = append(*theirs, write)
	// It gets the reading end as well. Without it, bubblewrap would be killed by
	// SIGPIPE if we died now, and its child would wait for it for ever.
	s.cmd.ExtraFiles, s.info = []*os.File{write, read}, read
	return nil
}

// listener makes the socket of a box. It outlives us in the guest's hands.
func listener(path string) (*os.File, error) {
	l, err := guest.ListenUnix(path)
	if err != nil {
		return nil, fmt.Errorf("making the box's socket: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.File()
}

// pid returns the number of the guest's process, as we see it.
func (s *start) pid() (int, error) {
	if s.info == nil {
		return s.cmd.Process.Pid, nil
	}
	text, err := io.ReadAll(io.LimitReader(s.info, 4<<10))
	if err != nil {
		return 0, err
	}
	return parseInfo(text)
}

// ready waits until the guest serves. Its stdout ends if it never will.
func (s *start) ready() error {
	if _, err := bufio.NewReader(io.LimitReader(s.stdout, 1<<10)).ReadString('\n'); err != nil {
		return errors.New("it ended at once")
	}
	return nil
}

// close may be called twice. A guest that still waits for us ends with it.
func (s *start) close() { closeAll([]*os.File{s.stdin, s.stdout, s.info}) }

func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close() // A nil file is an error, too.
	}
}
