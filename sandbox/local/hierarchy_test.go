package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGroupFolders(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]struct {
		groups, mounts string
		want           map[string]string
	}{
		"version 2": {
			groups: "0::/system.slice/ship.service\n",
			mounts: "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
			want:   map[string]string{"": "/sys/fs/cgroup/system.slice/ship.service"},
		},
		"both": {
			groups: "8:pids:/\n4:memory:/a/b\n2:cpu,cpuacct:/c\n0::/\n",
			mounts: "31 30 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n" +
				"32 30 0:28 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n" +
				"33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" +
				"34 30 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n" +
				"35 30 8:1 / / rw - ext4 /dev/sda rw\n",
			want: map[string]string{
				"pids": "/sys/fs/cgroup/pids", "memory": "/sys/fs/cgroup/memory/a/b",
				"cpu": "/sys/fs/cgroup/cpu/c", "cpuacct": "/sys/fs/cgroup/cpu/c", "": "/sys/fs/cgroup/unified",
			},
		},
		"container": {
			groups: "4:memory:/docker/1/x\n3:pids:/elsewhere\n",
			mounts: "32 30 0:28 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n" +
				"33 30 0:29 /docker/1 /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n",
			want: map[string]string{"memory": "/sys/fs/cgroup/memory/x"},
		},
		"nothing": {groups: "x\n\n", mounts: "y - z\n", want: map[string]string{}},
	} {
		if diff := cmp.Diff(try.want, groupFolders(try.groups, try.mounts)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// fakeGroup is a group of version 2 as far as plain files can stand for it.
func fakeGroup(t *testing.T, controllers string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ship.service")
	for name, text := range map[string]string{
		"cgroup.controllers": controllers, "cgroup.subtree_control": "", "gateway/cgroup.procs": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDelegated(t *testing.T) {
	t.Parallel()
	dir := fakeGroup(t, "cpu memory pids\n")
	for _, own := range []string{dir, filepath.Join(dir, gatewayGroup)} {
		got, err := delegated(own, "memory")
		if err != nil || got != dir {
			t.Errorf("delegated(%s) = %s, %v", own, got, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil || string(text) != "+memory" {
		t.Errorf("subtree_control: %q, %v", text, err)
	}
	for name, own := range map[string]string{"no group": "", "not delegated": fakeGroup(t, "cpu\n"), "not there": t.TempDir()} {
		if got, err := delegated(own, "memory"); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestLeave(t *testing.T) {
	t.Parallel()
	dir := fakeGroup(t, "memory\n")
	if err := leave(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, gatewayGroup, "cgroup.procs"))
	if err != nil || len(text) == 0 {
		t.Errorf("cgroup.procs: %q, %v", text, err)
	}
}

func TestRemoveGroupsRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := removeGroups(t.Context(), []string{dir}); err == nil {
		t.Error("a folder that is no box's group was taken")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

func FuzzGroupFolders(f *testing.F) {
	f.Add("0::/a\n", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
	f.Add("4:memory:/../..\n", "32 30 0:28 / /m rw - cgroup cgroup rw,memory\n")
	f.Fuzz(func(t *testing.T, groups, mounts string) {
		for controller, folder := range groupFolders(groups, mounts) {
			if !strings.Contains(groups, controller) || folder == "" {
				t.Errorf("%q: %q", controller, folder)
			}
		}
	})
}

func FuzzParseStat(f *testing.F) {
	f.Add("1 (ship) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 4711 1 2")
	f.Add("1 (a) b (c) Z 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 4711")
	f.Add(") ")
	f.Fuzz(func(t *testing.T, line string) {
		if state, _, ok := parseStat(line); ok && !strings.Contains(line, state) {
			t.Errorf("parseStat(%q) = %q", line, state)
		}
	})
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]uint64{
		"1 (ship) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 4711 1 2":           4711,
		"1 (a) R 1 2 (c) Z 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 4712":        4712,
		"1 (\n) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 18446744073709551615": 1<<64 - 1,
	} {
		if _, got, ok := parseStat(line); !ok || got != want {
			t.Errorf("parseStat(%q) = %d, %v", line, got, ok)
		}
	}
	for _, line := range []string{"", "1 (x", "1 (x) S 0 1", "1 (x) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 -1"} {
		if _, got, ok := parseStat(line); ok {
			t.Errorf("parseStat(%q) = %d", line, got)
		}
	}
}

func FuzzParseInfo(f *testing.F) {
	f.Add([]byte(`{"child-pid": 9265, "pid-namespace": 4026532181}`))
	f.Add([]byte(`{"child-pid": 1}`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, text []byte) {
		if pid, err := parseInfo(text); err == nil && pid <= 1 {
			t.Errorf("parseInfo(%q) = %d", text, pid)
		}
	})
}
