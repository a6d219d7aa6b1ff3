package turn

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/sandbox/broker"
	"ship/session"
)

// books keep what was booked last for each span, and answer with a balance.
type books struct {
	mu    sync.Mutex
	stays map[string]broker.Stay
	sum   broker.Balance
}

func newBooks() *books { return &books{stays: map[string]broker.Stay{}} }

func (b *books) Book(_ context.Context, s broker.Stay) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.Total > b.stays[s.Span].Total {
		b.stays[s.Span] = s
	}
	return nil
}

func (b *books) Balance(context.Context, broker.Grant) (broker.Balance, error) { return b.sum, nil }
func (b *books) End(context.Context, string, string) error                     { return nil }

// billed is a host at which alice has a box that has run for a while.
func billed(h *host) *books {
	h.state.Turn.Requests = []session.Request{{Thread: session.Thread{Platform: "github"}, By: session.Person{Login: "alice"}}}
	h.state.Payer, h.state.Metered = "github:alice", time.Now()
	return h.Broker.(*books)
}

// TestBoxTimeIsBooked while a turn is at work, when it ends, and for as long as
// the box runs after that.
func TestBoxTimeIsBooked(t *testing.T) {
	inTime(t, func(t *testing.T, h *host) {
		h.turn(false)
		b := billed(h)
		h.state.Turn.Box = 30 // in a box that was lost
		stop := h.keepAlive(t.Context(), h.job(session.Run), *h.state.Life)
		time.Sleep(h.Worker.Life.Heartbeat + time.Second)
		stop()
		h.wantStay(b, "1", broker.Stay{Session: "gh.1.7", Span: "1", Turn: "1", Person: "github:alice", Total: 30*time.Second + h.Worker.Life.Heartbeat})

		h.turn(true)
		job := h.job(session.Close)
		job.Effect.Text, job.Effect.Stay = "1", &session.Stay{Payer: "github:alice", Seconds: 500}
		if _, err := h.Perform(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		h.wantStay(b, "1", broker.Stay{Session: "gh.1.7", Span: "1", Turn: "1", Person: "github:alice", Total: 500 * time.Second})

		h.state.Metered = time.Now()
		span := fmt.Sprintf("rest-%d", h.state.Metered.UnixMilli())
		h.rest(6 * time.Minute) // it is paused after five
		h.wantStay(b, span, broker.Stay{Session: "gh.1.7", Span: span, Person: "github:alice", Total: 5 * time.Minute})
	})
}

func (h *host) wantStay(b *books, span string, want broker.Stay) {
	h.t.Helper()
	if diff := cmp.Diff(want, b.stays[span]); diff != "" {
		h.t.Errorf("span %s: %s", span, diff)
	}
}

// TestGrantsOfAPerson: who said that it may go on past a budget of a day has it
// taken off, and the turn's own stays.
func TestGrantsOfAPerson(t *testing.T) {
	inTime(t, func(t *testing.T, h *host) {
		billed(h)
		h.PersonDayUSD, h.DayUSD, h.state.Turn.Budget = 10, 50, 5
		for past, want := range map[session.Limit][3]float64{
			"": {5, 10, 50}, session.TurnLimit: {5, 10, 50}, session.PersonLimit: {5, 0, 50}, session.DayLimit: {5, 0, 0},
		} {
			h.state.Turn.PastLimit = past
			g := h.grant(h.job(session.Run))
			if got := [3]float64{g.BudgetUSD, g.PersonDayUSD, g.DayUSD}; got != want || g.Person != "github:alice" {
				t.Errorf("past %q: %v of %s, want %v", past, got, g.Person, want)
			}
		}
	})
}

// TestWhichLimit: the widest, for that is the one to be asked about.
func TestWhichLimit(t *testing.T) {
	inTime(t, func(t *testing.T, h *host) {
		billed(h)
		h.PersonDayUSD, h.DayUSD, h.state.Turn.Budget = 10, 50, 5
		sum := func(turn, person, all float64) broker.Balance {
			return broker.Balance{Day: "d", Turn: broker.Usage{USD: turn}, Person: broker.Usage{USD: person}, All: broker.Usage{USD: all}}
		}
		for _, tt := range []struct {
			sum  broker.Balance
			want session.Limit
		}{
			{sum(1, 2, 3), ""}, {sum(5, 6, 7), session.TurnLimit}, {sum(5, 10, 11), session.PersonLimit}, {sum(1, 2, 50), session.DayLimit},
		} {
			if got := h.limit(h.job(session.Run), tt.sum); got != tt.want {
				t.Errorf("%+v: %q, want %q", tt.sum, got, tt.want)
			}
		}
	})
}
