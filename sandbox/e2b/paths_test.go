package e2b_test

import (
	"testing"

	"ship/sandbox"
	"ship/sandbox/e2b/e2btest"
	"ship/sandbox/sandboxtest"
)

// FuzzPaths: no path leads out of a box's folders.
func FuzzPaths(f *testing.F) {
	sandboxtest.FuzzPaths(f, func(f *testing.F) sandbox.Provider { return newWorld(f, e2btest.Options{Ship: true}).open(f) })
}
