package redis

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ship/session"
	"ship/session/redis/redistest"
	"ship/session/sessiontest"
)

func TestPlaces(t *testing.T) {
	t.Parallel()
	sessiontest.RunPlaces(t, func(t *testing.T) session.Places { return openAt(t, redistest.Start(t)).Places() })
}

// onlyOne is a stake of a session where one place is all there is.
func onlyOne(id session.ID) session.Stake {
	return session.Stake{ID: id, Epoch: 1, Worker: "w", Keep: time.Hour, Wait: time.Hour, Most: session.Most{All: 1}}
}

func mustTake(t *testing.T, p *Places, s session.Stake, line int) {
	t.Helper()
	if got, err := p.Take(t.Context(), s); err != nil || got.Line != line {
		t.Fatalf("%s: %+v, %v; want %d in line", s.ID, got, err, line)
	}
}

// TestPlacesWake: whoever gets a place that another gave back is named to all
// workers.
func TestPlacesWake(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	woken, p := s.Wakes(ctx), s.Places()
	for n, end := 0, time.After(patience); ; n++ { // the subscription may come later than the first of them
		mine, other := session.ID(fmt.Sprint("a", n)), session.ID(fmt.Sprint("b", n))
		mustTake(t, p, onlyOne(mine), 0)
		mustTake(t, p, onlyOne(other), 1)
		if next, err := p.Release(ctx, mine, 1); err != nil || len(next) != 1 || next[0] != other {
			t.Fatalf("after %s: %v, %v", mine, next, err)
		}
		select {
		case id := <-woken:
			if id[0] != 'b' {
				t.Errorf("%s was woken", id)
			}
			return
		case <-end:
			t.Fatal("nobody was woken")
		case <-time.After(20 * time.Millisecond):
		}
		if _, err := p.Release(ctx, other, 1); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPlacesOutliveGarbage: what is no text of ours holds nothing and stands in
// nobody's way.
func TestPlacesOutliveGarbage(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t))
	p, k := s.Places(), placeKeys()
	for i, text := range []string{"", "{", "[1]", "7", `{"u":99999999999999}`, "null"} {
		id := fmt.Sprint("old", i)
		err := s.rdb.HSet(t.Context(), k[0], id, text).Err()
		if err == nil && i > 0 { // of the first there is no ticket at all
			err = s.rdb.HSet(t.Context(), k[2], id, text).Err()
		}
		if err == nil {
			err = s.rdb.Do(t.Context(), "ZADD", k[1], i, id).Err()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	mustTake(t, p, onlyOne("a"), 0)
	mustTake(t, p, onlyOne("b"), 1)
	mustTake(t, p, onlyOne("old1"), 2)
	if next, err := p.Release(t.Context(), "a", 1); err != nil || len(next) != 1 || next[0] != "b" {
		t.Errorf("then %v, %v", next, err)
	}
}

// TestPlacesNeedRights: a user made after an older users.acl is refused by the
// first call, whatever it is.
func TestPlacesNeedRights(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--aclfile", aclFile(t))
	p := openWith(t, Options{URL: as("ship", srv)}).Places()
	admin := openClient(t, as("admin", srv))
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "ship", "-hgetall").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Release(t.Context(), "", 0); err == nil || !strings.Contains(err.Error(), "can't run this command") && !goredis.IsPermissionError(err) {
		t.Errorf("Release: %v", err)
	}
}

// TestPlacesLeaveNothing: when nobody has or wants a place, nothing is kept.
func TestPlacesLeaveNothing(t *testing.T) {
	t.Parallel()
	s := openAt(t, redistest.Start(t))
	p := s.Places()
	mustTake(t, p, onlyOne("a"), 0)
	mustTake(t, p, onlyOne("b"), 1)
	for _, id := range []session.ID{"b", "a"} {
		if _, err := p.Release(t.Context(), id, 1); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.rdb.Exists(t.Context(), placeKeys()...).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// BenchmarkPlaceInLine is what asking costs with so many in the line, and what
// giving a place back costs when nobody in the line can have it.
func BenchmarkPlaceInLine(b *testing.B) {
	const line = 10_000
	p := openAt(b, redistest.Start(b)).Places()
	crowd := func(n int) session.Stake {
		s := onlyOne(session.ID(fmt.Sprint("crowd.", n)))
		s.Person, s.Most = "mona", session.Most{Person: 1}
		return s
	}
	for n := range line {
		if _, err := p.Take(b.Context(), crowd(n)); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("ask", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := p.Take(b.Context(), crowd(1+i%(line-1))); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("release", func(b *testing.B) {
		other := onlyOne("other")
		other.Most = session.Most{}
		for b.Loop() {
			if _, err := p.Take(b.Context(), other); err != nil {
				b.Fatal(err)
			}
			if _, err := p.Release(b.Context(), other.ID, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
}
