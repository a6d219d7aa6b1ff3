// Package sandboxtest holds the tests that every sandbox.Provider passes. They
// are the contract, in the form of a program.
package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"ship/sandbox"
)

// Factory makes what is tested.
type Factory struct {
	// Open returns a provider. Every call returns a new one on the same boxes,
	// as another process of ship would have it.
	Open func(t *testing.T) sandbox.Provider
	// Echo is a command, to be run in a box, that sends back whatever is sent
	// to a TCP port of the box's loopback.
	Echo func(port int) []string
	// Single: no two boxes can live at the same time.
	Single bool
}

// Run runs the suite, and returns when all of it is over. Boxes need /bin/sh and
// the usual small programs.
func Run(t *testing.T, f Factory) {
	t.Run("contract", func(t *testing.T) {
		for _, test := range contract() {
			t.Run(test.name, func(t *testing.T) {
				if !f.Single {
					t.Parallel()
				}
				test.run(t, suite{f, f.Open(t)})
			})
		}
	})
}

// clause is one thing that is expected of every provider.
type clause struct {
	name string
	run  func(t *testing.T, s suite)
}

func contract() []clause {
	return []clause{
		{"expiry ends the box", expire}, // first, as it waits longest
		{"create twice makes one box", createTwice},
		{"create concurrently makes one box", createConcurrently},
		{"create records the higher generation", createGeneration},
		{"another key is another box", createAnother},
		{"list finds by labels", list},
		{"attach to what never was", attachUnknown},
		{"extend never shortens", extend},
		{"destroy twice", destroyTwice},
		{"destroy ends processes and files", destroyFresh},
		{"pause", pause},
		{"info is what list says", look},
		{"spawn twice starts once", spawnTwice},
		{"spawn concurrently starts once", spawnConcurrently},
		{"spawn what does not exist", spawnMissing},
		{"spawn names", spawnNames},
		{"spawn environment", spawnEnvironment},
		{"spawn folder", spawnFolder},
		{"spawn stdin", spawnStdin},
		{"exit codes and signals", exits},
		{"output while it runs", outputOffsets},
		{"output keeps its order", outputOrder},
		{"output of a background child", outputBackground},
		{"kill reaches grandchildren", killGroup},
		{"kill after grace", killGrace},
		{"kill what has ended", killEnded},
		{"write and read", writeRead},
		{"write is confined", writeConfined},
		{"read is confined", readConfined},
		{"dial", dial},
		{"dial a closed port", dialClosed},
		{"another handle sees the same", secondHandle},
	}
}

// suite is what one test works with.
type suite struct {
	Factory
	sandbox.Provider
}

// ttl is long enough for a test on a machine that has little time for it.
const ttl = 10 * time.Minute

// patience bounds every wait for what only a fault keeps from coming.
const patience = 3 * time.Minute

// spec is a box of its own for a test.
func spec(t *testing.T) sandbox.Spec {
	t.Helper()
	return sandbox.Spec{Key: t.Name(), Generation: 1, TTL: ttl}
}

// create makes a box that is destroyed after the test.
func (s suite) create(t *testing.T, spec sandbox.Spec) sandbox.Info {
	t.Helper()
	info, err := s.Create(t.Context(), spec)
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Destroy(context.WithoutCancel(t.Context()), info.ID); err != nil {
			t.Errorf("Destroy: %v", err)
		}
	})
	return info
}

// box makes a box and attaches to it.
func (s suite) box(t *testing.T) sandbox.Box {
	t.Helper()
	return s.attach(t, s.create(t, spec(t)).ID)
}

func (s suite) attach(t *testing.T, id string) sandbox.Box {
	t.Helper()
	box, err := s.Attach(t.Context(), id, ttl)
	if err != nil {
		t.Fatalf("Attach: %v", err)
	}
	return box
}

// shell runs a script to its end and returns its output.
func shell(t *testing.T, box sandbox.Box, name, script string) sandbox.Output {
	t.Helper()
	out, err := sandbox.Exec(t.Context(), box, command(name, script))
	if err != nil {
		t.Fatalf("Exec(%s): %v", name, err)
	}
	return out
}

func command(name, script string) sandbox.Command {
	return sandbox.Command{Name: name, Args: []string{"/bin/sh", "-c", script}}
}

func spawn(t *testing.T, box sandbox.Box, cmd sandbox.Command) sandbox.Process {
	t.Helper()
	p, err := box.Spawn(t.Context(), cmd)
	if err != nil {
		t.Fatalf("Spawn(%s): %v", cmd.Name, err)
	}
	return p
}

// await polls until ok, as a box announces nothing.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// awaitText waits until a file holds text.
func awaitText(t *testing.T, box sandbox.Box, path, text string) {
	t.Helper()
	await(t, path+" holds "+text, func() bool {
		data, err := box.ReadFrom(t.Context(), path, 0)
		return err == nil && bytes.Contains(data, []byte(text))
	})
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: error %v, want %v", what, got, want)
	}
}
