package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"ship/sandbox/folder"
)

// lock excludes everybody else, in any process, from changing a box. Boxes
// share a fixed number of lock files, because a lock file can never be removed
// safely; the boxes of one key always share the same.
func (p *Provider) lock(ctx context.Context, id string) (unlock func(), err error) {
	return folder.Await(ctx, func() (func(), error) { return p.tryLock(id) })
}

// tryLock returns nil when somebody else holds the lock.
func (p *Provider) tryLock(id string) (unlock func(), err error) {
	name := id[:2]
	if p.cfg.Isolation == None {
		name = "all" // At most one box may live, whatever its key.
	}
	file, err := os.OpenFile(filepath.Join(p.cfg.Dir, "locks", name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	return folder.TryLock(file)
}
