package opencode

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"ship/sandbox"
	"ship/sandbox/agent"
	"ship/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	if err := sandboxtest.Overlap(); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// fakeBox is a box in memory. It lives in a synctest bubble, so that waiting
// costs no time.
type fakeBox struct {
	mu    sync.Mutex
	files map[string][]byte
	procs map[string]*sandbox.Process
	// spawned are the commands of every process that was started.
	spawned []sandbox.Command
	// boot is called when the agent's server is spawned.
	boot func(b *fakeBox, name string)
	// conns leads to whoever listens; nil: nobody does.
	conns chan net.Conn
	lost  error
}

func newFakeBox() *fakeBox {
	return &fakeBox{files: map[string][]byte{}, procs: map[string]*sandbox.Process{}}
}

func (b *fakeBox) Spawn(_ context.Context, c sandbox.Command) (sandbox.Process, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lost != nil {
		return sandbox.Process{}, b.lost
	}
	if p, ok := b.procs[c.Name]; ok {
		return *p, nil
	}
	b.spawned = append(b.spawned, c)
	p := &sandbox.Process{Name: c.Name, Output: sandbox.RunDir + "/" + c.Name + ".out"}
	b.procs[c.Name] = p
	b.files[p.Output] = nil
	if c.Args[0] != "/bin/sh" {
		p.Running, p.ExitCode = true, -1
		if b.boot != nil {
			go b.boot(b, c.Name)
		}
	}
	return *p, nil
}

func (b *fakeBox) Process(_ context.Context, name string) (sandbox.Process, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lost != nil {
		return sandbox.Process{}, b.lost
	}
	p, ok := b.procs[name]
	if !ok {
		return sandbox.Process{}, sandbox.ErrGone
	}
	return *p, nil
}

func (b *fakeBox) Kill(_ context.Context, name string, _ time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lost != nil {
		return b.lost
	}
	p, ok := b.procs[name]
	if !ok {
		return sandbox.ErrGone
	}
	p.Running = false
	return nil
}

func (b *fakeBox) ReadFrom(_ context.Context, path string, off int64) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lost != nil {
		return nil, b.lost
	}
	data, ok := b.files[path]
	if !ok {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return slices.Clone(data[min(int(off), len(data)):]), nil
}

func (b *fakeBox) Write(_ context.Context, path string, data []byte, _ fs.FileMode) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lost != nil {
		return b.lost
	}
	b.files[path] = slices.Clone(data)
	return nil
}

func (b *fakeBox) Dial(ctx context.Context, _ int) (net.Conn, error) {
	b.mu.Lock()
	conns, lost := b.conns, b.lost
	b.mu.Unlock()
	if lost != nil {
		return nil, lost
	}
	if conns == nil {
		return nil, fmt.Errorf("connection refused")
	}
	here, there := net.Pipe()
	select {
	case conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// print appends to a process's output.
func (b *fakeBox) print(name, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	path := b.procs[name].Output
	b.files[path] = append(b.files[path], text...)
}

// end ends a process.
func (b *fakeBox) end(name string, code int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.procs[name].Running, b.procs[name].ExitCode = false, code
}

// servers are the names of the agent's processes, in order.
func (b *fakeBox) servers() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, c := range b.spawned {
		if c.Args[0] != "/bin/sh" {
			out = append(out, c.Name)
		}
	}
	return out
}

// listen serves a handler in the box until the test ends.
func (b *fakeBox) listen(t *testing.T, h http.Handler) {
	t.Helper()
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	b.mu.Lock()
	b.conns = l.conns
	b.mu.Unlock()
	srv := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// It always ends with ErrServerClosed.
		_ = srv.Serve(l)
	}()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
}

type pipeListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func testSetup() agent.Setup {
	return agent.Setup{Program: "/opt/opencode", Providers: []agent.Provider{{
		Name: "acme", Models: []agent.Offer{{Name: "m1"}, {Name: "vendor/m2", Context: 1000, Output: 100}},
	}}}
}

// started is a handle on a running fake server, in a bubble.
type started struct {
	*handle
	box *fakeBox
	srv *fakeServer
	ses string
}

// bubble runs a test with a started agent and one open conversation.
func bubble(t *testing.T, test func(t *testing.T, s *started)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &started{box: newFakeBox(), srv: newFakeServer()}
		s.box.boot = func(b *fakeBox, name string) {
			time.Sleep(2 * time.Second)
			b.listen(t, s.srv)
			b.print(name, "opencode server listening on http://127.0.0.1:4096\n")
		}
		a, err := Driver{}.Start(t.Context(), s.box, testSetup())
		if err != nil {
			t.Fatal(err)
		}
		s.handle = a.(*handle)
		// The idle connections' goroutines end with the bubble.
		t.Cleanup(func() { s.client.Load().http.CloseIdleConnections() })
		if s.ses, err = s.Open(t.Context(), "title"); err != nil {
			t.Fatal(err)
		}
		test(t, s)
	})
}
