package guest

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ship/sandbox"
)

// A terminal is a shell in the box on a connection of its own. It is no port of
// the box, on which any process could listen in the guest's place: the way to
// it is the guest's API. It ends with its connection, and the box's processes
// with the box as ever.
//
// Both sides send messages: a byte that says what it is, the length in two, and
// so many bytes. A client sends what was typed and the size of its window; the
// guest sends what is to be shown, and at the end the exit code.
const (
	termData byte = 'd'
	termSize byte = 's' // rows and columns, two bytes each
	termExit byte = 'x' // the code, four bytes
)

// maxMessage is how much a message carries.
const maxMessage = 1<<16 - 1

// Window is the size of a terminal, in characters.
type Window struct{ Rows, Columns uint16 }

// termGrace is what a shell has to end by itself after its terminal was hung up.
const termGrace = 2 * time.Second

// terminal serves one shell.
func (s *server) terminal(w http.ResponseWriter, r *http.Request) {
	size, err := windowOf(r)
	if err != nil {
		refuse(w, err)
		return
	}
	p, screen, err := s.processes.shell(r.FormValue("term"), size)
	if err != nil {
		refuse(w, err)
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 5*termGrace) // the client has gone
		defer cancel()
		s.processes.hangUp(ctx, p, screen)
	}()
	outer, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		refuse(w, err)
		return
	}
	defer func() { _ = outer.Close() }()
	if err := switchTo(outer, r); err != nil {
		return
	}
	var through net.Conn = &conn{Conn: outer, buffered: buffered.Reader}
	if isFramed(r) {
		through = &framed{Conn: outer, in: buffered.Reader}
	}
	(&Terminal{conn: through}).serve(screen, p)
}

func windowOf(r *http.Request) (Window, error) {
	rows, err1 := strconv.ParseUint(r.FormValue("rows"), 10, 16)
	columns, err2 := strconv.ParseUint(r.FormValue("columns"), 10, 16)
	if err := errors.Join(err1, err2); err != nil {
		return Window{}, fmt.Errorf("window: %w", errors.Join(err, fs.ErrInvalid))
	}
	return Window{uint16(rows), uint16(columns)}, nil
}

// serve carries both ways until the client has gone or the shell has ended, and
// all that it has shown has been sent.
func (t *Terminal) serve(screen *os.File, p *process) {
	var shown sync.WaitGroup
	shown.Go(func() {
		if _, err := io.Copy(t, screen); errors.Is(err, syscall.EIO) { // nobody has the other side open
			<-p.done
			_ = t.send(termExit, binary.BigEndian.AppendUint32(nil, uint32(int32(p.exit.Code))))
		}
		_ = t.conn.Close()
	})
	for {
		kind, body, err := t.receive()
		if err != nil {
			break
		}
		switch {
		case kind == termData:
			_, err = screen.Write(body)
		case kind == termSize && len(body) == 4:
			err = resize(screen, Window{binary.BigEndian.Uint16(body), binary.BigEndian.Uint16(body[2:])})
		}
		if err != nil {
			break
		}
	}
	_ = screen.SetReadDeadline(time.Unix(1, 0))
	_ = t.conn.Close()
	shown.Wait()
}

// shell starts a login shell on a terminal of its own. screen is our side of it.
func (ps *processes) shell(term string, size Window) (p *process, screen *os.File, err error) {
	env := []string{"TERM=" + term, "SHELL=/bin/sh"}
	if term == "" || strings.ContainsFunc(term, func(r rune) bool { return r <= ' ' || r > '~' }) {
		env[0] = "TERM=dumb"
	}
	args := []string{"/bin/sh", "-i"}
	if executable("/bin/bash") == nil {
		args, env[1] = []string{"/bin/bash", "-i"}, "SHELL=/bin/bash"
	}
	cmd := sandbox.Command{Name: "terminal-" + strings.ToLower(rand.Text()[:12]), Args: args, Env: env}
	p, _ = ps.reserve(cmd.Name)
	screen, p.err = ps.launchShell(p, cmd, size)
	if p.err != nil {
		ps.forget(p.name)
	}
	close(p.ready)
	return p, screen, p.err
}

