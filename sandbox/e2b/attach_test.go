package e2b_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"ship/sandbox"
	"ship/sandbox/e2b"
	"ship/sandbox/e2b/e2btest"
)

// wantEnd wants that a box, as E2B has it, ends a span after a moment between
// begin and now.
func (w *world) wantEnd(t *testing.T, what string, begin time.Time, span time.Duration) {
	t.Helper()
	ends := w.one(t).Ends
	if ends.Before(begin.Add(span-time.Second)) || ends.After(time.Now().Add(span+2*time.Second)) {
		t.Errorf("%s: the box ends in %s, want %s", what, time.Until(ends), span)
	}
}

// TestExpiry: what is set is what was meant, whatever a connect does.
func TestExpiry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, e2btest.Options{Ship: true})
	p := w.open(t)
	info := create(t, p)
	extend := func(d time.Duration) {
		t.Helper()
		if err := p.Extend(t.Context(), info.ID, time.Now().Add(d)); err != nil {
			t.Fatalf("Extend: %v", err)
		}
	}
	begin := time.Now()
	extend(30 * time.Minute)
	w.wantEnd(t, "extended", begin, 30*time.Minute)
	w.vault.Lose() // so that attaching has to connect
	attach(t, p, info.ID)
	w.wantEnd(t, "attached", begin, 30*time.Minute)
	begin = time.Now()
	extend(2 * time.Hour)
	w.wantEnd(t, "beyond what the plan allows", begin, time.Hour)
	if err := p.Pause(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
	extend(time.Minute)
	begin = time.Now()
	if _, err := p.Attach(t.Context(), info.ID, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	w.wantEnd(t, "woken", begin, 10*time.Minute)
	w.Advance(11 * time.Minute)
	if _, err := p.Attach(t.Context(), info.ID, time.Minute); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("after its time: %v", err)
	}
}

// TestLongLife: with a plan that allows more than an hour at a time.
func TestLongLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, e2btest.Options{MaxLife: 24 * time.Hour})
	p := w.open(t, func(c *e2b.Config) { c.MaxLife = 24 * time.Hour })
	info := create(t, p)
	begin := time.Now()
	for _, until := range []time.Duration{3 * time.Hour, 2 * time.Hour} {
		if err := p.Extend(t.Context(), info.ID, time.Now().Add(until)); err != nil {
			t.Fatal(err)
		}
		w.wantEnd(t, "extended", begin, 3*time.Hour)
	}
}

// TestPause: files are kept, processes as it is set.
func TestPause(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string]bool{"files": false, "files and processes": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e2btest.Options{})
			p := w.open(t, func(c *e2b.Config) { c.PauseMemory = memory })
			info := create(t, p)
			old := attach(t, p, info.ID)
			shell(t, old, "write", "echo kept > /work/kept")
			if _, err := old.Spawn(t.Context(), sandbox.Command{Name: "long", Args: []string{"sleep", "600"}}); err != nil {
				t.Fatal(err)
			}
			for round := range 2 {
				if err := p.Pause(t.Context(), info.ID); err != nil {
					t.Fatalf("Pause: %v", err)
				}
				if infos, err := p.List(t.Context(), nil); err != nil || len(infos) != 1 || infos[0].State != sandbox.Paused {
					t.Errorf("List: %+v, %v", infos, err)
				}
				if _, err := old.Process(t.Context(), "long"); !errors.Is(err, sandbox.ErrGone) {
					t.Errorf("a handle from before the pause: %v", err)
				}
				if again := create(t, p); again.ID != info.ID || again.State != sandbox.Paused {
					t.Errorf("Create: %+v", again)
				}
				box := attach(t, p, info.ID)
				if data, err := box.ReadFrom(t.Context(), "/work/kept", 0); err != nil || string(data) != "kept\n" {
					t.Errorf("round %d: %q, %v", round, data, err)
				}
				process, err := box.Process(t.Context(), "long")
				if memory && (err != nil || !process.Running) || !memory && !errors.Is(err, sandbox.ErrGone) {
					t.Errorf("round %d: the process is %+v, %v", round, process, err)
				}
			}
		})
	}
}

