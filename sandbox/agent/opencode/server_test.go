package opencode

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ship/sandbox"
	"ship/sandbox/agent"
)

// TestStartAgain: what a second start finds, and whether it starts a server.
func TestStartAgain(t *testing.T) {
	t.Parallel()
	more := testSetup()
	more.Providers[0].Models = append(more.Providers[0].Models, agent.Offer{Name: "m3"})
	for _, tt := range []struct {
		name    string
		change  func(s *started)
		setup   agent.Setup
		servers int
	}{
		{"the same", func(*started) {}, testSetup(), 1},
		{"other models, idle", func(*started) {}, more, 2},
		{"other models, busy", func(s *started) { s.srv.statuses["ses_x"] = wireStatus{Type: "busy"} }, more, 1},
		{"server died", func(s *started) { s.box.end(s.box.servers()[0], 137) }, testSetup(), 2},
		{"server hangs", func(s *started) { s.srv.sick = 500 }, testSetup(), 2},
		{"server is slow", func(s *started) { s.srv.slow = 6 * time.Second }, testSetup(), 1},
		{"no record", func(s *started) { delete(s.box.files, recordPath) }, testSetup(), 2},
		{"broken record", func(s *started) { s.box.files[recordPath] = []byte("{") }, testSetup(), 2},
		{"process unknown", func(s *started) { delete(s.box.procs, s.box.servers()[0]) }, testSetup(), 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *started) {
				s.srv.set(func() { tt.change(s) })
				boot := s.box.boot
				s.box.boot = func(b *fakeBox, name string) {
					s.srv.set(func() { s.srv.sick = 0 })
					boot(b, name)
				}
				a, err := Driver{}.Start(t.Context(), s.box, tt.setup)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(a.(*handle).client.Load().http.CloseIdleConnections)
				servers := s.box.servers()
				if len(servers) != tt.servers {
					t.Errorf("started %d servers, want %d", len(servers), tt.servers)
				}
				if old := s.box.procs[servers[0]]; tt.servers == 2 && old != nil && old.Running && tt.name != "no record" && tt.name != "broken record" {
					t.Error("the old server still runs")
				}
				if _, err := a.Snapshot(t.Context(), s.ses, "p"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestStartWaitsForTheLine: nothing is asked before the server says that it
// listens, even if the line comes in pieces.
func TestStartWaitsForTheLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		box, srv := newFakeBox(), newFakeServer()
		box.boot = func(b *fakeBox, name string) {
			b.listen(t, srv) // bound, but not ready
			time.Sleep(3 * time.Second)
			b.print(name, "a warning\nopencode server list")
			time.Sleep(time.Second)
			if srv.count("GET /global/health") > 0 {
				t.Error("asked before it was ready")
			}
			b.print(name, "ening on http://127.0.0.1:4096\n")
		}
		a, err := Driver{}.Start(t.Context(), box, testSetup())
		if err != nil {
			t.Fatal(err)
		}
		a.(*handle).client.Load().http.CloseIdleConnections()
	})
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		boot func(b *fakeBox, name string)
		want error
		says string
	}{
		{"ends at once", func(b *fakeBox, name string) { b.print(name, "no such library"); b.end(name, 127) }, agent.ErrDown, "no such library"},
		{"never says that it listens", func(*fakeBox, string) {}, errStarting, ""},
		{"listens, but does not answer", func(b *fakeBox, name string) { b.print(name, string(listening)) }, agent.ErrDown, "health"},
		{"box goes away", func(b *fakeBox, _ string) { b.mu.Lock(); defer b.mu.Unlock(); b.lost = sandbox.ErrGone }, sandbox.ErrGone, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				box := newFakeBox()
				box.boot = tt.boot
				began := time.Now()
				_, err := Driver{}.Start(t.Context(), box, testSetup())
				if !errors.Is(err, tt.want) || !strings.Contains(fmt.Sprint(err), tt.says) {
					t.Errorf("error %v", err)
				}
				if took := time.Since(began); took > starting+time.Second {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}

// TestReviveOnce: callers at the same time start one server.
func TestReviveOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *started) {
		s.box.end(s.box.servers()[0], 137)
		restarts := make(chan bool, 3)
		for range 3 {
			go func() {
				restarted, err := s.Revive(t.Context())
				if err != nil {
					t.Error(err)
				}
				restarts <- restarted
			}()
		}
		n := 0
		for range 3 {
			if <-restarts {
				n++
			}
		}
		if n != 1 || len(s.box.servers()) != 2 {
			t.Errorf("%d callers restarted it; servers: %v", n, s.box.servers())
		}
	})
}

// TestServerEnvironment: what an agent is told of its surroundings reaches it,
// and another such word is a reason to start anew.
func TestServerEnvironment(t *testing.T) {
	t.Parallel()
	setup := testSetup()
	before := digest(setup, nil)
	setup.Env = []string{"HTTPS_PROXY=http://127.0.0.1:4010"}
	if digest(setup, nil) == before {
		t.Error("the digest does not tell")
	}
	s, err := newServer(newFakeBox(), setup, DefaultPort)
	if err != nil {
		t.Fatal(err)
	}
	if env := environment(record{}, s.env); env[len(env)-1] != setup.Env[0] {
		t.Errorf("the environment is %q", env)
	}
}
