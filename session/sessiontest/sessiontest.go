// Package sessiontest is the contract of a session store as a test. Every
// implementation passes it:
//
//	func TestStore(t *testing.T) {
//		sessiontest.RunStore(t, func(t *testing.T) sessiontest.Stores { return memory.New() })
//	}
//
// RunVault, RunQuota and RunPlaces are the same for what gateways share beside sessions.
package sessiontest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ship/session"
)

// Stores is everything that one store is to the rest of the program.
type Stores interface {
	session.Inbox
	session.Store
	session.Register
	session.Archive
	session.Graveyard
	session.Transcript
	session.Ledger
}

const (
	// long is a lease that does not end during a test.
	long = time.Minute
	// short is a lease that a test waits for.
	short = 40 * time.Millisecond
	// patience is how long a test waits for what must come.
	patience = 10 * time.Second
)

// RunStore runs the contract. open returns an empty store that nobody else
// uses, and cleans up by itself; the tests run in parallel and by the real
// clock.
func RunStore(t *testing.T, open func(t *testing.T) Stores) {
	groups := map[string]map[string]func(*suite){
		"Inbox":      inboxTests(),
		"Claim":      claimTests(),
		"Commit":     commitTests(),
		"Release":    releaseTests(),
		"Register":   registerTests(),
		"Archive":    archiveTests(),
		"Graveyard":  graveyardTests(),
		"Transcript": transcriptTests(),
		"Ledger":     ledgerTests(),
	}
	for group, tests := range groups {
		for name, test := range tests {
			t.Run(group+"/"+name, func(t *testing.T) {
				t.Parallel()
				test(&suite{T: t, Stores: open(t)})
			})
		}
	}
}

// suite is one test's store with the steps that tests are told in. Each step
// fails the test when the store answers with an error.
type suite struct {
	*testing.T
	Stores
}

func asked(text string) session.Event {
	return session.Event{
		V: session.EventVersion, Kind: session.Asked, Delivery: "d-" + text,
		Request: &session.Request{ID: text, Verb: session.Instruct, Text: text},
	}
}

// delivery has a key of its session's own, for keys are unique on a platform.
func delivery(id session.ID, text string) session.Delivery {
	return session.Delivery{Session: id, Keys: []string{string(id) + ":" + text}, Keep: time.Hour, Event: asked(text)}
}

// append delivers one event per key.
func (s *suite) append(id session.ID, keys ...string) {
	s.Helper()
	for _, key := range keys {
		r, err := s.Append(s.Context(), delivery(id, key))
		if err != nil || r.Duplicate {
			s.Fatalf("Append %s = %+v, %v; want a new event", key, r, err)
		}
	}
}

func (s *suite) claim(id session.ID, token string, lease time.Duration) session.Claim {
	s.Helper()
	c, err := s.Claim(s.Context(), id, token, lease)
	if err != nil {
		s.Fatalf("Claim by %s: %v", token, err)
	}
	return c
}

// claimSoon claims when the present owner's lease has run out.
func (s *suite) claimSoon(id session.ID, token string, lease time.Duration) session.Claim {
	s.Helper()
	s.await("the session to be due", func() bool { return s.isDue(id) })
	return s.claim(id, token, lease)
}

func (s *suite) commit(l session.Lease, c session.Commit) {
	s.Helper()
	if err := s.Commit(s.Context(), l, c); err != nil {
		s.Fatalf("Commit by %s: %v", l.Token, err)
	}
}

func (s *suite) isDue(id session.ID) bool {
	s.Helper()
	ids, err := s.Due(s.Context(), 1000)
	if err != nil {
		s.Fatalf("Due: %v", err)
	}
	return slices.Contains(ids, id)
}

func (s *suite) peek(id session.ID) session.Claim {
	s.Helper()
	c, err := s.Peek(s.Context(), id)
	if err != nil {
		s.Fatalf("Peek: %v", err)
	}
	return c
}

func (s *suite) await(what string, ok func() bool) {
	s.Helper()
	await(s.T, what, ok)
}

// await polls, for a store's clock gives no signal.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited %s for %s", patience, what)
}

// texts are the request texts of events, checked to be without gaps.
func (s *suite) texts(after int64, events []session.Event) []string {
	s.Helper()
	var texts []string
	for i, e := range events {
		if want := after + int64(i) + 1; e.Seq != want {
			s.Fatalf("event %d has Seq %d, want %d", i, e.Seq, want)
		}
		texts = append(texts, e.Request.Text)
	}
	return texts
}

// state commits with StateVersion set; it is what most tests write.
func state(version, cursor int64) session.Commit {
	return session.Commit{
		Version: version, Cursor: cursor, StateVersion: session.StateVersion, Lease: long,
		State: fmt.Appendf(nil, `{"v":1,"n":%d}`, version+1),
	}
}

// released is state with the lease given back.
func released(version, cursor int64, due time.Duration) session.Commit {
	c := state(version, cursor)
	c.Release, c.Due = true, due
	return c
}
