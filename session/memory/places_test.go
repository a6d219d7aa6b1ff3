package memory_test

import (
	"testing"

	"ship/session"
	"ship/session/memory"
	"ship/session/sessiontest"
)

func TestPlaces(t *testing.T) {
	sessiontest.RunPlaces(t, func(*testing.T) session.Places { return &memory.Places{} })
}

// FuzzPlaces: whatever is called in whatever order, the answers are those of a
// simple model.
func FuzzPlaces(f *testing.F) {
	f.Add([]byte{0, 1, 1, 1, 2, 1, 4, 1, 0, 4, 1, 31, 4, 4})
	f.Add([]byte{0, 1, 4, 1, 8, 1, 1, 33, 5, 33, 0, 33, 0, 0})
	f.Fuzz(func(t *testing.T, script []byte) { sessiontest.PlayPlaces(t, &memory.Places{}, script) })
}
