package slack

import (
	"crypto/sha256"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// maxRecalled is how many threads are remembered. One that is forgotten costs a
// request or two.
const maxRecalled = 1024

// recall remembers what was shown in the threads of late, so that it is not
// shown again. It is a saving and nothing more: another process knows none of
// it.
type recall struct {
	threads *lru.Cache[thread, memo]

	mu sync.Mutex
	// deaf is until when Slack wants no statuses; guarded by mu.
	deaf time.Time
}

// memo is what was shown in a thread.
type memo struct {
	// epoch of the lease under which this was so. Who had it in between may have
	// shown something else.
	epoch int64
	// living is what the living message looks like, and since when.
	living [sha256.Size]byte
	since  time.Time
	// replaced is the turn whose living message was posted anew.
	replaced int
	// status is what Slack's own display was told, and when.
	status string
	told   time.Time
	// missed counts tries to tell the status that led nowhere.
	missed int
}

func newRecall() *recall {
	threads, _ := lru.New[thread, memo](maxRecalled) // refuses only what is not positive
	return &recall{threads: threads}
}

// of returns what is remembered of a thread under a lease.
func (r *recall) of(t thread, epoch int64) memo {
	m, ok := r.threads.Get(t)
	if !ok || m.epoch != epoch {
		return memo{epoch: epoch}
	}
	return m
}

func (r *recall) keep(t thread, m memo) { r.threads.Add(t, m) }

func (r *recall) forgetStatus(t thread) {
	if m, ok := r.threads.Get(t); ok {
		m.status = ""
		r.keep(t, m)
	}
}

// hears tells whether Slack wants statuses.
func (r *recall) hears(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !now.Before(r.deaf)
}

func (r *recall) giveUp(until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deaf = until
}

// looks tells messages apart.
func (p post) looks() [sha256.Size]byte { return sha256.Sum256([]byte(p.form("").Encode())) }
