// Package folder is what providers share that keep each box in a folder of this
// machine: ids, a lock that other processes see too, and removal.
package folder

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// An id is the beginning of the key's hash, by which a box is found by its key,
// and something random, so that it is never used again.
var idPattern = regexp.MustCompile(`^[0-9a-f]{16}-[0-9a-z]{10}$`)

// IsID tells whether a name may be that of a box, and so is safe in a path.
func IsID(name string) bool { return idPattern.MatchString(name) }

// HashKey is how the ids of a key's boxes begin.
func HashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

// NewID returns an id for a box of this key, another one each time.
func NewID(key string) string { return HashKey(key) + "-" + strings.ToLower(rand.Text()[:10]) }

// graveMark begins the names of folders that are being removed.
const graveMark = ".gone-"

// IsGrave tells whether a name is that of a folder that is being removed.
func IsGrave(name string) bool { return strings.HasPrefix(name, graveMark) }

// Bury takes its name from the folder of a box, so that nobody takes half of it
// for all of it, and returns where it is left for Remove, which can take a while.
// A folder that is gone already is no error: then nothing is left there.
func Bury(home string) (grave string, err error) {
	dir, id := filepath.Split(home)
	grave = filepath.Join(dir, graveMark+id+"-"+rand.Text()[:6])
	if err := os.Rename(home, grave); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return grave, nil
}

// Remove removes a folder in which nothing runs any more, also what a repository
// has made read-only. It follows no link, and somebody else may do the same at
// the same time. May be called again.
func Remove(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err := unlock(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}

// unlock makes every folder below dir writable, as far as it can: what it
// cannot, RemoveAll will say.
func unlock(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		// A folder is visited before it is read.
		if err == nil && entry.IsDir() {
			_ = root.Chmod(name, 0o700)
		}
		return nil
	})
}

// retryLock is how often a held lock is asked for again: waiting for it in the
// kernel could not be cancelled.
const retryLock = 10 * time.Millisecond

// Await tries to have a lock until it does, or returns the cause of ctx's end.
// try is as TryLock: no unlock, if somebody else holds it.
func Await(ctx context.Context, try func() (unlock func(), err error)) (unlock func(), err error) {
	for {
		unlock, err := try()
		if err != nil || unlock != nil {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(retryLock):
		}
	}
}

// TryLock locks an open file or folder for its holder alone, in any process.
// Without an error and without an unlock, somebody else holds it. The file is
// closed with the lock, or at once if that is not had.
func TryLock(f *os.File) (unlock func(), err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		// Closing the file alone would leave the lock with a program that this
		// process is just starting, until that runs.
		return func() { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN); _ = f.Close() }, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return nil, nil
	}
	return nil, fmt.Errorf("locking: %w", err)
}
