package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// retryLock is how often a held lock is asked for again: waiting for it in the
// kernel could not be cancelled.
const retryLock = 10 * time.Millisecond

// lock excludes everybody else, in any process, from changing a box. Boxes
// share a fixed number of lock files, because a lock file can never be removed
// safely; the boxes of one key always share the same.
func (p *Provider) lock(ctx context.Context, id string) (unlock func(), err error) {
	for {
		unlock, locked, err := p.tryLock(id)
		if err != nil || locked {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(retryLock):
		}
	}
}

func (p *Provider) tryLock(id string) (unlock func(), locked bool, err error) {
	name := id[:2]
	if p.cfg.Isolation == None {
		name = "all" // At most one box may live, whatever its key.
	}
	file, err := os.OpenFile(filepath.Join(p.cfg.Dir, "locks", name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("opening the lock: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		// Closing the file alone would leave the lock with a program that this
		// process is just starting, until that runs.
		return func() { _ = unix.Flock(int(file.Fd()), unix.LOCK_UN); _ = file.Close() }, true, nil
	}
	_ = file.Close()
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("locking: %w", err)
}
