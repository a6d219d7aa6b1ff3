package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"ship/sandbox"
)

// connect returns a client that connects at its first request, and agrees on a
// version of the API then. It keeps no connection: calls are few, and each takes
// the engine far longer than a connection to its socket.
func connect(host string) (*client.Client, error) {
	socket, err := socketOf(host)
	if err != nil {
		return nil, fmt.Errorf("the engine's address %q: %w", host, err)
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: dialEngine(socket)}
	return client.New(client.WithHTTPClient(&http.Client{Transport: transport}),
		client.WithHost(host), client.WithDialContext(dialEngine(socket)))
}

// dialEngine says what is wrong with the engine's socket in a way that survives
// the client, which keeps only the text of errors it knows.
func dialEngine(socket string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		switch {
		case err == nil:
			return conn, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, fs.ErrPermission):
			return nil, &unreached{socket, "may not be used by the user that runs ship: add that user to the group of the socket (which makes it as good as root here), or set sandbox.docker.host to a rootless engine of its own", sandbox.ErrAuth}
		}
		return nil, &unreached{socket, "has no engine behind it: start it (systemctl start docker), or set sandbox.docker.host", sandbox.ErrTransient}
	}
}

// unreached is an engine that cannot be asked.
type unreached struct {
	socket, what string
	kind         error
}

func (u *unreached) Error() string { return u.socket + " " + u.what }
func (u *unreached) Unwrap() error { return u.kind }

// fault gives an error of the engine the meaning that it has for a caller. What
// is not found is the container, unless the caller knows better.
func fault(ctx context.Context, doing string, err error) error {
	var away *unreached
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	case errors.As(err, &away):
		return fmt.Errorf("%s: %w: %w", doing, away, away.kind)
	}
	if kind := kindOf(err); kind != nil {
		return fmt.Errorf("%s: the engine says: %w (%w)", doing, err, kind)
	}
	return fmt.Errorf("%s: the engine says: %w", doing, err)
}

// kindOf is nil where our request, and so the configuration, is at fault.
func kindOf(err error) error {
	switch {
	case errdefs.IsNotFound(err):
		return sandbox.ErrGone
	case errdefs.IsConflict(err):
		return sandbox.ErrBusy
	case errdefs.IsUnauthorized(err), errdefs.IsPermissionDenied(err):
		return sandbox.ErrAuth
	case errdefs.IsInvalidArgument(err), errdefs.IsNotImplemented(err):
		return nil
	}
	return sandbox.ErrTransient
}
