package docker_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"ship/sandbox"
	"ship/sandbox/docker"
	"ship/sandbox/docker/dockertest"
)

// TestTogether: several gateways pause, wake and look at one box at the same
// time. It is never lost, and never doubled.
func TestTogether(t *testing.T) { each(t, testTogether) }

func testTogether(t *testing.T, e engine) {
	dir := t.TempDir()
	first := open(t, e, docker.Config{Dir: dir})
	info := create(t, first)
	shell(t, attach(t, first, info.ID), "mark", "echo kept > /work/kept")
	steps := []func(p *docker.Provider) error{
		func(p *docker.Provider) error { return p.Pause(t.Context(), info.ID) },
		func(p *docker.Provider) error { _, err := p.Attach(t.Context(), info.ID, time.Minute); return err },
		func(p *docker.Provider) error { return p.Extend(t.Context(), info.ID, time.Now().Add(time.Hour)) },
		func(p *docker.Provider) error {
			again, err := p.Create(t.Context(), spec(t))
			if err == nil && again.ID != info.ID {
				err = errors.New("another box: " + again.ID)
			}
			return err
		},
		func(p *docker.Provider) error {
			infos, err := p.List(t.Context(), map[string]string{sandbox.LabelSession: t.Name()})
			if err == nil && (len(infos) != 1 || infos[0].ID != info.ID) {
				err = errors.New("the list lacks it")
			}
			return err
		},
	}
	var all sync.WaitGroup
	for _, step := range steps {
		p := open(t, e, docker.Config{Dir: dir})
		// A pause may come while another waits for the guest; it wakes it again. A
		// guest that is only slow has to come sooner than that.
		p.SetPatience(15 * time.Second)
		all.Go(func() {
			for range 8 {
				if err := step(p); err != nil && !errors.Is(err, sandbox.ErrTransient) && !errors.Is(err, sandbox.ErrBusy) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := shell(t, attach(t, first, info.ID), "look", "cat /work/kept"); got != "kept" {
		t.Errorf("/work/kept holds %q", got)
	}
	if c := only(t, e); c.State != "running" {
		t.Errorf("the container is %s", c.State)
	}
}

// TestWokenMeanwhile: the engine's list is old when it comes. By it the box
// sleeps, and by its folder it does not any more; it is not taken for dead.
func TestWokenMeanwhile(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	dir := t.TempDir()
	p, other := open(t, e, docker.Config{Dir: dir}), open(t, e, docker.Config{Dir: dir})
	info := create(t, p)
	for name, look := range map[string]func() error{
		"List":   func() error { _, err := p.List(t.Context(), nil); return err },
		"Extend": func() error { return p.Extend(t.Context(), info.ID, time.Now()) },
		"Create": func() error { _, err := p.Create(t.Context(), spec(t)); return err },
	} {
		if err := p.Pause(t.Context(), info.ID); err != nil {
			t.Fatal(err)
		}
		e.Strike(dockertest.Fault{On: "list", Then: func() {
			if _, err := other.Attach(t.Context(), info.ID, time.Minute); err != nil {
				t.Errorf("Attach: %v", err)
			}
		}})
		if err := look(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := list(t, p); got.ID != info.ID || got.State != sandbox.Running {
			t.Fatalf("after %s there is %+v", name, got)
		}
	}
}
