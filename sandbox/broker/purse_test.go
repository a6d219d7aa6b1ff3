package broker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// dear answers every call at a price of ten cents.
func dear(calls *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		fmt.Fprint(w, `{"usage":{"prompt_tokens":0,"completion_tokens":6667}}`)
	}
}

// grantOf is a turn of a person.
func grantOf(who, turn string) Grant {
	g := testGrant()
	g.Person, g.Turn = who, turn
	return g
}

// TestDayIsShared: what one turn spends is not there for the next, of the same
// person or of all.
func TestDayIsShared(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	b := newBench(t, Config{Providers: acme(upstream(t, dear(&calls)))})
	b.broker.till.now = func() time.Time { return time.Date(2026, 1, 31, 23, 59, 0, 0, time.UTC) }
	alice, again, bob := grantOf("github:alice", "1"), grantOf("github:alice", "2"), grantOf("github:bob", "3")
	for _, g := range []*Grant{&alice, &again, &bob} {
		g.PersonDayUSD, g.DayUSD = 0.15, 0.25
	}
	ok := func(g Grant) {
		t.Helper()
		if resp := b.do(g, "POST", chatPath, ask("small")); resp.StatusCode != 200 {
			t.Fatalf("%s: %s", g.Person, text(t, resp))
		}
		<-b.seen.calls
	}
	ok(alice)
	ok(alice)
	if say := wantCode(t, b.do(again, "POST", chatPath, ask("small")), 403, codeBudget); !strings.Contains(say, "0.15 USD for one person today") {
		t.Error(say)
	}
	ok(bob)
	if say := wantCode(t, b.do(bob, "POST", chatPath, ask("small")), 403, codeBudget); !strings.Contains(say, "0.25 USD for all together today") {
		t.Error(say)
	}
	sum, err := b.broker.Balance(t.Context(), bob)
	if err != nil || sum.Day != "2026-01-31" || !near(sum.Turn.USD, 0.100005) || !near(sum.Person.USD, 0.100005) || !near(sum.All.USD, 0.300015) {
		t.Errorf("%+v, %v", sum, err)
	}
	bob.DayUSD = 0 // somebody said that this one may go on
	ok(bob)
	b.broker.till.now = func() time.Time { return time.Date(2026, 2, 1, 0, 0, 1, 0, time.UTC) }
	ok(again)
	if calls.Load() != 5 {
		t.Errorf("%d calls", calls.Load())
	}
}

// TestDayHoldsForManyTurns: turns at work at once exceed a day by at most a call
// each.
func TestDayHoldsForManyTurns(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	b := newBench(t, Config{Providers: acme(upstream(t, dear(&calls)))})
	var wg sync.WaitGroup
	for i := range 4 {
		g := grantOf("github:alice", fmt.Sprint(i))
		g.DayUSD = 0.5
		wg.Go(func() {
			for b.do(g, "POST", chatPath, ask("small")).StatusCode == 200 {
			}
		})
	}
	wg.Wait()
	if n := calls.Load(); n < 5 || n > 5+3 {
		t.Errorf("%d calls of ten cents for fifty", n)
	}
	if held := len(b.broker.till.held); held != 0 {
		t.Errorf("%d accounts still hold money", held)
	}
}

// TestOldTokensAreGood: the release before knew no persons.
func TestOldTokensAreGood(t *testing.T) {
	t.Parallel()
	s := testSigner(t, 1)
	want := testGrant()
	want.Expires = want.Expires.UTC()
	claims, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	signed := "ship1." + base64.RawURLEncoding.EncodeToString(claims)
	got, err := s.Verify(signed+"."+s.key.Sign(signed), time.Now())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// faltering fails at the nth call that adds something.
type faltering struct {
	Ledger
	after int
}

func (f *faltering) Spend(ctx context.Context, account string, u Usage) (Usage, error) {
	if u != (Usage{}) {
		if f.after--; f.after < 0 {
			return Usage{}, errors.New("the ledger is away")
		}
	}
	return f.Ledger.Spend(ctx, account, u)
}

// TestBoxTimeIsBooked bit by bit, as money where it costs some; and wherever it
// breaks off, nothing is missed and no more than one bit counted twice.
func TestBoxTimeIsBooked(t *testing.T) {
	t.Parallel()
	stay := Stay{Session: "gh.1.2", Span: "3", Turn: "3", Person: "github:alice"}
	for breaks := range 7 {
		l := newMemory()
		b := newBench(t, Config{BoxUSDPerHour: 3.6})
		b.broker.till.ledger = &faltering{Ledger: l, after: breaks}
		stay.Total = 100 * time.Second
		err := b.broker.Book(t.Context(), stay)
		if (err == nil) != (breaks >= 6) {
			t.Fatalf("after %d: %v", breaks, err)
		}
		b.broker.till.ledger = l
		for _, total := range []time.Duration{100, 100, 130, 90} {
			stay.Total = total * time.Second
			if err := b.broker.Book(t.Context(), stay); err != nil {
				t.Fatal(err)
			}
		}
		day := Day(time.Now())
		for account, want := range map[string]Usage{
			BoxesAccount(day, ""): {Calls: 130, USD: 0.13}, BoxesAccount(day, "github:alice"): {Calls: 130, USD: 0.13},
			SpentAccount(day, ""): {USD: 0.13}, SpentAccount(day, "github:alice"): {USD: 0.13}, "gh.1.2:3": {USD: 0.13},
		} {
			got, err := l.Spend(t.Context(), account, Usage{})
			more := got.USD - want.USD
			if err != nil || more < -1e-9 || more > 0.1+1e-9 || breaks >= 6 && more > 1e-9 || got.Calls < want.Calls {
				t.Errorf("broken after %d: %s has %+v, want %+v, %v", breaks, account, got, want, err)
			}
		}
	}
}
