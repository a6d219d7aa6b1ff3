package local_test

import (
	"testing"

	"ship/sandbox"
	"ship/sandbox/local"
	"ship/sandbox/sandboxtest"
)

// FuzzPaths: no path leads out of a box's folders, with isolation.
func FuzzPaths(f *testing.F) {
	needBubblewrap(f)
	sandboxtest.FuzzPaths(f, func(f *testing.F) sandbox.Provider { return open(f, local.Config{}) })
}

// FuzzPathsPlain: nor without, where the ship's own files lie beside them.
func FuzzPathsPlain(f *testing.F) {
	sandboxtest.FuzzPaths(f, func(f *testing.F) sandbox.Provider {
		p := open(f, local.Config{Isolation: local.None})
		p.SetBridge("127.0.0.1:0")
		return p
	})
}
