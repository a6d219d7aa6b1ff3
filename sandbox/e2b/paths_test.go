package e2b_test

import (
	"context"
	"testing"
	"time"

	"ship/sandbox"
	"ship/sandbox/e2b/e2btest"
	"ship/sandbox/sandboxtest"
)

// FuzzPaths: no path leads out of a box's folders.
func FuzzPaths(f *testing.F) {
	sandboxtest.FuzzPaths(f, func(f *testing.F) sandbox.Box {
		p := newWorld(f, e2btest.Options{}).open(f)
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
	})
}