// TestOlderFiles: a box that comes back with older files than it went with is
// not taken for the one that it was.
func TestOlderFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, e2btest.Options{Ship: true})
	p := w.open(t)
	info := create(t, p)
	sleep := func() {
		t.Helper()
		if err := p.Pause(t.Context(), info.ID); err != nil {
			t.Fatal(err)
		}
	}
	attach(t, p, info.ID)
	sleep()
	if err := w.Keep(info.ID); err != nil {
		t.Fatal(err)
	}
	attach(t, p, info.ID)
	sleep()
	if err := w.Rewind(info.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Attach(t.Context(), info.ID, time.Minute); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("Attach: %v", err)
	}
	if left := w.Boxes(); len(left) != 0 {
		t.Errorf("it is still there: %+v", left)
	}
	if again := create(t, p); again.ID == info.ID {
		t.Error("the same box was made again")
	}
}

// TestPauseBusy: somebody else pauses at the same moment.
func TestPauseBusy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, e2btest.Options{})
	p := w.open(t)
	info := create(t, p)
	busy := e2btest.Fault{On: "pause", Status: http.StatusConflict, Body: `{"code":409,"message":"changing"}`}
	w.Inject(busy)
	if err := p.Pause(t.Context(), info.ID); !errors.Is(err, sandbox.ErrBusy) {
		t.Errorf("while it changes: %v", err)
	}
	w.Inject(e2btest.Fault{On: "pause", Lost: true})
	if err := p.Pause(t.Context(), info.ID); !errors.Is(err, sandbox.ErrTransient) {
		t.Errorf("with the answer lost: %v", err)
	}
	if err := p.Pause(t.Context(), info.ID); err != nil {
		t.Errorf("again: %v", err)
	}
}

// TestGuestDied: the box stays, with a guest that knows only what it started;
// nobody is left behind whom it does not know.
func TestGuestDied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, e2btest.Options{Ship: true})
	p := w.open(t)
	info := create(t, p)
	box := attach(t, p, info.ID)
	if _, err := box.Spawn(t.Context(), sandbox.Command{Name: "orphan", Args: []string{"sleep", "601"}}); err != nil {
		t.Fatal(err)
	}
	_, _ = box.Spawn(t.Context(), sandbox.Command{Name: "kill", Args: []string{"/bin/sh", "-c", "kill -9 $PPID"}})
	awaitErr(t, sandbox.ErrTransient, func() error { _, err := box.Process(t.Context(), "orphan"); return err })
	box = attach(t, p, info.ID)
	if _, err := box.Process(t.Context(), "orphan"); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("Process: %v", err)
	}
	out := shell(t, box, "look", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
	if strings.Contains(string(out.Data), "sleep 601") {
		t.Errorf("an orphan lives: %s", out.Data)
	}
}

// awaitErr polls until a call fails as it should: that a box changes is not
// announced.
func awaitErr(t *testing.T, want error, call func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if err = call(); errors.Is(err, want) {
			return
		}
	}
	t.Fatalf("waited in vain for %v, last it was %v", want, err)
}

// TestAttachConcurrently starts one guest, and brings it in once.
func TestAttachConcurrently(t *testing.T) {
	t.Parallel()
	w := newWorld(t, e2btest.Options{})
	info := create(t, w.open(t))
	var all sync.WaitGroup
	for range 4 {
		p := w.open(t)
		all.Go(func() {
			box, err := p.Attach(t.Context(), info.ID, time.Minute)
			if err == nil {
				_, err = box.Spawn(t.Context(), sandbox.Command{Name: "once", Args: []string{"/bin/sh", "-c", "echo x >> /work/starts; sleep 600"}})
			}
			if err != nil {
				t.Errorf("Attach: %v", err)
			}
		})
	}
	all.Wait()
	before := w.Calls("port 49983")
	box := attach(t, w.open(t), info.ID)
	if w.Calls("port 49983") != before {
		t.Error("a guest that runs was started again")
	}
	if out := shell(t, box, "count", "wc -l < /work/starts"); strings.TrimSpace(string(out.Data)) != "1" {
		t.Errorf("there were %s guests", out.Data)
	}
}

