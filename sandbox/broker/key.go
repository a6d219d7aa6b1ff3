package broker

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LoadKey returns the key in a file, which it makes with a random one when
// there is none. Processes that do so at the same moment get the same key. A
// file that others may read is refused, as is one of another size: a key that
// was cut is no key.
func LoadKey(path string) ([]byte, error) {
	key, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = createKey(path); err == nil {
			key, err = readKey(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("load token key: %w", err)
	}
	return key, nil
}

func readKey(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular() || info.Size() != KeySize:
		return nil, fmt.Errorf("%s does not hold a key of %d bytes", path, KeySize)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s can be read by others: chmod 600 it", path)
	}
	key := make([]byte, KeySize)
	if _, err := f.ReadAt(key, 0); err != nil {
		return nil, err
	}
	return key, nil
}

// createKey writes a whole file beside path and links it into place, which
// fails when somebody was faster. Their key is as good.
func createKey(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	key := make([]byte, KeySize)
	rand.Read(key) // never fails: the runtime ends the program instead
	_, werr := f.Write(key)
	if err := errors.Join(werr, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
