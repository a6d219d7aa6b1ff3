package redistest

import (
	"path/filepath"
	"testing"
)

// TestLoadsAreMeasuredOnTheDisk: where memory has no room, or the disk is what
// is measured, the files are on the disk.
func TestLoadsAreMeasuredOnTheDisk(t *testing.T) {
	place := func(tb testing.TB) string { return filepath.Dir(prepare(tb).Dir()) }
	t.Setenv(LoadEnv, "")
	want := "/tmp"
	if free(memoryPlace) >= memoryRoom {
		want = memoryPlace
	}
	if got := place(t); got != want {
		t.Errorf("in %s, want %s", got, want)
	}
	t.Setenv(LoadEnv, "1")
	if got := place(t); got != "/tmp" {
		t.Errorf("under load in %s", got)
	}
	if free("/nowhere") != 0 {
		t.Error("there is room where there is nothing")
	}
	t.Setenv(LoadEnv, "")
	if testing.Benchmark(func(b *testing.B) {
		if got := place(b); got != "/tmp" {
			t.Errorf("a benchmark in %s", got)
		}
	}).N == 0 {
		t.Error("the benchmark failed")
	}
}
