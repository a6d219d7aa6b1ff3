package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"ship/sandbox"
	"ship/sandbox/preview"
)

const (
	// editorWaits is how long the editor may take to answer.
	editorWaits = time.Minute
	// editorLasts is how long its link is good for, if nothing ends it sooner.
	editorLasts = 12 * time.Hour
	// editorLook is how often it is looked whether the editor still runs, and
	// editorMisses how many looks in a row may fail.
	editorLook   = 2 * time.Second
	editorMisses = 3
	// editorEnds is how long it takes at most to end it.
	editorEnds = 10 * time.Second
)

// editor is a code-server in a box, and the way to it. What it shows is the
// box's, and foreign; its way is the operator's alone. It is not among the
// previews: those share a host, and what one of them runs in a browser could act
// there for whoever has an editor open.
type editor struct {
	box sandbox.Box
	// name of its process, and the port on which it listens in the box.
	name string
	port int
	out  io.Writer
}

// newEditor chooses a port that is hardly taken: the program says so if it is.
func newEditor(box sandbox.Box, out io.Writer) (*editor, error) {
	n, err := rand.Int(rand.Reader, big.NewInt(10_000))
	if err != nil {
		return nil, fmt.Errorf("choose a port: %w", err)
	}
	return &editor{box: box, name: "editor-" + strings.ToLower(rand.Text()[:12]), port: 20_000 + int(n.Int64()), out: out}, nil
}

// edit shows the box in an editor until ctx or the editor ends.
func edit(ctx context.Context, box sandbox.Box, listen string, out io.Writer) (err error) {
	listener, err := listenHere(ctx, listen)
	if err != nil {
		return err
	}
	defer listener.Close() // a second time when it was served
	e, err := newEditor(box, out)
	if err != nil {
		return err
	}
	program, err := e.find(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.end(ctx)) }()
	fmt.Fprintln(out, "starting the editor in the box")
	if err := e.start(ctx, program); err != nil {
		return err
	}
	return e.serve(ctx, listener)
}

// listenHere listens on this machine only: the way in is the operator's.
func listenHere(ctx context.Context, address string) (net.Listener, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().IsLoopback() {
		return nil, fmt.Errorf("--listen is an address of this machine alone, such as 127.0.0.1:8443, not %q; from elsewhere, come by ssh -L", address)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for the editor: %w", err)
	}
	return listener, nil
}

// where prints the path of code-server in a box: on the PATH, or where its own
// installer puts it.
const where = `PATH="$PATH:$HOME/.local/bin"; command -v code-server`

// codeServerVersion is the one that was tried, and that the image of a box has.
const codeServerVersion = "4.96.4"

var errNoEditor = errors.New("the box has no code-server: put it into the image or the template that boxes are made from (deploy/e2b has it), or for local boxes on this machine below /usr (the .deb of its release " + codeServerVersion + "); boxes that are made after that have it. `ship sessions attach` without --editor opens a terminal")

// find returns the path of the program in the box.
func (e *editor) find(ctx context.Context) (string, error) {
	got, err := sandbox.Exec(ctx, e.box, sandbox.Command{Name: e.name + "-find", Args: []string{"/bin/sh", "-c", where}})
	if err != nil {
		return "", fmt.Errorf("look for code-server in the box: %w", err)
	}
	path := strings.TrimSpace(string(got.Data))
	if got.ExitCode != 0 || !strings.HasPrefix(path, "/") {
		return "", errNoEditor
	}
	return path, nil
}

// start returns when the editor answers.
func (e *editor) start(ctx context.Context, program string) error {
	_, err := e.box.Spawn(ctx, sandbox.Command{Name: e.name, Args: []string{
		program, "--auth", "none", "--bind-addr", net.JoinHostPort("127.0.0.1", strconv.Itoa(e.port)),
		"--disable-telemetry", "--disable-update-check", "--disable-workspace-trust",
		"--user-data-dir", sandbox.HomeDir + "/.editor", sandbox.RepoDir,
	}})
	if err != nil {
		return fmt.Errorf("start the editor: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, editorWaits, fmt.Errorf("the editor did not answer within %s", editorWaits))
	defer cancel()
	tick := time.NewTicker(editorLook / 10)
	defer tick.Stop()
	for !e.answers(ctx) {
		if err := e.alive(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return e.alive(ctx) // what answers is no other program that has the port
}

// answers: the editor says that it is well.
func (e *editor) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, editorLook)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return e.box.Dial(ctx, e.port) }}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/healthz", nil)
	if err != nil {
		return false
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// endedError: the editor's process is over.
type endedError struct{ said string }

// Error holds what the editor said last.
func (e *endedError) Error() string {
	return strings.TrimSpace("the editor has ended. It said last: " + e.said)
}

// alive is an error when the editor has ended, or cannot be looked at.
func (e *editor) alive(ctx context.Context) error {
	p, err := e.box.Process(ctx, e.name)
	if err != nil {
		return fmt.Errorf("look after the editor: %w", err)
	}
	if p.Running {
		return nil
	}
	said, err := e.box.ReadFrom(ctx, p.Output, max(0, p.Size-1000))
	if err != nil {
		return fmt.Errorf("read what the editor said: %w", err)
	}
	return &endedError{visible(strings.TrimSpace(string(said)))}
}

// serve lets the operator's browser in until ctx or the editor ends.
func (e *editor) serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	link, handler, err := e.way(listener.Addr().String(), time.Now())
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	fmt.Fprintf(e.out, "the editor is at\n\n  %s\n\nThe link is good for one browser, once. From another machine, first: ssh -L %[2]s:%[2]s …\nThe editor ends with this command (Ctrl-C), and with the box.\n", link, listener.Addr())
	go func() { cancel(e.watch(ctx)) }()
	go func() { <-ctx.Done(); _ = server.Close() }() // what is open is the operator's own
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the editor: %w", err)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// way is the link to the editor and what answers behind it: a preview, with a
// key of this command's own, behind a door.
func (e *editor) way(address string, now time.Time) (string, http.Handler, error) {
	links, err := preview.NewLinks("http://"+address, []byte(rand.Text()))
	if err != nil {
		return "", nil, err
	}
	link, err := links.URL(preview.Target{Session: e.name, Box: "box", Port: e.port}, now, now.Add(editorLasts))
	if err != nil {
		return "", nil, err
	}
	at, err := url.Parse(link)
	if err != nil {
		return "", nil, fmt.Errorf("read our own link: %w", err)
	}
	d := newDoorway(at.Path, preview.NewProxy(links, only{e.box}))
	return link + "?" + d.query(), d, nil
}

// only is the box that a command has, whatever it is called.
type only struct{ box sandbox.Box }

// Peek implements preview.Boxes.
func (o only) Peek(context.Context, string) (sandbox.Box, error) { return o.box, nil }

// watch returns when the editor is gone, or ctx ends.
func (e *editor) watch(ctx context.Context) error {
	tick := time.NewTicker(editorLook)
	defer tick.Stop()
	for misses := 0; ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		err := e.alive(ctx)
		if err == nil {
			misses = 0
			continue
		}
		if misses++; misses >= editorMisses || errors.As(err, new(*endedError)) || errors.Is(err, sandbox.ErrGone) {
			return fmt.Errorf("the box is gone or paused, or its editor is: %w", err)
		}
	}
}

// end ends the editor and all that it started in the box.
func (e *editor) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), editorEnds) // ctx is over when the operator has left
	defer cancel()
	err := e.box.Kill(ctx, e.name, editorEnds/5)
	if err == nil || errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrTransient) { // with the box
		return nil
	}
	return fmt.Errorf("end the editor: %w", err)
}
