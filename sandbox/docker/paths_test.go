package docker_test

import (
	"testing"

	"ship/sandbox"
	"ship/sandbox/docker"
	"ship/sandbox/sandboxtest"
)

// FuzzPaths: no path leads out of a box's folders.
func FuzzPaths(f *testing.F) {
	sandboxtest.FuzzPaths(f, func(f *testing.F) sandbox.Provider { return open(f, newEngine(f), docker.Config{}) })
}
