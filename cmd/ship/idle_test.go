package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ship/sandbox/lifecycle"
	"ship/session"
)

// maxIdle is what an idle session may take of Redis's memory, in bytes, while its
// box still runs and its time is counted.
const maxIdle = 1<<10 + 128

// redisCLI asks the rig's server and returns the lines of the answer.
func (r *rig) redisCLI(args ...string) []string {
	r.t.Helper()
	out, err := exec.Command("redis-cli", append([]string{"-s", r.redis.Socket()}, args...)...).Output()
	if err != nil {
		r.t.Fatalf("redis-cli %v: %v", args, err)
	}
	return strings.Fields(string(out))
}

// kept lists the keys that never expire, with their memory. The one that says how
// many shards there are belongs to no session.
func (r *rig) kept() map[string]int {
	r.t.Helper()
	all := map[string]int{}
	for _, key := range r.redisCLI("--scan") {
		if key == "ship:shards" || r.redisCLI("PTTL", key)[0] != "-1" {
			continue
		}
		n, err := strconv.Atoi(r.redisCLI("MEMORY", "USAGE", key, "SAMPLES", "0")[0])
		if err != nil {
			r.t.Fatal(err)
		}
		all[key] = n
	}
	return all
}

// checkMemory: the one session there is takes no more than it may.
func (r *rig) checkMemory(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Log("redis-cli is not installed, so memory is not measured")
		return
	}
	sum := 0
	for key, n := range r.kept() {
		t.Logf("%s: %d bytes", key, n)
		sum += n
	}
	if b, err := r.states()[0].Encode(); err != nil || sum == 0 || sum > maxIdle {
		t.Errorf("an idle session takes %d bytes, %v: %s", sum, err, b)
	}
}

// TestIdle: of a session that nobody spoke with for a while there is about a kilobyte
// in Redis, and a paused box that is only a folder; later no box and no timer.
func TestIdle(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{more: "sandbox: {idle_pause: 10s, idle_destroy: 1m}\n"})
	r.start()
	r.deliver(r.says(r.issue, "/ship fix the widgets, they do not turn"))
	r.ended(r.issue, patience)
	r.checkMemory(t)
	r.await("the box to be paused", patience, func() bool { return len(r.boxes()) == 1 && len(boxProcesses(r.dir)) == 0 })
	r.await("the box to be destroyed", patience, func() bool { return len(r.boxes()) == 0 })
	r.await("no timer to be left", patience, func() bool { return !slices.ContainsFunc(r.states(), waits) })
	left, err := filepath.Glob(filepath.Join(r.dir, "data", "boxes", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range left {
		if name := filepath.Base(path); name != "locks" && name != "check" {
			t.Errorf("%s is left", path)
		}
	}
	if pids := boxProcesses(r.dir); len(pids) > 0 {
		t.Errorf("processes of boxes are left: %v", pids)
	}
	r.stop()
}

// waits tells whether somebody has to look at a session, now or later.
func waits(s session.State) bool {
	return !session.NextLook(s, session.Policy{Boxes: lifecycle.Policy{IdleDestroy: time.Minute}}).IsZero()
}

// boxProcesses are those whose command line names a rig's folder of boxes.
func boxProcesses(dir string) (pids []string) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), filepath.Join(dir, "data", "boxes")) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}