func (ps *processes) launchShell(p *process, cmd sandbox.Command, size Window) (*os.File, error) {
	plan, err := ps.plan(cmd)
	if err != nil {
		return nil, err
	}
	defer func() { _ = plan.at.Close() }()
	if err := ps.folder(cmd.Name); err != nil {
		return nil, err
	}
	file, err := ps.create(cmd.Name, "output") // stays empty: what is shown is the client's
	if err != nil {
		return nil, err
	}
	screen, keys, err := openTerminal(size)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	defer func() { _ = keys.Close() }()
	output, write, err := newOutput(file)
	if err != nil {
		return nil, errors.Join(err, file.Close(), screen.Close())
	}
	_ = write.Close()
	go output.copy()
	p.output, p.started = output, time.Now().UTC()
	pid, status, err := ps.reaper.start(plan.program, plan.args, &syscall.ProcAttr{
		Dir: plan.here(), Env: plan.env, Files: []uintptr{keys.Fd(), keys.Fd(), keys.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0},
	})
	if err != nil {
		return nil, errors.Join(err, screen.Close())
	}
	p.pid = pid
	sacrifice(pid)
	go ps.finish(p, status)
	return screen, nil
}

// hangUp ends a shell with all that it has started, as a terminal's end does.
func (ps *processes) hangUp(ctx context.Context, p *process, screen *os.File) {
	_ = screen.Close()                  // the kernel sends SIGHUP
	_ = ps.kill(ctx, p.name, termGrace) // what is left ends with the box
	_ = ps.files.run.RemoveAll(path.Join("proc", p.name))
	ps.forget(p.name)
}

// openTerminal makes a terminal: our side, and the side of the shell. See pty(7).
func openTerminal(size Window) (screen, keys *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	screen = os.NewFile(uintptr(fd), "terminal")
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = resize(screen, size)
	}
	if err == nil {
		keys, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("making a terminal: %w", err), screen.Close())
	}
	return screen, keys, nil
}

func resize(screen *os.File, size Window) error {
	raw, err := screen.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Columns})
	})
	return errors.Join(err, set)
}

// Terminal is a shell in a box, from outside. What is written to it is typed,
// and what is read from it is shown. Read may be called beside the others, which
// may be called by several at once.
type Terminal struct {
	conn net.Conn
	mu   sync.Mutex // one message at a time
	// rest is what is left of the message that is being read. Only Read touches
	// it, and exited.
	rest   []byte
	exited *int
}

// Terminal starts a shell in the box. It ends with Close, and with the
// connection. term is the kind of terminal that the client has, as in TERM. A
// guest that is older than terminals answers as if a proxy stood before it:
// sandbox.ErrTransient.
func (c *Client) Terminal(ctx context.Context, term string, size Window) (*Terminal, error) {
	target := fmt.Sprintf("/v1/terminal?term=%s&rows=%d&columns=%d", url.QueryEscape(term), size.Rows, size.Columns)
	conn, err := c.dial(ctx, target)
	if err != nil {
		return nil, err
	}
	return &Terminal{conn: conn}, nil
}

// Read returns what is to be shown; io.EOF when the shell has ended, and
// io.ErrUnexpectedEOF when the connection has, as with the box.
func (t *Terminal) Read(p []byte) (int, error) {
	for len(t.rest) == 0 {
		if t.exited != nil {
			return 0, io.EOF
		}
		kind, body, err := t.receive()
		if err != nil {
			return 0, cut(err)
		}
		switch {
		case kind == termData:
			t.rest = body
		case kind == termExit && len(body) == 4:
			code := int(int32(binary.BigEndian.Uint32(body)))
			t.exited = &code
		}
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// ExitCode is the shell's, once Read has returned io.EOF; -1 when a signal has
// ended it, and before.
func (t *Terminal) ExitCode() int {
	if t.exited == nil {
		return -1
	}
	return *t.exited
}

// Write types.
func (t *Terminal) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		part := p[:min(len(p), maxMessage)]
		if err := t.send(termData, part); err != nil {
			return written, err
		}
		written += len(part)
		p = p[len(part):]
	}
	return written, nil
}

// Resize tells the size of the window.
func (t *Terminal) Resize(size Window) error {
	return t.send(termSize, binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, size.Rows), size.Columns))
}

// Close ends the shell with all that it has started.
func (t *Terminal) Close() error { return t.conn.Close() }

func (t *Terminal) send(kind byte, body []byte) error {
	message := binary.BigEndian.AppendUint16([]byte{kind}, uint16(len(body)))
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := t.conn.Write(append(message, body...))
	return err
}

func (t *Terminal) receive() (kind byte, body []byte, err error) {
	var head [3]byte
	if _, err := io.ReadFull(t.conn, head[:]); err != nil {
		return 0, nil, err
	}
	body = make([]byte, binary.BigEndian.Uint16(head[1:]))
	_, err = io.ReadFull(t.conn, body)
	return head[0], body, err
}
