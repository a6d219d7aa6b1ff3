// Package guest is what runs inside a box: its first process, and the client
// that speaks with it from outside.
//
// The guest starts, watches and ends the box's processes, reads and writes its
// files, connects to its loopback, and is the only way out: what listens on
// sandbox.BrokerURL in a box is the guest, which carries each request to the
// broker and adds the turn's token on the way. It ends the box when nobody has
// extended it in time. A Client is a sandbox.Box, so that a provider has only
// to start a guest and to find a way to it.
//
// Nothing in here trusts the processes of the box: they cannot reach the
// guest's memory, they cannot change when the box expires, and what they write
// below sandbox.RunDir can fool only themselves.
package guest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"ship/sandbox"
)

// Config says how a guest is started. Addresses are written "unix:PATH",
// "tcp:HOST:PORT" or, to listen on an inherited socket, "fd:N".
type Config struct {
	// Box is the id that Health answers, so that a handle knows whose it is.
	Box string
	// Listen is where the guest offers its API.
	Listen string
	// Secret has to be shown by whoever uses the API. It may be empty where
	// nobody else can reach the socket, which is never so with TCP.
	Secret string
	// Bridge is the TCP address that processes in the box know as the broker.
	Bridge string
	// Broker is where the bridge leads: "unix:PATH", or an http or https URL.
	// Empty means that there is none.
	Broker string
	// Work and Run are the folders that stand for sandbox.WorkDir and
	// sandbox.RunDir. They differ from them only where there is no isolation.
	Work, Run string
	// Shown are further paths of the box and what stands for them, written
	// "/path/in/box=/path". They too are needed only where there is no isolation.
	Shown []string
	// Expires is the file that says when the box ends. Empty means never.
	Expires string
}

// Main is the command line of a guest and returns its exit code. SIGTERM ends
// the box.
func Main(ctx context.Context, args []string) int {
	cfg, opts, err := parse(args, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	if opts.check {
		return 0
	}
	if err := start(ctx, cfg, opts); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		return 1
	}
	return 0
}

// options are about the process, not the box.
type options struct {
	// check: prove that the guest can be executed, and leave.
	check bool
	// handshake: wait for a byte on stdin, and say on stdout when it serves.
	handshake bool
}

func parse(args []string, usage io.Writer) (Config, options, error) {
	var cfg Config
	var opts options
	flags := flag.NewFlagSet("guest", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&cfg.Box, "box", "", "id of the box")
	flags.StringVar(&cfg.Listen, "listen", "unix:"+sandbox.RunDir+"/guest.sock", "where to offer the API")
	flags.StringVar(&cfg.Bridge, "bridge", "127.0.0.1:4010", "where processes in the box find the broker")
	flags.StringVar(&cfg.Broker, "broker", "", "where the broker is")
	flags.StringVar(&cfg.Work, "work", sandbox.WorkDir, "folder that stands for "+sandbox.WorkDir)
	flags.StringVar(&cfg.Run, "run", sandbox.RunDir, "folder that stands for "+sandbox.RunDir)
	flags.Func("show", "a path in the box, and what stands for it: /path/in/box=/path (repeatable)", func(pair string) error {
		cfg.Shown = append(cfg.Shown, pair)
		return nil
	})
	flags.StringVar(&cfg.Expires, "expires", "", "file that says when the box ends")
	flags.BoolVar(&opts.check, "check", false, "leave at once")
	flags.BoolVar(&opts.handshake, "handshake", false, "wait for a byte on stdin, say on stdout when ready")
	err := flags.Parse(args)
	cfg.Secret = takeSecret()
	return cfg, opts, err
}

func start(ctx context.Context, cfg Config, opts options) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	if !opts.handshake {
		return Run(ctx, cfg)
	}
	// Whoever starts a box first writes down how to find it again. If they die
	// before, stdin ends and so does the box that nobody knows.
	if _, err := io.ReadFull(os.Stdin, make([]byte, 1)); err != nil {
		return fmt.Errorf("waiting to be told to start: %w", err)
	}
	return run(ctx, cfg, func() error {
		if _, err := fmt.Println(readyLine); err != nil {
			return fmt.Errorf("saying that the guest is ready: %w", err)
		}
		return letGo()
	})
}

// readyLine is what the guest says on stdout once it serves.
const readyLine = "ready"

// letGo puts the null device in the place of stdin and stdout: those who
// started us may be gone long before we are.
func letGo() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	for fd := range 2 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return fmt.Errorf("letting go of descriptor %d: %w", fd, err)
		}
	}
	return nil
}

// Run is a guest, until ctx is done or the box has expired. All processes of
// the box have ended when it returns. It takes over the whole process: it
// reaps every child and ends every descendant.
func Run(ctx context.Context, cfg Config) error {
	return run(ctx, cfg, func() error { return nil })
}

// errEnd stops all parts of a guest when the box has expired.
var errEnd = errors.New("box has expired")

func run(ctx context.Context, cfg Config, ready func() error) error {
	if err := harden(); err != nil {
		return err
	}
	if err := checkSecret(cfg); err != nil {
		return err
	}
	g, err := open(cfg)
	if err != nil {
		return err
	}
	defer endAll()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return g.processes.reaper.run(ctx) })
	group.Go(func() error { return awaitExpiry(ctx, cfg.Expires) })
	group.Go(func() error { return serve(ctx, g.bridge) })
	group.Go(func() error { return serve(ctx, g.api) })
	group.Go(ready)
	if err := group.Wait(); err != nil && !errors.Is(err, errEnd) {
		return err
	}
	return nil
}

// guest is one box, from inside.
type guest struct {
	processes   *processes
	api, bridge endpoint
}

func open(cfg Config) (*guest, error) {
	files, err := openFiles(cfg.Work, cfg.Run)
	if err != nil {
		return nil, err
	}
	places, err := newPlaces(cfg)
	if err != nil {
		return nil, err
	}
	bridge, err := newBridge(cfg.Broker, files)
	if err != nil {
		return nil, err
	}
	g := &guest{processes: newProcesses(files, places)}
	if g.bridge, err = bind("tcp:"+cfg.Bridge, bridge); err != nil {
		return nil, err
	}
	api := &server{box: cfg.Box, files: files, processes: g.processes}
	if g.api, err = bind(cfg.Listen, guarded(cfg.Secret, api.routes())); err != nil {
		return nil, err
	}
	return g, nil
}

// What a listener of the guest bears: how long the head of a request may take, and
// how long it may be, in bytes, with room for the cookies of what is developed.
const (
	headerPatience = 30 * time.Second
	maxHeader      = 256 << 10
)

func serve(ctx context.Context, e endpoint) error {
	server := &http.Server{
		Handler: e.handler, ReadHeaderTimeout: headerPatience, IdleTimeout: 5 * time.Minute, MaxHeaderBytes: maxHeader,
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", e.listener.Addr(), err)
	}
	return nil
}
