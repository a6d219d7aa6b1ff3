// Package local keeps boxes on this machine, without a daemon and without
// root: each is a guest in namespaces of its own, made by bubblewrap.
//
// A box is a folder below Config.Dir, named by its id:
//
//	box.json    what it is, and which process it is
//	guest.sock  the way to its guest; nothing in the box can reach it
//	guest.log   what bubblewrap and the guest had to complain about
//	host/       what ship tells the guest: when the box expires (read-only inside)
//	etc/        the few files of /etc that every box gets its own of (read-only inside)
//	work/       /work in the box
//	run/        /run/ship in the box
//
// The guest belongs to nobody: it outlives the process that started it, and is
// found again by its folder. All changes to a folder are made under a file lock,
// so several processes may use the same Dir.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ship/sandbox"
	"ship/sandbox/folder"
	"ship/sandbox/guest"
)

// The kinds of isolation.
const (
	// Bubblewrap gives every box its own processes, files and network.
	Bubblewrap = "bubblewrap"
	// None runs the box's processes as plain processes of this machine: for
	// machines that are a sandbox themselves. Only one box can live at a time.
	None = "none"
)

// Bind shows a file or a folder of this machine in every box, read-only.
type Bind struct {
	Host, Box string
}

// Limits bound one box. Zero means no limit.
type Limits struct {
	// Memory in bytes, with what lies in /tmp of the box.
	Memory int64
	// PIDs counts processes and threads.
	PIDs int64
}

// Config says where boxes live and what surrounds them.
type Config struct {
	// Dir holds the boxes. It is made if it is not there.
	Dir string
	// Isolation is Bubblewrap, which is the default, or None.
	Isolation string
	// Guest is a program that understands "guest" as its first argument and
	// hands the rest to guest.Main. Default: the one that runs now.
	Guest string
	// Broker is the folder that holds broker.sock. Empty: boxes have no broker.
	Broker string
	// Binds are shown in every box. With None they stay where they are, and
	// their names in the box are rewritten as those of its folders are.
	Binds []Bind
	// Path is PATH of every process. Default: the system's usual folders.
	Path   string
	Limits Limits
	Logger *slog.Logger
}

// Provider is a sandbox.Provider. It starts no goroutine but one per box that
// it made, which waits for the end of that box.
type Provider struct {
	cfg     Config
	wrapper wrapper
	cgroups cgroups
}

var _ sandbox.Provider = (*Provider)(nil)

// New checks the configuration and makes the folder. Whether this machine can
// isolate a box is for Check to say; Create asks it as well.
func New(cfg Config) (*Provider, error) {
	cfg, err := complete(cfg)
	if err != nil {
		return nil, fmt.Errorf("local sandbox: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(cfg.Dir, "locks"), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the boxes: %w", err)
	}
	p := &Provider{cfg: cfg, wrapper: &plain{cfg: cfg}, cgroups: findCgroups(cfg.Limits)}
	if cfg.Isolation == Bubblewrap {
		p.wrapper = &bubblewrap{cfg: cfg}
	}
	if p.cgroups.missing != "" {
		cfg.Logger.Warn("boxes are not limited", "reason", p.cgroups.missing)
	}
	return p, nil
}

func complete(cfg Config) (Config, error) {
	cfg.Isolation = cmp.Or(cfg.Isolation, Bubblewrap)
	if cfg.Isolation != Bubblewrap && cfg.Isolation != None {
		return cfg, fmt.Errorf("isolation %q: use %s or %s", cfg.Isolation, Bubblewrap, None)
	}
	if cfg.Dir == "" {
		return cfg, errors.New("no folder for the boxes is set")
	}
	var err error
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return cfg, err
	}
	if cfg.Guest == "" {
		if cfg.Guest, err = os.Executable(); err != nil {
			return cfg, err
		}
	}
	if cfg.Broker != "" {
		if cfg.Broker, err = filepath.Abs(cfg.Broker); err != nil {
			return cfg, err
		}
	}
	cfg.Path = cmp.Or(cfg.Path, guest.DefaultPath)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return cfg, checkBinds(cfg.Binds)
}

