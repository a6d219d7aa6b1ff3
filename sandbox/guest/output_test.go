package guest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOutputHasNoHoles: what a full disk has cut off stays cut off when there is
// room again, or somebody would read on as if nothing were missing.
func TestOutputHasNoHoles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount the small disk: %v", err)
		}
	})
	hog := filepath.Join(dir, "hog")
	if err := os.WriteFile(hog, make([]byte, 48<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		t.Fatal(err)
	}
	o := &output{file: file}
	o.keep(make([]byte, 32<<10))
	kept := o.size.Load()
	if err := os.Remove(hog); err != nil {
		t.Fatal(err)
	}
	o.keep([]byte("more"))
	if n := o.size.Load(); kept == 0 || kept >= 32<<10 || n != kept {
		t.Errorf("%d bytes were kept, then %d", kept, n)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
