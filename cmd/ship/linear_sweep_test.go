package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	ql "ship/graphql/linear"
)

// TestLinearSweep is TestSweep for an issue that is handed over in Linear. What
// a turn passes besides its effects is swept there, and here with
// SHIP_TEST_SWEEP=full.
func TestLinearSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	t.Parallel()
	want, points := linearCleanRun(t)
	if len(points) < 30 {
		t.Fatalf("a turn passed only %d points: %v", len(points), points)
	}
	for i, name := range points {
		if os.Getenv("SHIP_TEST_SWEEP") == "" && !strings.HasPrefix(name, "effect.") {
			points[i] = ""
		}
	}
	sweep(t, points, func(t *testing.T, n int) { linearKilledRun(t, n, want) })
}

func linearCleanRun(t *testing.T) (world string, points []string) {
	t.Helper()
	r := newLinearRig(t, linearOptions{})
	trace := filepath.Join(r.dir, "points")
	r.start("SHIP_TEST_POINTS=" + trace)
	id, d := r.assign()
	r.tell(d)
	r.answered(id, time.Minute)
	r.checkSwept(t, id)
	world = r.world()
	r.stop()
	return world, r.points(trace)
}

func linearKilledRun(t *testing.T, n int, want string) {
	r := newLinearRig(t, linearOptions{})
	id, d := r.assign()
	r.start(fmt.Sprintf("SHIP_TEST_KILL_AT=%d", n))
	accepted := r.post(d) == http.StatusOK
	if r.died(func() bool { return accepted && r.finished(id) }) {
		r.start()
	}
	if !accepted {
		r.tell(d) // Linear tries again
	}
	r.answered(id, 2*time.Minute)
	r.checkSwept(t, id)
	if diff := cmp.Diff(want, r.world()); diff != "" {
		t.Errorf("the world (-clean +killed):\n%s", diff)
	}
	r.stop()
}

// checkSwept: the work once, one response, and that last.
func (r *linearRig) checkSwept(t *testing.T, id string) {
	t.Helper()
	r.work(t, 1)
	if n := len(r.said(id, ql.TypeResponse)); n != 1 || r.last(id).Content.Type != ql.TypeResponse {
		t.Errorf("%d responses, the last word is %+v", n, r.last(id).Content)
	}
}