// reserved are the folders of a box that no bind may hide.
var reserved = []string{sandbox.WorkDir, sandbox.RunDir, brokerDir, "/proc", "/dev", "/tmp", "/etc", "/usr"}

func checkBinds(binds []Bind) error {
	for _, b := range binds {
		if !filepath.IsAbs(b.Host) {
			return fmt.Errorf("bind %q: not an absolute path", b.Host)
		}
		if !filepath.IsAbs(b.Box) || filepath.Clean(b.Box) != b.Box || b.Box == "/" {
			return fmt.Errorf("bind to %q: not a clean absolute path", b.Box)
		}
		for _, dir := range reserved {
			if within(dir, b.Box) || within(b.Box, dir) {
				return fmt.Errorf("bind to %q: %s belongs to the box itself", b.Box, dir)
			}
		}
	}
	return nil
}

// within reports whether path is dir or lies below it.
func within(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}

// Check reports whether this machine can isolate a box. If it cannot, the error
// wraps sandbox.ErrIsolation and says what to do about it.
func (p *Provider) Check(ctx context.Context) error { return p.wrapper.check(ctx) }

// Limits says in one sentence which limits every box is held to.
func (p *Provider) Limits() string { return p.cgroups.String() }

// Attach returns a handle on a box, wakes it if it is paused, and extends it by
// ttl, if that is positive.
func (p *Provider) Attach(ctx context.Context, id string, ttl time.Duration) (sandbox.Box, error) {
	err := p.hold(ctx, id, func(r *record) error {
		// Before it wakes: its guest looks at once how long it may live.
		if err := p.extend(r, time.Now().Add(ttl)); err != nil {
			return err
		}
		return p.wake(ctx, r)
	})
	if err != nil {
		return nil, fmt.Errorf("attaching to box %s: %w", id, err)
	}
	client := p.client(id)
	switch box, err := client.Health(ctx); {
	case err != nil:
		return nil, fmt.Errorf("attaching to box %s: %w", id, err)
	case box != id:
		return nil, fmt.Errorf("attaching to box %s: %q answers: %w", id, box, sandbox.ErrGone)
	}
	return client, nil
}

// Peek returns a handle on a box that runs, and changes nothing about it: not
// even how long it lives. One that is paused is sandbox.ErrBusy.
func (p *Provider) Peek(ctx context.Context, id string) (sandbox.Box, error) {
	info, err := p.Info(ctx, id)
	if err == nil && info.State == sandbox.Paused {
		err = fmt.Errorf("box %s is paused: %w", id, sandbox.ErrBusy)
	}
	if err != nil {
		return nil, err
	}
	return p.client(id), nil
}

func (p *Provider) client(id string) *guest.Client {
	socket := p.home(id).socket()
	return guest.NewClient(guest.Route{Dial: func(ctx context.Context) (net.Conn, error) {
		conn, err := guest.DialUnix(ctx, socket)
		// The guest has the socket open for as long as it lives.
		if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("box %s: %w", id, sandbox.ErrGone)
		}
		return conn, err
	}})
}

// Info returns what is on record of a box that lives.
func (p *Provider) Info(_ context.Context, id string) (sandbox.Info, error) {
	if folder.IsID(id) {
		if r, lives := p.home(id).living(); lives {
			return r.info(), nil
		}
	}
	return sandbox.Info{}, fmt.Errorf("looking at box %s: %w", id, sandbox.ErrGone)
}

