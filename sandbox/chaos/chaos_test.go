package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"ship/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// doomed is a provider whose one session meets one fault, at its first occasion,
// with the session's box.
func doomed(t *testing.T, f Fault) (*Provider, *yard, string) {
	t.Helper()
	y := newYard()
	p := New(Config{Boxes: y, Logger: slog.New(slog.DiscardHandler)})
	p.fates["s"] = &fate{random: rand.New(rand.NewPCG(1, 2)), strike: map[Fault][]int{}, occasions: map[Fault]int{}}
	info, err := p.Create(t.Context(), sandbox.Spec{Key: "s", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	p.fates["s"].occasions, p.fates["s"].strike[f] = map[Fault]int{}, []int{1}
	return p, y, info.ID
}

func attach(t *testing.T, p *Provider, id string) sandbox.Box {
	t.Helper()
	box, err := p.Attach(t.Context(), id, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// TestSeed: the same seed tells a session the same story, and another one another.
func TestSeed(t *testing.T) {
	t.Parallel()
	plan := func(seed uint64, key string) string { return fmt.Sprint(newFate(seed, key).strike) }
	one, again := plan(1, "a"), plan(1, "a")
	if one != again {
		t.Error("the same seed and session, and another story")
	}
	if one == plan(1, "b") || one == plan(2, "a") {
		t.Error("another seed or session, and the same story")
	}
}

// TestEveryFaultIsFew: each kind strikes some session, and none too often.
func TestEveryFaultIsFew(t *testing.T) {
	t.Parallel()
	most := map[Fault]int{}
	for seed := range uint64(200) {
		for f, at := range newFate(seed, "s").strike {
			most[f] = max(most[f], len(at))
		}
	}
	want := map[Fault]int{}
	for _, o := range faultOdds() {
		want[o.fault] = o.most
	}
	if diff := cmp.Diff(want, most); diff != "" || len(most) != len(Kinds()) {
		t.Errorf("faults of one session (-want +got):\n%s", diff)
	}
}

func TestKilled(t *testing.T) {
	t.Parallel()
	p, _, id := doomed(t, Killed)
	box := attach(t, p, id)
	if _, err := box.Spawn(t.Context(), sandbox.Command{Name: "x"}); err != nil {
		t.Errorf("the command was not started: %v", err)
	}
	if _, err := box.Process(t.Context(), "x"); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("the box lives on: %v", err)
	}
	if _, err := p.Attach(t.Context(), id, time.Hour); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("the box lives on: %v", err)
	}
}

func TestStale(t *testing.T) {
	t.Parallel()
	p, _, id := doomed(t, Stale)
	box := attach(t, p, id)
	var err error
	for range 30 {
		_, err = box.Process(t.Context(), "x")
	}
	if !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("the handle works on: %v", err)
	}
	if _, err := attach(t, p, id).Process(t.Context(), "x"); err != nil {
		t.Errorf("another handle: %v", err)
	}
}

func TestHidden(t *testing.T) {
	t.Parallel()
	p, _, id := doomed(t, Hidden)
	if _, err := p.Info(t.Context(), id); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("Info: %v", err)
	}
	if _, err := p.Info(t.Context(), id); err != nil {
		t.Errorf("Info, again: %v", err)
	}
	p.fates["s"].occasions[Hidden] = 0
	if all, err := p.List(t.Context(), nil); err != nil || len(all) != 0 {
		t.Errorf("List: %v, %v", all, err)
	}
	if all, err := p.List(t.Context(), nil); err != nil || len(all) != 1 {
		t.Errorf("List, again: %v, %v", all, err)
	}
}

func TestMisstated(t *testing.T) {
	t.Parallel()
	p, _, id := doomed(t, Misstated)
	for _, want := range []sandbox.State{sandbox.Paused, sandbox.Running} {
		if info, err := p.Info(t.Context(), id); err != nil || info.State != want {
			t.Errorf("Info says %s, %v; want %s", info.State, err, want)
		}
	}
}

