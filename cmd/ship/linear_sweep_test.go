package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	ql "ship/graphql/linear"
	"ship/integrations/linear/lineartest"
)

// TestLinearSweep is TestSweep for an issue that is handed over in Linear. It is
// killed at what Linear gets to see, and anywhere with SHIP_TEST_SWEEP=full.
func TestLinearSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	t.Parallel()
	want, points := linearCleanRun(t)
	if len(points) < 30 {
		t.Fatalf("a turn passed only %d points: %v", len(points), points)
	}
	points = chosen(points, "effect.acknowledge", "effect.admit", "effect.begin", "effect.report", "effect.answer")
	sweep(t, points, func(t *testing.T, n int) { linearKilledRun(t, n, want) })
}

func linearCleanRun(t *testing.T) (world string, points []string) {
	t.Helper()
	r := newLinearRig(t, linearOptions{rigOptions: sweepOptions()})
	trace := filepath.Join(r.dir, "points")
	r.start("SHIP_TEST_POINTS=" + trace)
	id, d := r.assign()
	r.tell(d)
	r.answered(id, patience)
	r.checkSwept(t, id)
	world = r.world()
	r.stop()
	return world, r.points(trace)
}

func linearKilledRun(t *testing.T, n int, want string) {
	r := newLinearRig(t, linearOptions{rigOptions: sweepOptions()})
	id, d := r.assign()
	r.start(fmt.Sprintf("SHIP_TEST_KILL_AT=%d", n))
	accepted := r.post(d) == http.StatusOK
	if r.died(func() bool { return accepted && r.finished(id) }) {
		r.start()
	}
	if !accepted {
		r.tell(d) // Linear tries again
	}
	r.answered(id, patience)
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

// TestLinearStorySweep plays a longer conversation: a prompt that steers, one
// that goes on after the end, and a stop in its middle. It is killed at what
// comes after the first answer, and anywhere with SHIP_TEST_SWEEP=full.
func TestLinearStorySweep(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	t.Parallel()
	clean := &told{linearRig: newLinearRig(t, linearOptions{})}
	trace := filepath.Join(clean.dir, "points")
	clean.start("SHIP_TEST_POINTS=" + trace)
	clean.play()
	want := clean.world()
	clean.stop()
	points := clean.points(trace)
	for i, name := range points {
		late := i > 3*len(points)/5 && strings.HasSuffix(name, ".before") && strings.HasPrefix(name, "effect.")
		if os.Getenv("SHIP_TEST_SWEEP") == "" && !late {
			points[i] = ""
		}
	}
	sweep(t, chosen(points), func(t *testing.T, n int) {
		r := &told{linearRig: newLinearRig(t, linearOptions{})}
		r.start(fmt.Sprintf("SHIP_TEST_KILL_AT=%d", n))
		r.play()
		if diff := cmp.Diff(want, r.world()); diff != "" {
			t.Errorf("the world (-clean +killed):\n%s", diff)
		}
		r.stop()
	})
}

// told is a rig whose ship is started again when it dies in the middle of a
// story.
type told struct{ *linearRig }

func (r *told) play() {
	r.t.Helper()
	id, created := r.assign()
	r.accepted(created)
	r.until("the first thought", func() bool { return len(r.said(id, ql.TypeThought)) > 0 })
	r.accepted(r.linear.Prompt(id, "ada", "and oil them"))
	r.until("the first answer", func() bool { return r.responses(id) == 1 && r.finished(id) })
	r.accepted(r.linear.Prompt(id, "ada", "SLOWLY paint them"))
	r.until("the agent to paint", r.working)
	r.accepted(r.linear.Stop(id, "ada"))
	r.until("the second answer", func() bool { return r.responses(id) == 2 && r.finished(id) })
}

func (r *told) responses(id string) int { return len(r.said(id, ql.TypeResponse)) }

// accepted delivers a webhook until it is taken, twice.
func (r *told) accepted(d lineartest.Delivery) {
	r.t.Helper()
	for range 2 {
		r.until("a webhook to be accepted", func() bool { return r.post(d) == http.StatusOK })
	}
}

// until waits for the world, and starts ship again if it is gone.
func (r *told) until(what string, done func() bool) {
	r.t.Helper()
	r.await(what, patience, func() bool {
		select {
		case <-r.exited:
			r.start()
		default:
		}
		return done()
	})
}
