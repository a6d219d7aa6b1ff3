package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// twin is another `ship serve` on the same Redis, GitHub and model, on what
// could be another machine: it has a data_dir, and so boxes and a broker, of
// its own.
func (r *rig) twin() *rig {
	r.t.Helper()
	other := *r
	var err error
	if other.dir, err = os.MkdirTemp("/tmp", "ship-rig-"); err != nil {
		r.t.Fatal(err)
	}
	other.cmd, other.log, other.addr = nil, &syncBuffer{}, freeAddr(r.t)
	r.t.Cleanup(func() {
		other.host = nil // it is closed once
		other.close()
	})
	text, err := os.ReadFile(r.config)
	if err != nil {
		r.t.Fatal(err)
	}
	settings := strings.NewReplacer(r.addr, other.addr, r.dir, other.dir).Replace(string(text))
	other.config = filepath.Join(other.dir, "ship.yaml")
	if err := os.WriteFile(other.config, []byte(settings), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return &other
}

// freeze stops ship where it stands, as a machine that is suspended does; thaw
// lets it go on as if nothing had happened.
func (r *rig) freeze() { r.signal(syscall.SIGSTOP) }
func (r *rig) thaw()   { r.signal(syscall.SIGCONT) }

func (r *rig) signal(sig syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.t.Fatal(err)
	}
}

// TestFrozenOwner: an owner stands still in the middle of a turn for longer than
// its lease, and wakes when another goes on with the session, or is done.
//
// What is guaranteed is what people see: each thing once, and the work of one
// of the two. The other's box is on its own machine, so the turn runs again from
// the branch there, and what the model was paid for the first run is lost. A
// push that was on its way in the very moment of the freeze may still arrive; the
// second owner then merges it, as it would anybody's.
func TestFrozenOwner(t *testing.T) {
	t.Parallel()
	for _, wakes := range []string{"in the middle", "afterwards"} {
		t.Run(wakes, func(t *testing.T) {
			t.Parallel()
			a := newRig(t, rigOptions{})
			pr := a.draft()
			b := a.twin()
			a.start()
			a.deliver(a.says(pr.Number, "/ship turn TAKING 6s"))
			a.await("the agent to be at work", time.Minute, func() bool { return a.working(1) })
			a.freeze()
			b.start()
			frozen := time.Now()
			b.await("the other to take the session over", 40*time.Second, func() bool { return len(b.boxes()) == 1 && b.working(1) })
			if wakes == "in the middle" {
				time.Sleep(time.Until(frozen.Add(20 * time.Second))) // longer than a lease, however fast that went
				a.thaw()
			}
			b.endedTurns(1, time.Minute)
			time.Sleep(time.Until(frozen.Add(20 * time.Second)))
			if wakes == "afterwards" {
				a.thaw()
			}
			a.await("the first to notice", 20*time.Second, func() bool { return strings.Contains(a.log.String(), "lease lost") })
			b.once(t, pr.Number, "began: turn TAKING 6s", "turn TAKING 6s")

			b.deliver(b.says(pr.Number, "/ship oil it"))
			b.endedTurns(2, time.Minute)
			b.once(t, pr.Number, "began: turn TAKING 6s", "turn TAKING 6s", "oil it")
			b.stop()
			a.stop()
		})
	}
}

// once: the pull request has one status comment, one check run for each commit,
// settled, and the work of each prompt once.
func (r *rig) once(t *testing.T, number int, prompts ...string) {
	t.Helper()
	if n := r.said(number, "<!-- ship:session="); n != 1 {
		t.Errorf("%d status comments", n)
	}
	if n := len(r.host.PullRequests(rigRepo)); n != 1 {
		t.Errorf("%d pull requests", n)
	}
	work, _ := r.host.File(rigRepo, "topic", "WORK.md")
	if got := strings.Split(work, "\n"); !slices.Equal(got, prompts) {
		t.Errorf("the branch holds %q, want %q", got, prompts)
	}
	seen := map[string]int{}
	for _, k := range r.host.Checks(rigRepo, "") {
		if seen[k.SHA]++; seen[k.SHA] > 1 || k.Status != "completed" {
			t.Errorf("check run %d of its commit: %+v", seen[k.SHA], k)
		}
	}
}
