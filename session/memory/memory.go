// Package memory keeps sessions in the process, for `ship demo` and for tests.
// It behaves as the store on Redis does, leases by the clock and fencing
// included, and ends with the process.
//
// It reads time.Now and starts no goroutine, so that it can be used inside a
// testing/synctest bubble.
package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"ship/session"
)

const (
	// batch is how many events a claim or a read hands out.
	batch = 100
	// remember is how long dedupe keys live when the delivery does not say:
	// longer than the three days for which GitHub redelivers.
	remember = 7 * 24 * time.Hour
	// maxDead is how many dead letters are kept.
	maxDead = 10_000
)

// Store is an in-process store. It implements session.Inbox, Store, Register,
// Archive, Graveyard, Transcript and Ledger. All methods are safe for concurrent use.
type Store struct {
	// Hook, when set, is called before and after every write that decides
	// something, with a point such as "commit.before". Crash tests end the
	// caller in it. Set it before the first use.
	Hook func(ctx context.Context, point string)

	mu       sync.Mutex
	sessions map[session.ID]*record
	seen     map[string]sighting
	sweepAt  int // size of seen at which the old ones are dropped
	logs     map[session.ID]*transcript
	accounts map[string]*account
	dead     []grave // the newest last
	buried   int     // how many there ever were
	wakes    map[chan session.ID]struct{}
}

// New returns an empty store.
func New() *Store {
	return &Store{
		sessions: make(map[session.ID]*record),
		seen:     make(map[string]sighting),
		logs:     make(map[session.ID]*transcript),
		accounts: make(map[string]*account),
		wakes:    make(map[chan session.ID]struct{}),
	}
}

// record is one session.
type record struct {
	owner   string // token of the claim that holds it, empty when free
	last    string // token of the last commit
	epoch   int64
	version int64
	seq     int64 // of the newest event
	cursor  int64
	state   []byte
	format  int // StateVersion of state
	stolen  bool
	tries   int
	inbox   []entry // exactly cursor+1 to seq
	waiting bool    // somebody must look at due
	due     time.Time
}

// entry is an event as it is kept: encoded, so that nobody shares memory with
// the store.
type entry struct {
	seq  int64
	at   time.Time
	v    int
	data []byte
}

// sighting is what a dedupe key remembers.
type sighting struct {
	seq   int64
	until time.Time
}

func (r *record) held() bool { return r.owner != "" }

func (r *record) wait(due time.Time) { r.waiting, r.due = true, due }

func (r *record) isDue(now time.Time) bool { return r.waiting && !r.due.After(now) }

// after returns up to a batch of the entries behind a position.
func (r *record) after(seq int64) []entry {
	skip := min(max(seq-r.cursor, 0), int64(len(r.inbox)))
	rest := r.inbox[skip:]
	return rest[:min(len(rest), batch)]
}

func (e entry) event() session.Event {
	var ev session.Event
	if err := json.Unmarshal(e.data, &ev); err != nil {
		ev = session.Event{V: e.v, Kind: session.Garbled, Raw: e.data, Flaw: err.Error()}
	}
	ev.Seq, ev.At = e.seq, e.at
	return ev
}

// clock is the store's time, in whole milliseconds as on Redis.
func clock() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// around performs a write between its two points.
func (s *Store) around(ctx context.Context, op string, write func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.Hook == nil {
		return write()
	}
	s.Hook(ctx, op+".before")
	err := write()
	s.Hook(ctx, op+".after")
	return err
}

// Append implements session.Inbox. A delivery that does not say how long its
// keys are kept has them remembered for seven days.
func (s *Store) Append(ctx context.Context, d session.Delivery) (session.Receipt, error) {
	if d.Session == "" || len(d.Keys) == 0 {
		return session.Receipt{}, errors.New("append: a delivery needs a session and a dedupe key")
	}
	data, err := json.Marshal(d.Event)
	if err != nil {
		return session.Receipt{}, fmt.Errorf("append to %s: %w", d.Session, err)
	}
	var r session.Receipt
	err = s.around(ctx, "append", func() error {
		r = s.append(d, data)
		return nil
	})
	return r, err
}

func (s *Store) append(d session.Delivery, data []byte) session.Receipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock()
	for _, key := range d.Keys {
		if old, ok := s.seen[key]; ok && old.until.After(now) {
			return session.Receipt{Seq: old.seq, Duplicate: true}
		}
	}
	r := s.sessions[d.Session]
	if r == nil && d.Known {
		return session.Receipt{Unknown: true}
	}
	if r == nil {
		r = &record{}
		s.sessions[d.Session] = r
	}
	r.seq++
	r.inbox = append(r.inbox, entry{seq: r.seq, at: now, v: d.Event.V, data: data})
	s.remember(d, r.seq, now)
	if !r.held() && !r.isDue(now) {
		r.wait(now)
	}
	s.wake(d.Session)
	return session.Receipt{Seq: r.seq}
}

// remember notes the delivery's keys. When twice as many are noted as were
// alive the last time, it drops those whose time is over.
func (s *Store) remember(d session.Delivery, seq int64, now time.Time) {
	keep := d.Keep
	if keep <= 0 {
		keep = remember
	}
	for _, key := range d.Keys {
		s.seen[key] = sighting{seq: seq, until: now.Add(keep)}
	}
	if len(s.seen) < s.sweepAt {
		return
	}
	maps.DeleteFunc(s.seen, func(_ string, old sighting) bool { return !old.until.After(now) })
	s.sweepAt = max(2*len(s.seen), 1024)
}
