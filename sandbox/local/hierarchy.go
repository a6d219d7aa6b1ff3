package local

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// ownGroups returns the folder of our own group for each controller of version
// 1, and under the empty name that of version 2.
func ownGroups() (map[string]string, error) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return groupFolders(string(groups), string(mounts)), nil
}

// groupFolders combines /proc/self/cgroup (cgroups(7)) with
// /proc/self/mountinfo (proc_pid_mountinfo(5)).
func groupFolders(groups, mounts string) map[string]string {
	paths := make(map[string]string)
	lines := bufio.NewScanner(strings.NewReader(groups))
	for lines.Scan() {
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			paths[controller] = parts[2]
		}
	}
	folders := make(map[string]string)
	for line := range strings.SplitSeq(mounts, "\n") {
		m, ok := parseMount(line)
		if !ok {
			continue
		}
		for _, controller := range m.controllers {
			path, known := paths[controller]
			rel, err := filepath.Rel(m.root, path)
			if known && err == nil && !strings.HasPrefix(rel, "..") {
				folders[controller] = filepath.Join(m.point, rel)
			}
		}
	}
	return folders
}

// mount is one mounted hierarchy of control groups.
type mount struct {
	root, point string
	controllers []string
}

func parseMount(line string) (mount, bool) {
	before, after, found := strings.Cut(line, " - ")
	left, right := strings.Fields(before), strings.Fields(after)
	if !found || len(left) < 5 || len(right) < 3 {
		return mount{}, false
	}
	m := mount{root: left[3], point: left[4]}
	switch right[0] {
	case "cgroup2":
		m.controllers = []string{""}
	case "cgroup":
		m.controllers = strings.Split(right[2], ",")
	default:
		return mount{}, false
	}
	return m, true
}
