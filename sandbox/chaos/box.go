package chaos

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"sync/atomic"
	"time"

	"ship/sandbox"
)

// box is a handle that may stop working on a box that may end.
type box struct {
	inner    sandbox.Box
	provider *Provider
	id       string
	// expires: callsLeft counts down, and at its end the handle works no more.
	expires   bool
	callsLeft atomic.Int64
}

var _ sandbox.Box = (*box)(nil)

// call is where every call begins: late, or not at all.
func (b *box) call(ctx context.Context) error {
	if b.expires && b.callsLeft.Add(-1) < 0 {
		return fmt.Errorf("box %s: a handle of another time: %w", b.id, sandbox.ErrGone)
	}
	if !b.provider.strikes(b.id, Slow) {
		return nil
	}
	return sandbox.Sleep(ctx, b.provider.fate(b.id).pause())
}

// Spawn starts a process, and may be the last thing that the box does.
func (b *box) Spawn(ctx context.Context, cmd sandbox.Command) (sandbox.Process, error) {
	if err := b.call(ctx); err != nil {
		return sandbox.Process{}, err
	}
	p, err := b.inner.Spawn(ctx, cmd)
	if err == nil && b.provider.strikes(b.id, Killed) {
		// Whoever asked hears of it by what they ask next.
		if err := b.provider.cfg.Boxes.Destroy(context.WithoutCancel(ctx), b.id); err != nil {
			b.provider.cfg.Logger.Warn("make a box fail", "box", b.id, "err", err)
		}
	}
	return p, err
}

// Process may be slow, or fail as every call may.
func (b *box) Process(ctx context.Context, name string) (sandbox.Process, error) {
	if err := b.call(ctx); err != nil {
		return sandbox.Process{}, err
	}
	return b.inner.Process(ctx, name)
}

// Kill as Process.
func (b *box) Kill(ctx context.Context, name string, grace time.Duration) error {
	if err := b.call(ctx); err != nil {
		return err
	}
	return b.inner.Kill(ctx, name, grace)
}

// ReadFrom may bring less than there is, as it always may, or fail.
func (b *box) ReadFrom(ctx context.Context, path string, off int64) ([]byte, error) {
	if err := b.call(ctx); err != nil {
		return nil, err
	}
	data, err := b.inner.ReadFrom(ctx, path, off)
	if err != nil || !b.provider.strikes(b.id, Cut) {
		return data, err
	}
	if len(data) < 2 {
		return nil, fmt.Errorf("reading %s: the stream was cut: %w", path, sandbox.ErrTransient)
	}
	return data[:1+b.provider.fate(b.id).upTo(len(data)-1)], nil
}

// Write may be done without saying so.
func (b *box) Write(ctx context.Context, path string, data []byte, mode fs.FileMode) error {
	if err := b.call(ctx); err != nil {
		return err
	}
	if err := b.inner.Write(ctx, path, data, mode); err != nil {
		return err
	}
	return b.provider.answer(b.id, "writing a file")
}

// Dial may return a connection that is slow, or ends in the middle.
func (b *box) Dial(ctx context.Context, port int) (net.Conn, error) {
	if err := b.call(ctx); err != nil {
		return nil, err
	}
	conn, err := b.inner.Dial(ctx, port)
	if err != nil || !b.provider.strikes(b.id, Cut) {
		return conn, err
	}
	fate := b.provider.fate(b.id)
	return &stream{Conn: conn, left: fate.upTo(2000), pause: fate.pause()}, nil
}
