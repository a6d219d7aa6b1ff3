package slack

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// believed is how long what Slack says of people, channels and user groups is
	// believed without asking again: somebody who was deactivated or left a group
	// can command for that much longer.
	believed = 5 * time.Minute
	// maxBelieved of each kind at a time.
	maxBelieved = 4096
)

// directory is what Slack told of the workspace lately.
type directory struct {
	people   *belief[member]
	channels *belief[string]   // names by id
	members  *belief[[]string] // users by user group
	groups   *belief[map[string]string]
}

func newDirectory(now func() time.Time) *directory {
	return &directory{newBelief[member](now), newBelief[string](now), newBelief[[]string](now), newBelief[map[string]string](now)}
}

// belief is something that was learned and need not be asked again for a while.
type belief[V any] struct {
	known *lru.Cache[string, learned[V]]
	now   func() time.Time
}

type learned[V any] struct {
	value V
	until time.Time
}

func newBelief[V any](now func() time.Time) *belief[V] {
	known, _ := lru.New[string, learned[V]](maxBelieved) // refuses only what is not positive
	return &belief[V]{known, now}
}

// of returns what is believed under a key, and asks where nothing is. Errors are
// not believed. Two who ask at once may both have to.
func (b *belief[V]) of(key string, ask func() (V, error)) (V, error) {
	if l, ok := b.known.Get(key); ok && b.now().Before(l.until) {
		return l.value, nil
	}
	v, err := ask()
	if err == nil {
		b.known.Add(key, learned[V]{v, b.now().Add(believed)})
	}
	return v, err
}