// TestUnanswered: it is done, and nobody hears of it.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(context.Context, *Provider, string) error{
		"extended":  func(ctx context.Context, p *Provider, id string) error { return p.Extend(ctx, id, time.Now()) },
		"paused":    func(ctx context.Context, p *Provider, id string) error { return p.Pause(ctx, id) },
		"destroyed": func(ctx context.Context, p *Provider, id string) error { return p.Destroy(ctx, id) },
		"made": func(ctx context.Context, p *Provider, _ string) error {
			_, err := p.Create(ctx, sandbox.Spec{Key: "s"})
			return err
		},
	} {
		p, y, id := doomed(t, Unanswered)
		if err := ask(t.Context(), p, id); !errors.Is(err, sandbox.ErrTransient) {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Contains(y.did, name+" "+id) {
			t.Errorf("%s: it was not done: %v", name, y.did)
		}
		if err := ask(t.Context(), p, id); err != nil {
			t.Errorf("%s, again: %v", name, err)
		}
	}
	p, y, id := doomed(t, Unanswered)
	if err := attach(t, p, id).Write(t.Context(), "/work/x", []byte("x"), 0o600); !errors.Is(err, sandbox.ErrTransient) || y.boxes[id].files["/work/x"] != "x" {
		t.Errorf("Write: %v, %v", err, y.boxes[id].files)
	}
}

func TestSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _, id := doomed(t, Slow)
		box := attach(t, p, id)
		began := time.Now()
		if _, err := box.Process(t.Context(), "x"); err != nil || time.Since(began) < 100*time.Millisecond {
			t.Errorf("it took %s, %v", time.Since(began), err)
		}
		p.fates["s"].occasions[Slow] = 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := box.Process(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it does not end with its context: %v", err)
		}
	})
}

func TestCut(t *testing.T) {
	t.Parallel()
	p, y, id := doomed(t, Cut)
	box := attach(t, p, id)
	y.boxes[id].files["/work/x"] = "a file of some length"
	got, err := box.ReadFrom(t.Context(), "/work/x", 0)
	if err != nil || len(got) == 0 || len(got) == 21 || !strings.HasPrefix("a file of some length", string(got)) {
		t.Errorf("%q, %v", got, err)
	}
	p.fates["s"].occasions[Cut] = 0
	if got, err = box.ReadFrom(t.Context(), "/work/none", 0); !errors.Is(err, sandbox.ErrTransient) {
		t.Errorf("%q, %v", got, err)
	}
	p.fates["s"].occasions[Cut] = 0
	conn, err := box.Dial(t.Context(), 80)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, conn); !errors.Is(err, io.ErrUnexpectedEOF) || n > 2000 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestOlder: a box that wakes is told to forget what was written since it was
// last attached to, once.
func TestOlder(t *testing.T) {
	t.Parallel()
	p, y, id := doomed(t, Older)
	attach(t, p, id)
	for round := range 2 {
		if err := p.Pause(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		attach(t, p, id)
		ran := y.boxes[id].ran
		if len(ran) != 1 || !slices.Contains(ran[0].Args, "-delete") {
			t.Errorf("round %d: what ran in the box: %v", round, ran)
		}
	}
}

// TestStruck: every fault is told.
func TestStruck(t *testing.T) {
	t.Parallel()
	p, _, id := doomed(t, Hidden)
	var told []string
	p.cfg.OnFault = func(key string, f Fault) { told = append(told, key+" "+string(f)) }
	_, _ = p.Info(t.Context(), id)
	if !slices.Equal(told, []string{"s hidden"}) {
		t.Errorf("told: %q", told)
	}
}

// TestUnknownBox: of a box that nobody has heard of, the provider says so itself.
func TestUnknownBox(t *testing.T) {
	t.Parallel()
	p := New(Config{Boxes: newYard(), Logger: slog.New(slog.DiscardHandler)})
	if _, err := p.Attach(t.Context(), "nobody", time.Hour); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("Attach: %v", err)
	}
	if err := p.Destroy(t.Context(), "nobody"); err != nil {
		t.Errorf("Destroy: %v", err)
	}
}
