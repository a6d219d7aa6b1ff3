package redis_test

import (
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"ship/session"
	"ship/session/redis/redistest"
)

// TestGarbledEvents: what lies in an inbox and is no event does not hold up
// what lies behind it, and its bytes can be kept.
func TestGarbledEvents(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := open(t, srv)
	mustAppend(t, s, "a", "b", "c", "d", "e")
	garble(t, srv, 1, "v", "1", "at", "1", "e", "{\xff")
	garble(t, srv, 2, "v", "one", "at", "1", "e", "{}")
	garble(t, srv, 3, "v", "1", "at", "soon", "e", "{}")
	garble(t, srv, 4, "x", "y")

	read, err := s.Read(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	peeked, err := s.Peek(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	claimed := mustClaim(t, s, "t1")
	for _, events := range [][]session.Event{read, peeked.Events, claimed.Events} {
		checkGarbled(t, events)
	}
	letter := session.DeadLetter{Session: id, Cause: "no event", Raw: claimed.Events[0].Raw}
	k := commit(0, 4, true)
	k.Dead = []session.DeadLetter{letter}
	if err := s.Commit(t.Context(), claimed.Lease, k); err != nil {
		t.Fatal(err)
	}
	if dead, err := s.DeadLetters(t.Context(), 1); err != nil || string(dead[0].Raw) != "{\xff" {
		t.Errorf("kept %+v, %v", dead, err)
	}
	if c := mustClaim(t, s, "t2"); len(c.Events) != 1 || c.Events[0].Delivery != "e" {
		t.Errorf("what lies behind: %+v", c.Events)
	}
}

func checkGarbled(t *testing.T, events []session.Event) {
	t.Helper()
	want := []string{"{\xff", "[v one at 1 e {}]", "[v 1 at soon e {}]", "[x y]"}
	if len(events) != 5 || events[4].Kind != session.Asked || events[4].Seq != 5 {
		t.Fatalf("events %+v", events)
	}
	for i, raw := range want {
		e := events[i]
		if e.Kind != session.Garbled || e.Seq != int64(i+1) || string(e.Raw) != raw || e.Flaw == "" {
			t.Errorf("event %d = %+v, want %q as it is", i+1, e, raw)
		}
	}
}

// garble replaces an event in the inbox, in the only way there is: all of the
// stream is written anew.
func garble(t *testing.T, srv *redistest.Server, seq int, fields ...string) {
	t.Helper()
	rdb := raw(t, srv.URL())
	inboxes, err := rdb.Keys(t.Context(), "*:in:*").Result()
	if err != nil || len(inboxes) != 1 {
		t.Fatalf("inboxes %v, %v", inboxes, err)
	}
	entries, err := rdb.XRange(t.Context(), inboxes[0], "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	rdb.Del(t.Context(), inboxes[0])
	for i, e := range entries {
		args := &goredis.XAddArgs{Stream: inboxes[0], ID: e.ID, Values: fields}
		if i != seq-1 {
			args.Values = ordered(e.Values)
		}
		if err := rdb.XAdd(t.Context(), args).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// ordered are an entry's fields in the order in which ship writes them.
func ordered(values map[string]any) []any {
	var fields []any
	for _, name := range []string{"v", "at", "e", "x"} {
		if v, ok := values[name]; ok {
			fields = append(fields, name, v)
		}
	}
	return fields
}

// TestManyDeadLetters: more than are read in one round trip.
func TestManyDeadLetters(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t))
	mustAppend(t, s, "a")
	k := commit(0, 1, true)
	for range 1234 {
		k.Dead = append(k.Dead, session.DeadLetter{Session: id, Cause: strings.Repeat("long ", 50)})
	}
	if err := s.Commit(t.Context(), mustClaim(t, s, "t1").Lease, k); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 500, 501, 1234, 5000} {
		letters, err := s.DeadLetters(t.Context(), n)
		if err != nil || len(letters) != min(n, 1234) {
			t.Errorf("%d letters of %d, %v", len(letters), n, err)
		}
		seen := map[string]bool{}
		for _, d := range letters {
			seen[d.ID] = true
		}
		if len(seen) != len(letters) {
			t.Errorf("%d ids of %d letters", len(seen), len(letters))
		}
	}
}
