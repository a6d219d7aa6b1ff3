package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/session"
)

func inboxTests() map[string]func(*suite) {
	return map[string]func(*suite){
		"appends and makes due":               appends,
		"a key that was seen appends no more": dedupes,
		"any seen key is enough":              dedupesAnyKey,
		"keys are forgotten after their time": keysExpire,
		"one of many at once":                 concurrentSameKey,
		"all of many at once":                 concurrentOrder,
		"a delivery needs a key":              needsKey,
		"only for a session that there is":    onlyKnown,
		"an ended context":                    endedContext,
		"more than a batch":                   batches,
		"wakes":                               wakes,
	}
}

func appends(s *suite) {
	before := time.Now().Add(-time.Minute)
	want := asked("a")
	r, err := s.Append(s.Context(), session.Delivery{Session: "gh.1.1", Keys: []string{"a"}, Keep: time.Hour, Event: want})
	if err != nil || r.Seq != 1 || r.Duplicate {
		s.Fatalf("Append = %+v, %v; want Seq 1", r, err)
	}
	if !s.isDue("gh.1.1") {
		s.Error("the session is not due")
	}
	events, err := s.Read(s.Context(), "gh.1.1", 0)
	if err != nil || len(events) != 1 {
		s.Fatalf("Read = %v, %v; want one event", events, err)
	}
	if events[0].At.Before(before) || events[0].At.After(time.Now().Add(time.Minute)) {
		s.Errorf("At = %s, want the store's time", events[0].At)
	}
	want.Seq, want.At = 1, events[0].At
	if diff := cmp.Diff(want, events[0]); diff != "" {
		s.Errorf("event (-want +got):\n%s", diff)
	}
}

func dedupes(s *suite) {
	s.append("gh.1.1", "a", "b")
	r, err := s.Append(s.Context(), delivery("gh.1.1", "a"))
	if err != nil || !r.Duplicate || r.Seq != 1 {
		s.Errorf("second Append = %+v, %v; want a duplicate of 1", r, err)
	}
	if c := s.peek("gh.1.1"); len(c.Events) != 2 {
		s.Errorf("%d events, want 2", len(c.Events))
	}
}

func onlyKnown(s *suite) {
	d := delivery("gh.1.1", "a")
	d.Known = true
	if r, err := s.Append(s.Context(), d); err != nil || !r.Unknown || r.Duplicate || r.Seq != 0 {
		s.Fatalf("Append = %+v, %v; want an unknown session", r, err)
	}
	if s.isDue("gh.1.1") {
		s.Error("a session that there is not is due")
	}
	s.append("gh.1.1", "b")
	for _, want := range []session.Receipt{{Seq: 2}, {Seq: 2, Duplicate: true}} { // the key was not kept before
		if r, err := s.Append(s.Context(), d); err != nil || r != want {
			s.Errorf("Append = %+v, %v; want %+v", r, err, want)
		}
	}
}

func dedupesAnyKey(s *suite) {
	s.append("gh.1.1", "x")
	d := delivery("gh.1.1", "d1")
	d.Keys = []string{"gh.1.1:d1", "content"}
	if r, err := s.Append(s.Context(), d); err != nil || r.Seq != 2 {
		s.Fatalf("Append = %+v, %v; want Seq 2", r, err)
	}
	d.Keys = []string{"gh.1.1:d2", "content", "gh.1.1:x"}
	if r, err := s.Append(s.Context(), d); err != nil || !r.Duplicate || r.Seq != 2 {
		s.Errorf("the same content = %+v, %v; want a duplicate of 2, the first key that was seen", r, err)
	}
	// The duplicate wrote nothing, its own keys included.
	s.append("gh.1.1", "d2")
}

func keysExpire(s *suite) {
	d := delivery("gh.1.1", "a")
	d.Keep = short
	if _, err := s.Append(s.Context(), d); err != nil {
		s.Fatal(err)
	}
	s.await("the key to be forgotten", func() bool {
		r, err := s.Append(s.Context(), d)
		if err != nil {
			s.Fatal(err)
		}
		return !r.Duplicate
	})
}

