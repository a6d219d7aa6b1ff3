package redis

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"ship/session/redis/redistest"
)

// TestPowerLoss ends the server under a hail of deliveries as a power cut does:
// what was not synced is gone. It states what each setting can lose, as
// docs/redis.md says.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	held := holdBack(t)
	tests := []struct {
		name   string
		fsync  string
		newer  bool // and waits for its disk
		cut    bool // a power cut, not only the death of the process
		mayEat bool // may lose what was accepted
	}{
		{name: "always", fsync: "always", cut: true},
		{name: "everysec", fsync: "everysec", cut: true, mayEat: true},
		{name: "everysec killed only", fsync: "everysec"},
		{name: "everysec with wait_disk", fsync: "everysec", cut: true, newer: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			start := redistest.Start
			if test.newer {
				start = redistest.StartNewer
			}
			srv := start(t, "--appendfsync", test.fsync, "--dir", t.TempDir()) // on the disk, whatever that is like
			if test.cut {
				srv.Kill()
				srv.Env("LD_PRELOAD=" + held)
				srv.Restart()
			}
			open := func(t *testing.T, srv *redistest.Server) *Store { return openAt(t, srv) }
			if test.newer {
				open = openWaiting
			}
			s := open(t, srv)
			accepted := hail(t, s, 400, srv.Kill)
			srv.Env()
			srv.Restart()
			lost := checkRest(t, s, accepted)
			t.Logf("%d of %d accepted deliveries were lost", lost, len(accepted))
			if lost > 0 && !test.mayEat {
				t.Errorf("%d accepted deliveries were lost", lost)
			}
		})
	}
}

// checkRest counts what was lost of what was accepted. It must be the newest:
// what is there has no gap, and each stands where its receipt said.
func checkRest(t *testing.T, s *Store, accepted map[string]int64) (lost int) {
	t.Helper()
	there := make(map[string]int64)
	for after := int64(0); ; {
		events, err := s.Read(t.Context(), "gh.1.1", after)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			if e.Seq != after+1 {
				t.Fatalf("event %d follows %d", e.Seq, after)
			}
			after, there[e.Delivery] = e.Seq, e.Seq
		}
	}
	for key, seq := range accepted {
		switch got, found := there[key]; {
		case !found && seq <= int64(len(there)):
			t.Errorf("%s was accepted as %d, and another is there", key, seq)
		case !found:
			lost++
		case got != seq:
			t.Errorf("%s was accepted as %d, and is at %d", key, seq, got)
		}
	}
	// Half a script is never replayed: whoever is there is known to be there.
	for key, seq := range there {
		if r, err := s.Append(t.Context(), request("gh.1.1", key)); err != nil || !r.Duplicate || r.Seq != seq {
			t.Fatalf("%s is there as %d, and not known: %+v, %v", key, seq, r, err)
		}
	}
	return lost
}

// holdBack builds testdata/powerloss.c.
func holdBack(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if runtime.GOOS != "linux" || err != nil {
		t.Skip("a power cut is emulated with a C library on Linux: install a C compiler")
	}
	out := filepath.Join(t.TempDir(), "powerloss.so")
	if said, err := exec.Command(cc, "-O1", "-shared", "-fPIC", "-pthread", "-o", out, "testdata/powerloss.c").CombinedOutput(); err != nil {
		t.Fatalf("build powerloss.c: %v\n%s", err, said)
	}
	return out
}
