package guest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// endpoint is a socket and what answers on it.
type endpoint struct {
	listener net.Listener
	handler  http.Handler
}

func bind(address string, handler http.Handler) (endpoint, error) {
	listener, err := listen(address)
	if err != nil {
		return endpoint{}, fmt.Errorf("listening on %s: %w", address, err)
	}
	return endpoint{listener, handler}, nil
}

func listen(address string) (net.Listener, error) {
	network, rest, _ := strings.Cut(address, ":")
	switch network {
	case "unix":
		return ListenUnix(rest)
	case "tcp":
		return net.Listen("tcp", rest)
	case "fd":
		return inherit(rest)
	}
	return nil, fmt.Errorf("unknown kind of address %q", network)
}

// inherit takes over a listening socket that whoever started us had open. Its
// path, if it has one, may be out of reach for everything in the box.
func inherit(number string) (net.Listener, error) {
	fd, err := strconv.Atoi(number)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "listener")
	defer func() { _ = file.Close() }()
	return net.FileListener(file)
}

// ListenUnix listens on a unix socket whose path may be longer than the 107
// bytes that the kernel takes. What was at that path is replaced.
func ListenUnix(path string) (*net.UnixListener, error) {
	var listener *net.UnixListener
	err := short(path, func(short string) error {
		if err := os.Remove(short); err != nil && !os.IsNotExist(err) {
			return err
		}
		var err error
		listener, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: short})
		return err
	})
	if err != nil {
		return nil, err
	}
	// The short name means nothing once its folder is closed.
	listener.SetUnlinkOnClose(false)
	return listener, nil
}

// DialUnix connects to a unix socket whose path may be longer than the 107
// bytes that the kernel takes.
func DialUnix(ctx context.Context, path string) (net.Conn, error) {
	var conn net.Conn
	err := short(path, func(short string) error {
		var err error
		conn, err = new(net.Dialer).DialContext(ctx, "unix", short)
		return err
	})
	return conn, err
}

// short calls use with a short name of path, valid until use returns.
func short(path string, use func(short string) error) error {
	fd, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	return use(fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(path)))
}