func concurrentSameKey(s *suite) {
	const callers = 20
	receipts := make([]session.Receipt, callers)
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { receipts[i], errs[i] = s.Append(s.Context(), delivery("gh.1.1", "same")) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		s.Fatal(err)
	}
	var first int
	for _, r := range receipts {
		if r.Seq != 1 {
			s.Errorf("receipt %+v, want Seq 1", r)
		}
		if !r.Duplicate {
			first++
		}
	}
	if first != 1 || len(s.peek("gh.1.1").Events) != 1 {
		s.Errorf("%d callers were the first and %d events are there, want 1 and 1", first, len(s.peek("gh.1.1").Events))
	}
}

// concurrentOrder lets callers append to the same sessions. Every one of them
// finds its own events in its own order, and no inbox has a gap.
func concurrentOrder(s *suite) {
	const callers, each = 8, 10
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for n := range each {
				_, err := s.Append(s.Context(), delivery("gh.1.1", fmt.Sprintf("%d:%02d", i, n)))
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		s.Fatal(err)
	}
	texts := s.texts(0, s.peek("gh.1.1").Events)
	if len(texts) != callers*each {
		s.Fatalf("%d events, want %d", len(texts), callers*each)
	}
	for i := range callers {
		prefix := fmt.Sprintf("%d:", i)
		own := slices.DeleteFunc(slices.Clone(texts), func(t string) bool { return t[:2] != prefix })
		if !slices.IsSorted(own) {
			s.Errorf("caller %d finds its events as %v", i, own)
		}
	}
}

func needsKey(s *suite) {
	d := delivery("gh.1.1", "a")
	d.Keys = nil
	if r, err := s.Append(s.Context(), d); err == nil {
		s.Errorf("Append without a key = %+v", r)
	}
	if r, err := s.Append(s.Context(), delivery("", "a")); err == nil {
		s.Errorf("Append without a session = %+v", r)
	}
}

func endedContext(s *suite) {
	ctx, cancel := context.WithCancelCause(s.Context())
	cancel(errors.New("gone"))
	if _, err := s.Append(ctx, delivery("gh.1.1", "a")); err == nil {
		s.Error("Append under an ended context succeeded")
	}
	if _, err := s.Due(ctx, 1); err == nil {
		s.Error("Due under an ended context succeeded")
	}
}

func batches(s *suite) {
	for i := range 250 {
		s.append("gh.1.1", fmt.Sprint(i))
	}
	c := s.claim("gh.1.1", "t1", long)
	if got := len(s.texts(0, c.Events)); got != 100 {
		s.Errorf("a claim returned %d events, want 100", got)
	}
	for after, want := int64(100), 100; after < 300; after, want = after+100, 50 {
		events, err := s.Read(s.Context(), "gh.1.1", after)
		if err != nil {
			s.Fatal(err)
		}
		if got := len(s.texts(after, events)); got != want {
			s.Errorf("Read after %d returned %d events, want %d", after, got, want)
		}
	}
	if events, err := s.Read(s.Context(), "gh.1.1", 250); err != nil || len(events) != 0 {
		s.Errorf("Read at the end = %v, %v; want nothing", events, err)
	}
	if events, err := s.Read(s.Context(), "gh.nobody", 0); err != nil || len(events) != 0 {
		s.Errorf("Read of an unknown session = %v, %v; want nothing", events, err)
	}
}

// wakes appends until a hint comes: the first ones may be lost.
func wakes(s *suite) {
	ctx, cancel := context.WithCancelCause(s.Context())
	ch := s.Wakes(ctx)
	var n int
	s.await("a wake", func() bool {
		n++
		s.append("gh.1.1", fmt.Sprint(n))
		select {
		case id := <-ch:
			return id == "gh.1.1"
		case <-time.After(20 * time.Millisecond):
			return false
		}
	})
	cancel(nil)
	timeout := time.After(patience)
	for {
		select {
		case _, open := <-ch:
			if !open {
				return
			}
		case <-timeout:
			s.Fatal("the channel was not closed when its context ended")
		}
	}
}