// TestFaultsOnTheWay: what passes is waited for, what does not is told.
func TestFaultsOnTheWay(t *testing.T) {
	t.Parallel()
	notFound := `{"sandboxId":"x","message":"The sandbox was not found","code":502}`
	for name, c := range map[string]struct {
		fault e2btest.Fault
		want  error
	}{
		"stream cut":              {e2btest.Fault{On: "port 49983", Cut: 20}, nil},
		"stream cut at the start": {e2btest.Fault{On: "port 49983", Skip: 3, Cut: 20}, nil},
		"start lost":              {e2btest.Fault{On: "port 49983", Lost: true}, nil},
		"envd not up yet":         {e2btest.Fault{On: "port 49983", Status: 502, Body: `{"sandboxId":"x","message":"m","port":49983,"code":502}`}, nil},
		"not known to the proxy":  {e2btest.Fault{On: "port 4011", Status: 502, Body: notFound, Times: 3}, nil},
		"changing":                {e2btest.Fault{On: "port 4011", Status: 409, Body: `{"code":409,"message":"m"}`}, nil},
		"a balancer's page":       {e2btest.Fault{On: "port 4011", Status: 503, Body: "<html>"}, nil},
		"old tokens":              {e2btest.Fault{On: "port 4011", Status: 403, Body: `{"sandboxId":"x","message":"m","code":403}`}, nil},
		"envd refuses":            {e2btest.Fault{On: "port 49983", Times: -1, Status: 401, Body: `{"code":401,"message":"m"}`}, sandbox.ErrAuth},
		"killed meanwhile":        {e2btest.Fault{On: "get", Status: 404, Body: `{"code":404,"message":"m"}`}, sandbox.ErrGone},
		"no place to wake up":     {e2btest.Fault{On: "get", Status: 503, Body: `{"code":503,"message":"m","error_code":"sandbox_capacity_unavailable"}`}, sandbox.ErrQuota},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e2btest.Options{})
			p := w.open(t)
			info := create(t, p)
			w.Inject(c.fault)
			box, err := p.Attach(t.Context(), info.ID, time.Minute)
			if !errors.Is(err, c.want) {
				t.Fatalf("Attach: %v, want %v", err, c.want)
			}
			if err == nil && string(shell(t, box, "p", "echo works").Data) != "works\n" {
				t.Error("it does not work")
			}
		})
	}
}

// TestAttachCancelled: a proxy that says nothing does not hold anybody.
func TestAttachCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, e2btest.Options{})
	p := w.open(t)
	info := create(t, p)
	w.Inject(e2btest.Fault{On: "port 4011", Hang: true})
	cause := errors.New("no patience")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, cause)
	defer cancel()
	if _, err := p.Attach(ctx, info.ID, time.Minute); !errors.Is(err, cause) {
		t.Errorf("Attach: %v", err)
	}
}

// TestNoSecretInside: nothing that a process of the box can read holds a token.
func TestNoSecretInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, e2btest.Options{Ship: true})
	p := w.open(t)
	box := attach(t, p, create(t, p).ID)
	out := shell(t, box, "look", `
		cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /run/ship/guest.* 2>/dev/null | tr '\0' '\n' > /tmp/all
		find /work /run /opt /tmp -type f -size -1000k ! -name all -exec cat {} + >> /tmp/all 2>/dev/null
		grep -a -c -e guest /tmp/all; grep -a -i -e 'GUEST_SECRET=' -e e2b_ -e ta_ -e ea_ /tmp/all | grep -v grep; curl -s -m 5 http://127.0.0.1:4011/v1/health`)
	text := string(out.Data)
	for _, secret := range []string{"GUEST_SECRET=", e2btest.Key, "ta_", "ea_"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q can be read: %s", secret, text)
		}
	}
	if strings.HasPrefix(text, "0\n") || strings.Contains(text, `"box"`) {
		t.Errorf("the look itself: %s", text)
	}
}

// TestBroker: the bridge in the box leads to the public URL, with the token of
// the turn.
func TestBroker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, e2btest.Options{Ship: true, Door: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization")+" "+string(body))
	})})
	p := w.open(t, func(c *e2b.Config) { c.PublicURL = e2btest.AllowedURL + "/base" })
	box := attach(t, p, create(t, p).ID)
	for _, token := range []string{"first", "second"} {
		if err := box.Write(t.Context(), sandbox.TokenPath, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		out := shell(t, box, "ask-"+token, "curl -s -d hello -H 'Authorization: Bearer mine' "+sandbox.BrokerURL+"/broker/git/a/b.git")
		if want := "POST /base/broker/git/a/b.git Bearer " + token + " hello"; string(out.Data) != want {
			t.Errorf("%q, want %q", out.Data, want)
		}
	}
}
