package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"ship/sandbox"
	"ship/sandbox/guest"
)

// errShut: no guest listens. It may not yet, or not any more.
var errShut = errors.New("nobody answers at the door of the box")

// client is the way to the guest of a box. That the guest does not answer says
// nothing of its box; the engine knows.
func (p *Provider) client(r record) *guest.Client {
	return guest.NewClient(guest.Route{Secret: r.Secret, Dial: func(ctx context.Context) (net.Conn, error) {
		conn, err := dial(ctx, p.home(r.ID).file(doorFolder))
		if errors.Is(err, errShut) {
			if _, gone := p.look(ctx, r.ID); errors.Is(gone, sandbox.ErrGone) {
				return nil, gone
			}
		}
		return conn, err
	}})
}

// dial connects to the socket in a folder that the box may write. A link there
// could lead to any socket of this machine, so none is followed: what is looked
// at is what is connected to.
func dial(ctx context.Context, folder string) (net.Conn, error) {
	dir, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, shut(err)
	}
	defer func() { _ = unix.Close(dir) }()
	fd, err := unix.Openat(dir, doorName, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, shut(err)
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, fmt.Errorf("%w: what is there is no socket", errShut)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return nil, shut(err)
	}
	return conn, nil
}

func shut(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w: %w", errShut, err)
	}
	return err
}
