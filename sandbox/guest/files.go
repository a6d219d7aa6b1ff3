package guest

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"ship/sandbox"
)

// maxRead is the most that one read returns, and maxFile the most that one
// write takes, both in bytes.
const (
	maxRead = 1 << 20
	maxFile = 64 << 20
	// maxShown is how much of a path an error shows, in bytes.
	maxShown = 200
)

// errRefused is a path that does not lie where it has to, or might not.
var errRefused = fmt.Errorf("it has to lie below %s or %s, and to be written without .., links that lead out, and zero bytes: %w", sandbox.WorkDir, sandbox.RunDir, fs.ErrPermission)

// files is the part of the box's file system that can be reached from
// outside. Both folders are held open, and no name can lead out of them:
// neither by dots nor through links that somebody in the box made.
type files struct {
	work, run *os.Root
}

func openFiles(work, run string) (*files, error) {
	f := &files{}
	var err error
	if f.work, err = os.OpenRoot(work); err != nil {
		return nil, fmt.Errorf("opening the work folder: %w", err)
	}
	if f.run, err = os.OpenRoot(run); err != nil {
		return nil, fmt.Errorf("opening the run folder: %w", err)
	}
	home, _ := below(sandbox.WorkDir, sandbox.HomeDir)
	if err := f.work.MkdirAll(home, 0o755); err != nil {
		return nil, fmt.Errorf("making the home folder: %w", err)
	}
	return f, nil
}

// fault says what could not be done with which path, in one line however odd the
// path is. What the kernel has no number for is os.Root's refusal to leave.
func fault(doing, name string, err error) error {
	var at *fs.PathError
	var between *os.LinkError
	switch {
	case errors.As(err, &at):
		err = at.Err
	case errors.As(err, &between):
		err = between.Err
	}
	if at != nil && !errors.As(err, new(syscall.Errno)) && !errors.Is(err, fs.ErrClosed) {
		err = errRefused
	}
	return fmt.Errorf("%s %s: %w", doing, shown(name), err)
}

// shown is a path as it can be shown: quoted, and not longer than anybody reads.
func shown(name string) string {
	if len(name) <= maxShown {
		return strconv.Quote(name)
	}
	return fmt.Sprintf("%q… (%d bytes)", name[:maxShown], len(name))
}

// locate finds the folder that name lies in, and the rest of the name.
func (f *files) locate(name string) (*os.Root, string, error) {
	if strings.ContainsRune(name, 0) || path.Clean(name) != name {
		return nil, "", errRefused
	}
	if rest, ok := below(sandbox.WorkDir, name); ok {
		return f.work, rest, nil
	}
	if rest, ok := below(sandbox.RunDir, name); ok {
		return f.run, rest, nil
	}
	return nil, "", errRefused
}

func below(dir, name string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(name, dir+"/")
	return rest, ok && rest != ""
}

// read returns at most maxRead bytes of a file from an offset.
func (f *files) read(name string, off int64) ([]byte, error) {
	data, err := f.readFrom(name, off)
	if err != nil {
		return nil, fault("reading", name, err)
	}
	return data, nil
}

func (f *files) readFrom(name string, off int64) ([]byte, error) {
	root, rest, err := f.locate(name)
	if err != nil {
		return nil, err
	}
	if off < 0 {
		return nil, fmt.Errorf("offset %d: %w", off, fs.ErrInvalid)
	}
	// Not to block: somebody may have put a pipe there.
	file, err := root.OpenFile(rest, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, errNoFile)
	}
	return io.ReadAll(io.NewSectionReader(file, off, maxRead))
}

// errNoFile is a folder, a pipe or a device.
var errNoFile = fmt.Errorf("it is not a file: %w", fs.ErrInvalid)

// write replaces a file atomically and makes its parents. Twice is as once.
func (f *files) write(name string, data io.Reader, mode fs.FileMode) error {
	if err := f.replace(name, data, mode); err != nil {
		return fault("writing", name, err)
	}
	return nil
}

func (f *files) replace(name string, data io.Reader, mode fs.FileMode) error {
	root, rest, err := f.locate(name)
	if err != nil {
		return err
	}
	if err := root.MkdirAll(path.Dir(rest), 0o755); err != nil {
		return err
	}
	temp := path.Join(path.Dir(rest), ".ship-"+rand.Text())
	if err := fill(root, temp, data, mode); err != nil {
		_ = root.Remove(temp)
		return err
	}
	if err := root.Rename(temp, rest); err != nil {
		_ = root.Remove(temp)
		return err
	}
	return nil
}

// folder opens a folder in which a process starts. It stays the one that was
// looked at, whatever happens to its name.
func (f *files) folder(name string) (*os.File, error) {
	root, rest, err := f.work, ".", error(nil)
	switch name {
	case sandbox.WorkDir:
	case sandbox.RunDir:
		root = f.run
	default:
		root, rest, err = f.locate(name)
	}
	if err != nil {
		return nil, fault("entering", name, err)
	}
	dir, err := root.OpenFile(rest, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fault("entering", name, err)
	}
	return dir, nil
}

func fill(root *os.Root, name string, data io.Reader, mode fs.FileMode) error {
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, data)
	return errors.Join(err, file.Chmod(mode.Perm()), file.Close())
}
