package local_test

import (
	"context"
	"testing"
	"time"

	"ship/sandbox"
	"ship/sandbox/local"
	"ship/sandbox/sandboxtest"
)

// FuzzPaths: no path leads out of a box's folders, with isolation.
func FuzzPaths(f *testing.F) {
	needBubblewrap(f)
	sandboxtest.FuzzPaths(f, func(f *testing.F) sandbox.Box {
		return boxOf(f, open(f, local.Config{}))
	})
}

// FuzzPathsPlain: nor without, where the ship's own files lie beside them.
func FuzzPathsPlain(f *testing.F) {
	sandboxtest.FuzzPaths(f, func(f *testing.F) sandbox.Box {
		p := open(f, local.Config{Isolation: local.None})
		p.SetBridge("127.0.0.1:0")
		return boxOf(f, p)
	})
}

// boxOf makes a box that lasts as long as fuzzing may.
func boxOf(f *testing.F, p *local.Provider) sandbox.Box {
	f.Helper()
	info, err := p.Create(f.Context(), sandbox.Spec{Key: f.Name(), Generation: 1, TTL: time.Hour})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := p.Destroy(context.WithoutCancel(f.Context()), info.ID); err != nil {
			f.Error(err)
		}
	})
	box, err := p.Attach(f.Context(), info.ID, 0)
	if err != nil {
		f.Fatal(err)
	}
	return box
}