// List returns the boxes that live and carry all of these labels, the oldest
// first. On its way it removes what is left of boxes that have ended.
func (p *Provider) List(ctx context.Context, labels map[string]string) ([]sandbox.Info, error) {
	entries, err := os.ReadDir(p.cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("listing boxes: %w", err)
	}
	var infos []sandbox.Info
	for _, entry := range entries {
		r, lives, err := p.look(ctx, entry.Name())
		if ctx.Err() != nil {
			return nil, fmt.Errorf("listing boxes: %w", context.Cause(ctx))
		}
		if err != nil {
			// It is none of the boxes that live, so it must not hide them.
			p.cfg.Logger.Warn("what is left of a box cannot be removed", "folder", entry.Name(), "error", err)
		}
		if lives && sandbox.Carries(r.info().Labels, labels) {
			infos = append(infos, r.info())
		}
	}
	slices.SortFunc(infos, func(a, b sandbox.Info) int { return a.Created.Compare(b.Created) })
	return infos, nil
}

// look returns the box in one entry of the folder, and clears what is none.
func (p *Provider) look(ctx context.Context, name string) (r record, lives bool, err error) {
	if folder.IsGrave(name) {
		return record{}, false, folder.Remove(filepath.Join(p.cfg.Dir, name))
	}
	if !folder.IsID(name) {
		return record{}, false, nil
	}
	if r, lives = p.home(name).living(); lives {
		return r, true, nil
	}
	unlock, err := p.tryLock(name)
	if err != nil || unlock == nil {
		return record{}, false, err // Somebody makes or destroys it just now.
	}
	defer unlock()
	if r, lives = p.home(name).living(); lives {
		return r, true, nil
	}
	return record{}, false, p.clear(ctx, name)
}

// Extend moves a box's expiry, and never shortens it.
func (p *Provider) Extend(ctx context.Context, id string, until time.Time) error {
	if err := p.hold(ctx, id, func(r *record) error { return p.extend(r, until) }); err != nil {
		return fmt.Errorf("extending box %s: %w", id, err)
	}
	return nil
}

// hold does something to a box that lives, with its lock.
func (p *Provider) hold(ctx context.Context, id string, do func(*record) error) error {
	if !folder.IsID(id) {
		return sandbox.ErrGone
	}
	unlock, err := p.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	r, lives := p.home(id).living()
	if !lives {
		return sandbox.ErrGone
	}
	return do(&r)
}

// extend tells the guest first: a record may promise less than the guest
// keeps, but never more.
func (p *Provider) extend(r *record, until time.Time) error {
	if !until.After(r.Expires) {
		return nil
	}
	r.Expires = until.UTC()
	home := p.home(r.ID)
	if err := writeFile(home.expires(), guest.FormatExpiry(r.Expires)); err != nil {
		return err
	}
	return home.save(*r)
}

// Destroy ends a box, its processes and its files.
func (p *Provider) Destroy(ctx context.Context, id string) error {
	if !folder.IsID(id) {
		return nil
	}
	grave, err := p.bury(ctx, id)
	if err == nil {
		err = folder.Remove(grave)
	}
	if err != nil {
		return fmt.Errorf("destroying box %s: %w", id, err)
	}
	return nil
}

// bury ends a box and takes its name from its folder, which is left to be
// removed without the lock: that can take a while.
func (p *Provider) bury(ctx context.Context, id string) (grave string, err error) {
	unlock, err := p.lock(ctx, id)
	if err != nil {
		return "", err
	}
	defer unlock()
	return p.buryLocked(ctx, id)
}

// buryLocked is bury for whoever has the lock.
func (p *Provider) buryLocked(ctx context.Context, id string) (grave string, err error) {
	home := p.home(id)
	if r, err := home.load(); err == nil {
		if err := r.end(ctx); err != nil {
			return "", err
		}
	}
	return folder.Bury(string(home))
}

// clear removes a box. The lock is held.
func (p *Provider) clear(ctx context.Context, id string) error {
	grave, err := p.buryLocked(ctx, id)
	if err != nil {
		return err
	}
	return folder.Remove(grave)
}
