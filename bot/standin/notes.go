package standin

import (
	"fmt"
	"slices"
	"sync"
)

// Notes are what should not have happened at one stand-in. The zero value is
// empty; all methods are safe for concurrent use.
type Notes struct {
	mu  sync.Mutex
	all []string
}

// Note keeps what should not have happened. It waits for nothing but other
// notes, so a stand-in may call it with its own lock held.
func (n *Notes) Note(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, fmt.Sprintf(format, args...))
}

// Violations are what was noted so far, the oldest first; nil: nothing.
func (n *Notes) Violations() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}
