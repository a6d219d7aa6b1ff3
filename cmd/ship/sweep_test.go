package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ship/sandbox/agent/modeltest"
)

// sweepAtOnce is how many killed ships one sweep has at the same time: they
// wait for their leases, so there may be more of them than cores.
const sweepAtOnce = 8

// killings are the places for killed ships of all sweeps.
var killings = make(chan struct{}, 12)

// TestSweep kills ship with SIGKILL before and after every kind of store write
// and of effect in a turn, at the first and at the last of it, or at each with
// SHIP_TEST_SWEEP=full, starts it again, and demands the same world.
func TestSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	t.Parallel()
	want, points := cleanRun(t)
	if len(points) < 30 {
		t.Fatalf("a turn passed only %d points: %v", len(points), points)
	}
	sweep(t, chosen(points), func(t *testing.T, n int) { killedRun(t, n, want) })
}

// chosen leaves, of all points that begin with one of the names, or of all, those
// that are passed for the first or the last time, and all of them for a full
// sweep. What lies between them passes the same code.
func chosen(points []string, names ...string) []string {
	if os.Getenv("SHIP_TEST_SWEEP") != "" {
		return points
	}
	wanted := func(point string) bool {
		return point != "" && (len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(point, name) }))
	}
	out := make([]string, len(points))
	last, seen := map[string]int{}, map[string]bool{}
	for i, point := range points {
		last[point] = i
	}
	for i, point := range points {
		if wanted(point) && (!seen[point] || last[point] == i) {
			out[i] = point
		}
		seen[point] = true
	}
	return out
}

// sweep runs a killed run for each point that is named, several at once.
func sweep(t *testing.T, points []string, killed func(t *testing.T, n int)) {
	t.Helper()
	next := make(chan int)
	var wg sync.WaitGroup
	for range sweepAtOnce {
		wg.Go(func() {
			for n := range next {
				killings <- struct{}{}
				t.Run(fmt.Sprintf("%02d-%s", n, points[n-1]), func(t *testing.T) { killed(t, n) })
				<-killings
			}
		})
	}
	for n, name := range points {
		if name != "" {
			next <- n + 1
		}
	}
	close(next)
	wg.Wait()
}

// sweepOptions runs the fake agent, or with SHIP_TEST_SWEEP=real the real one,
// which takes a small machine a quarter of an hour.
func sweepOptions() rigOptions {
	if os.Getenv("SHIP_TEST_SWEEP") != "real" {
		return rigOptions{}
	}
	return rigOptions{opencode: true, script: modeltest.Steps(
		modeltest.Use(modeltest.Bash("sleep 1; echo fix-the-widgets >> WORK.md")),
		modeltest.Say("The widgets turn."),
	)}
}

// cleanRun plays the story without a fault.
func cleanRun(t *testing.T) (world string, points []string) {
	t.Helper()
	r := newRig(t, sweepOptions())
	trace := filepath.Join(r.dir, "points")
	r.start("SHIP_TEST_POINTS=" + trace)
	r.deliver(r.says(r.issue, "/ship fix the widgets"))
	r.ended(r.issue, patience)
	r.checkOutcome(t, 1)
	world = r.world()
	r.stop()
	return world, r.points(trace)
}

// points are those that a process passed, in order.
func (r *rig) points(trace string) []string {
	r.t.Helper()
	b, err := os.ReadFile(trace)
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// died waits until ship was killed at its point, or is done without.
func (r *rig) died(done func() bool) bool {
	r.t.Helper()
	gone := func() bool {
		select {
		case <-r.exited:
			return true
		default:
			return false
		}
	}
	r.await("the crash or the end", patience, func() bool { return gone() || done() })
	return gone()
}

// killedRun plays it with one SIGKILL.
func killedRun(t *testing.T, n int, want string) {
	r := newRig(t, sweepOptions())
	r.start(fmt.Sprintf("SHIP_TEST_KILL_AT=%d", n))
	d := r.says(r.issue, "/ship fix the widgets")
	accepted := r.send(d) == http.StatusOK
	died := r.died(func() bool { return accepted && stickyEnded.MatchString(r.sticky(r.issue)) && r.quiet() })
	if died { // a run may have fewer points than the clean one
		r.start()
	}
	if !accepted {
		r.deliver(d) // the platform knows that it failed, and a person redelivers
	}
	r.ended(r.issue, patience)
	r.checkOutcome(t, 1)
	if diff := cmp.Diff(want, r.world()); diff != "" {
		t.Errorf("the world (-clean +killed):\n%s", diff)
	}
	r.stop()
}
