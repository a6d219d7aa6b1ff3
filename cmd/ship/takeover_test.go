package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ship/integrations/github/githubtest"
	"ship/session"
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
// the branch there, and what the model was paid for the first run is lost.
func TestFrozenOwner(t *testing.T) {
	t.Parallel()
	for _, wakes := range []string{"in the middle", "afterwards"} {
		t.Run(wakes, func(t *testing.T) {
			t.Parallel()
			a := newRig(t, rigOptions{})
			pr := a.draft()
			b := a.twin()
			a.start()
			a.deliver(a.says(pr.Number, "/ship turn TAKING 15s"))
			a.await("the agent to be at work", patience, func() bool { return a.working(1) })
			a.freeze()
			b.start()
			frozen := time.Now()
			b.await("the other to take the session over", patience, func() bool { return len(b.boxes()) == 1 && b.working(1) })
			if wakes == "in the middle" {
				time.Sleep(time.Until(frozen.Add(20 * time.Second))) // longer than a lease, however fast that went
				a.thaw()
			}
			b.endedTurns(1, patience)
			time.Sleep(time.Until(frozen.Add(20 * time.Second)))
			if wakes == "afterwards" {
				a.thaw()
			}
			a.await("the first to notice", patience, func() bool { return strings.Contains(a.log.String(), "lease lost") })
			b.once(t, pr.Number, "began: turn TAKING 15s", "turn TAKING 15s")

			b.deliver(b.says(pr.Number, "/ship oil it"))
			b.endedTurns(2, patience)
			b.once(t, pr.Number, "began: turn TAKING 15s", "turn TAKING 15s", "oil it")
			b.stop()
			a.stop()
		})
	}
}

// TestFrozenInAPush: the owner stands still while its push is on the way. The
// next one can reach neither the box nor the push, so it does the work again
// and says so. The push that arrives late changes nothing that was pushed since.
func TestFrozenInAPush(t *testing.T) {
	t.Parallel()
	a := newRig(t, rigOptions{})
	pr := a.draft().Number
	sent, held := make(chan struct{}), make(chan struct{})
	a.host.Inject(githubtest.Fault{On: "GIT receive-pack", Skip: 1, Do: func(*http.Request) { close(sent); <-held }})
	b := a.twin()
	a.start()
	a.deliver(a.says(pr, "/ship turn"))
	<-sent
	a.freeze()
	b.start()
	b.endedTurns(1, patience)
	if text := a.sticky(pr); !strings.Contains(text, "### ✅") || a.said(pr, "The box was lost, so I begin again") != 1 {
		t.Errorf("the comment says:\n%s", text)
	}
	b.once(t, pr, "turn")
	close(held)
	a.thaw()
	a.await("the first to notice", patience, func() bool { return strings.Contains(a.log.String(), "lease lost") })
	b.deliver(b.says(pr, "/ship oil it"))
	b.endedTurns(2, patience)
	b.once(t, pr, "turn", "oil it")
	b.stop()
	a.stop()
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

// TestLateTwins: what a frozen owner had on its way reaches GitHub only when the
// next owner has done the same. For a while it is there twice.
func TestLateTwins(t *testing.T) {
	if testing.Short() {
		t.Skip("the sweep comes after a minute and a half")
	}
	t.Parallel()
	for _, what := range []string{"issues/{number}/comments", "check-runs"} {
		t.Run(strings.ReplaceAll(what, "/", " "), func(t *testing.T) {
			t.Parallel()
			a := newRig(t, rigOptions{})
			pr := a.draft().Number
			sent, held := make(chan struct{}), make(chan struct{})
			a.host.Inject(githubtest.Fault{On: "POST " + apiRepo + "/" + what, Do: func(*http.Request) { close(sent); <-held }})
			b := a.twin()
			a.start()
			a.deliver(a.says(pr, "/ship turn"))
			<-sent
			a.freeze()
			b.start()
			b.endedTurns(1, patience)
			before := len(a.host.Comments(rigRepo, pr)) + len(a.host.Checks(rigRepo, ""))
			close(held)
			a.await("the twin", patience, func() bool {
				return len(a.host.Comments(rigRepo, pr))+len(a.host.Checks(rigRepo, "")) == before+1
			})
			a.thaw()
			b.await("the sweep", patience, func() bool { return b.told() && b.quiet() })
			if n := a.said(pr, "<!-- ship:session="); n != 1 || !strings.Contains(a.sticky(pr), "### ✅") {
				t.Errorf("%d status comments:\n%s", n, a.sticky(pr))
			}
			open := 0
			for _, k := range a.host.Checks(rigRepo, "") {
				if k.Status != "completed" {
					t.Errorf("check %+v", k)
				}
				if k.Conclusion == "success" {
					open++
				}
			}
			if open != 1 {
				t.Errorf("%d check runs say success", open)
			}
			b.stop()
			a.stop()
		})
	}
}

// told: nothing is left to be said of any turn.
func (r *rig) told() bool {
	return !slices.ContainsFunc(r.states(), func(s session.State) bool { return s.Turn != nil && !s.Turn.Told })
}
