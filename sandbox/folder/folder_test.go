package folder_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ship/sandbox/folder"
)

func TestIDs(t *testing.T) {
	t.Parallel()
	one, other := folder.NewID("gh.1.7"), folder.NewID("gh.1.7")
	if one == other || !folder.IsID(one) || !strings.HasPrefix(one, folder.HashKey("gh.1.7")+"-") {
		t.Errorf("ids %q and %q", one, other)
	}
	for _, name := range []string{"", "..", one + "/..", one + "x", strings.ToUpper(one), filepath.Base(folder.Grave("", one))} {
		if folder.IsID(name) {
			t.Errorf("%q is an id", name)
		}
	}
	if grave := folder.Grave("boxes", one); !folder.IsGrave(filepath.Base(grave)) || filepath.Dir(grave) != "boxes" || folder.IsGrave(one) {
		t.Errorf("grave %q", grave)
	}
}

// TestRemove: what was made read-only goes, what a link leads to stays, and what
// is gone already is no error.
func TestRemove(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), filepath.Join(t.TempDir(), "box")
	deep := filepath.Join(dir, "a", "b")
	err := errors.Join(
		os.MkdirAll(deep, 0o755), os.WriteFile(filepath.Join(deep, "file"), nil, 0o400), os.Symlink(outside, filepath.Join(deep, "out")),
		os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600), os.Chmod(deep, 0o500), os.Chmod(filepath.Dir(deep), 0o500))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := folder.Remove(dir); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
		t.Error(err)
	}
}

// TestLock: one has it at a time, whoever waits gets it next, or gives up.
func TestLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	try := func() (func(), error) {
		f, err := os.Open(dir)
		if err != nil {
			return nil, err
		}
		return folder.TryLock(f)
	}
	unlock, err := folder.Await(t.Context(), try)
	if err != nil || unlock == nil {
		t.Fatalf("the first: %v", err)
	}
	if second, err := try(); second != nil || err != nil {
		t.Fatalf("two have it, or %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gaveUp := errors.New("gave up")
	cancel(gaveUp)
	if _, err := folder.Await(ctx, try); !errors.Is(err, gaveUp) {
		t.Errorf("whoever gave up: %v", err)
	}
	got := make(chan error, 1)
	go func() {
		unlock, err := folder.Await(t.Context(), try)
		if err == nil {
			unlock()
		}
		got <- err
	}()
	unlock()
	if err := <-got; err != nil {
		t.Errorf("whoever waited: %v", err)
	}
}
