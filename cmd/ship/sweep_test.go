package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/sandbox/agent/modeltest"
)

// sweepAtOnce is how many killed ships wait for their leases at the same time:
// they sleep, so there may be more of them than cores.
const sweepAtOnce = 6

// TestSweep kills ship with SIGKILL at every store write and every effect of a
// turn, before and after it, starts it again, and demands the same world.
func TestSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	want, points := cleanRun(t)
	if len(points) < 30 {
		t.Fatalf("a turn passed only %d points: %v", len(points), points)
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range sweepAtOnce {
		wg.Go(func() {
			for n := range next {
				t.Run(fmt.Sprintf("%02d-%s", n, points[n-1]), func(t *testing.T) { killedRun(t, n, want) })
			}
		})
	}
	for n := range points {
		next <- n + 1
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
	r.ended(r.issue, time.Minute)
	r.checkOutcome(t, 1)
	world = r.world()
	r.stop()
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	return world, strings.Fields(string(b))
}

// killedRun plays it with one SIGKILL.
func killedRun(t *testing.T, n int, want string) {
	r := newRig(t, sweepOptions())
	r.start(fmt.Sprintf("SHIP_TEST_KILL_AT=%d", n))
	d := r.says(r.issue, "/ship fix the widgets")
	accepted := r.send(d) == http.StatusOK
	r.await("the crash or the end", time.Minute, func() bool {
		select {
		case <-r.exited:
			return true
		default:
			return accepted && stickyEnded.MatchString(r.sticky(r.issue)) && r.quiet()
		}
	})
	select {
	case <-r.exited:
		r.start()
	default: // a run may have fewer points than the clean one
	}
	if !accepted {
		r.deliver(d) // the platform knows that it failed, and a person redelivers
	}
	r.ended(r.issue, 2*time.Minute)
	r.checkOutcome(t, 1)
	if diff := cmp.Diff(want, r.world()); diff != "" {
		t.Errorf("the world (-clean +killed):\n%s", diff)
	}
	r.stop()
}
