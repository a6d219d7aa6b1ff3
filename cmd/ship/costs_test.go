package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/sandbox/broker"
	"ship/session"
	"ship/session/memory"
)

// shelf holds accounts.
type shelf map[string]session.Usage

func (s shelf) Accounts(_ context.Context, prefix string) (map[string]session.Usage, error) {
	found := map[string]session.Usage{}
	for name, u := range s {
		if strings.HasPrefix(name, prefix) {
			found[name] = u
		}
	}
	return found, nil
}

func TestCosts(t *testing.T) {
	t.Parallel()
	odd := session.Request{Thread: session.Thread{Platform: "slack"}, By: session.Person{Login: "x\x1b[2J y"}}.Payer()
	s := shelf{
		broker.SpentAccount("2026-02-01", ""):             {Calls: 4, Input: 100, Output: 20, USD: 1.5},
		broker.SpentAccount("2026-02-01", "github:alice"): {Calls: 4, Input: 100, Output: 20, USD: 1.25},
		broker.SpentAccount("2026-02-01", "github:bob"):   {},
		broker.BoxesAccount("2026-02-01", ""):             {Calls: 3725, USD: 0.25},
		broker.BoxesAccount("2026-02-01", odd):            {Calls: 3725, USD: 0.25},
		broker.SpentAccount("2026-01-31", ""):             {Calls: 1, USD: 0.004},
		broker.SpentAccount("2026-01-30", ""):             {Calls: 99, USD: 99},
	}
	var b strings.Builder
	if err := listCosts(t.Context(), s, &b, lastDays(time.Date(2026, 2, 1, 0, 30, 0, 0, time.UTC), 2)); err != nil {
		t.Fatal(err)
	}
	want := `DAY         WHO              SPENT  MODEL CALLS  TOKENS IN  TOKENS OUT  BOX TIME  OF IT BOXES
2026-02-01  ALL              $1.50  4            100        20          1h2m5s    $0.25
2026-02-01  github:alice     $1.25  4            100        20          0s        $0.00
2026-02-01  slack:x\x1b[2J y  $0.00  0            0          0           1h2m5s    $0.25
2026-01-31  ALL              $0.00  1            0          0           0s        $0.00
`
	if diff := cmp.Diff(strings.Join(strings.Fields(want), " "), strings.Join(strings.Fields(b.String()), " ")); diff != "" {
		t.Error(diff)
	}
}

// admitting lets a request in, by somebody whom the platform knows better.
type admitting struct{ a session.Admission }

func (a admitting) Perform(context.Context, session.Job) (session.Performed, error) {
	admission := a.a
	return session.Performed{Admission: &admission}, nil
}

// TestTellerKnowsTheDay: what was spent comes with the admission, and who is
// refused learns nothing of it.
func TestTellerKnowsTheDay(t *testing.T) {
	t.Parallel()
	ledger, now := memory.New(), time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
	for account, usd := range map[string]float64{"spent:2026-02-01": 7, "spent:2026-02-01:github:alice": 3, "spent:2026-02-01:github:bob": 4} {
		if _, err := ledger.Spend(t.Context(), account, session.Usage{USD: usd}); err != nil {
			t.Fatal(err)
		}
	}
	job := session.Job{Effect: session.Effect{Kind: session.Admit, Request: &session.Request{
		Thread: session.Thread{Platform: "github"}, By: session.Person{Login: "alice"},
	}}}
	for refusal, want := range map[string]*session.Today{
		"":    {Day: "2026-02-01", Payer: "github:alice", Person: 3, PersonMax: 10, All: 7, AllMax: 50},
		"no.": nil,
	} {
		desk := teller{admitting{session.Admission{Refusal: refusal}}, ledger, LimitSettings{PersonDayUSD: 10, DayUSD: 50}, func() time.Time { return now }}
		p, err := desk.Perform(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, p.Admission.Today); diff != "" {
			t.Error(diff)
		}
	}
}
