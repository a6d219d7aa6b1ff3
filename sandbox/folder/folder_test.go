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
	for _, name := range []string{"", "..", one + "/..", one + "x", strings.ToUpper(one)} {
		if folder.IsID(name) {
			t.Errorf("%q is an id", name)
		}
	}
}

// TestBury: what is buried is beside where it was and is no box; who comes second
// finds nothing, and buries nothing.
func TestBury(t *testing.T) {
	t.Parallel()
	dir, id := t.TempDir(), folder.NewID("gh.1.7")
	home := filepath.Join(dir, id)
	if err := errors.Join(os.Mkdir(home, 0o755), os.WriteFile(filepath.Join(home, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, there := range []bool{true, false} {
		grave, err := folder.Bury(home)
		name := filepath.Base(grave)
		if err != nil || filepath.Dir(grave) != dir || !folder.IsGrave(name) || folder.IsID(name) || folder.IsGrave(id) {
			t.Fatalf("buried in %q, %v", grave, err)
		}
		_, err = os.Stat(filepath.Join(grave, "file"))
		if (err == nil) != there {
			t.Errorf("in the grave: %v; want its files there: %t", err, there)
		}
		if err := folder.Remove(grave); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(home); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder: %v", err)
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
