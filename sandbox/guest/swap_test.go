package guest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ship/sandbox"
)

// TestSwapped: a folder and a link that leads out change places as fast as they
// can, and nobody is led out between a look and a step.
func TestSwapped(t *testing.T) {
	t.Parallel()
	f, outside := trapped(t)
	work := f.work.Name()
	if err := os.Mkdir(filepath.Join(work, "swap"), 0o755); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, outside)
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
				err = unix.Renameat2(unix.AT_FDCWD, filepath.Join(work, "swap"), unix.AT_FDCWD, filepath.Join(work, "abs"), unix.RENAME_EXCHANGE)
			}
		}
		stopped <- err
	}()
	var went, refused int
	// Until both were met often: the swaps have no order.
	for deadline := time.Now().Add(3 * time.Minute); (went < 100 || refused < 100) && time.Now().Before(deadline); {
		err := f.write("/work/swap/x", strings.NewReader("mine"), 0o644)
		if data, err := f.read("/work/swap/secret", 0); err == nil {
			t.Fatalf("read %q", data)
		}
		if dir, err := f.folder("/work/swap"); err == nil {
			isInside(t, dir, outside)
		}
		if err == nil {
			went++
		} else {
			refused++
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Skipf("this file system exchanges no names: %v", err)
	}
	if after := snapshot(t, outside); after != before {
		t.Errorf("outside was\n%s\nand is\n%s", before, after)
	}
	if went < 100 || refused < 100 {
		t.Errorf("%d went well, %d were refused: nothing was tried", went, refused)
	}
}

// isInside wants an open folder to be none of those outside, and closes it.
func isInside(t *testing.T, dir *os.File, outside string) {
	t.Helper()
	defer func() { _ = dir.Close() }()
	got, err := dir.Stat()
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.Stat(outside)
	if err != nil {
		t.Fatal(err)
	}
	if os.SameFile(got, other) {
		t.Fatalf("entered a folder outside of %s", sandbox.WorkDir)
	}
}
