package slack

import (
	"sync"
	"time"
)

// presence keeps whether there is any connection. The zero value is good.
type presence struct {
	mu sync.Mutex
	// open connections, and since when there may have been none; zero: there was
	// none yet. Both are guarded by mu.
	open int
	gone time.Time
}

// begin notes a connection, and tells since when there was none, if there was
// one before that.
func (p *presence) begin() (since time.Time, gap bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open++
	return p.gone, p.open == 1 && !p.gone.IsZero()
}

// end notes that a connection is gone since a moment.
func (p *presence) end(since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open--; p.open == 0 {
		p.gone = since
	}
}
