package local_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ship/sandbox"
	"ship/sandbox/local"
)

const (
	maxMemory = 256 << 20
	maxPIDs   = 80
)

// limited returns a provider whose boxes are limited, or skips the test.
func limited(t *testing.T) *local.Provider {
	t.Helper()
	needBubblewrap(t)
	p := open(t, local.Config{Limits: local.Limits{Memory: maxMemory, PIDs: maxPIDs}})
	if says := p.Limits(); strings.Contains(says, "not enforced") {
		t.Skip(says)
	}
	return p
}

func TestLimitsSay(t *testing.T) {
	t.Parallel()
	p := open(t, local.Config{})
	if got, want := p.Limits(), "boxes have no limit on memory or processes"; got != want {
		t.Errorf("Limits() = %q, want %q", got, want)
	}
	p = limited(t)
	if got, want := p.Limits(), "each box is limited to 256 MiB of memory and 80 processes and threads"; got != want {
		t.Errorf("Limits() = %q, want %q", got, want)
	}
}

// TestForkBomb: a box that has used up its processes can still be looked at,
// and be ended.
func TestForkBomb(t *testing.T) {
	_, box := create(t, limited(t))
	bomb, err := box.Spawn(t.Context(), sandbox.Command{Name: "bomb", Args: []string{"/bin/sh", "-c",
		"i=0; while [ $i -lt 500 ]; do sleep 600 & i=$((i+1)); done; wait"}})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the limit is reached", func() bool {
		data, err := box.ReadFrom(t.Context(), bomb.Output, 0)
		if err != nil {
			t.Fatalf("ReadFrom: %v", err)
		}
		return strings.Contains(strings.ToLower(string(data)), "cannot fork")
	})
	for range 20 {
		if err := box.Write(t.Context(), "/work/still", []byte("here"), 0o644); err != nil {
			t.Fatalf("Write: %v", err)
		}
	}
	if err := box.Kill(t.Context(), "bomb", time.Second); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	if out := shell(t, box, "after", "ls -d /proc/[0-9]* | wc -l"); out.ExitCode != 0 || len(out.Data) > 3 {
		t.Errorf("after the bomb: exit %d, %s processes", out.ExitCode, out.Data)
	}
}

// TestEndlessBomb: even one that never stops forking ends with its box.
func TestEndlessBomb(t *testing.T) {
	p := limited(t)
	info, box := create(t, p)
	cmd := sandbox.Command{Name: "bomb", Args: []string{"/bin/sh", "-c", "f() { f | f & }; f; sleep 600"}}
	if _, err := box.Spawn(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Destroy(ctx, info.ID); err != nil {
		t.Errorf("Destroy: %v", err)
	}
}

// TestMemory: the one that takes too much is ended, and not the box.
func TestMemory(t *testing.T) {
	_, box := create(t, limited(t))
	// tail keeps all of a line that has no end.
	out := shell(t, box, "greedy", "head -c 600M /dev/zero | tail -n 1 > /dev/null")
	if out.ExitCode != 137 {
		t.Errorf("exit %d, signal %q, %s", out.ExitCode, out.Signal, out.Data)
	}
	if out := shell(t, box, "tmp", "head -c 200M /dev/zero > /tmp/big"); out.ExitCode == 0 {
		t.Error("/tmp has no bound")
	}
	if out := shell(t, box, "shm", "head -c 100M /dev/zero > /dev/shm/big"); out.ExitCode == 0 {
		t.Error("/dev/shm has no bound")
	}
}

// TestGroupsGo: a box leaves no control group behind.
func TestGroupsGo(t *testing.T) {
	p := limited(t)
	info, _ := create(t, p)
	if err := p.Destroy(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, entry os.DirEntry, err error) error {
		if err == nil && strings.Contains(entry.Name(), info.ID) {
			t.Errorf("left behind: %s", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func BenchmarkCreateDestroy(b *testing.B) {
	p, err := local.New(local.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	if err := p.Check(b.Context()); err != nil {
		b.Skip(err)
	}
	for b.Loop() {
		info, err := p.Create(b.Context(), sandbox.Spec{Key: "benchmark", TTL: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		if err := p.Destroy(b.Context(), info.ID); err != nil {
			b.Fatal(err)
		}
	}
}
