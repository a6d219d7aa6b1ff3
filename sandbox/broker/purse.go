package broker

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Accounts of a day are kept beside those of turns:
//
//	spent:DAY, spent:DAY:PERSON   money: of models, and of boxes that cost some
//	boxes:DAY, boxes:DAY:PERSON   box time, a call for each second
//	SESSION:SPAN:box              the box time of a span that is booked by now
//
// A day is one of UTC, such as 2026-01-31. No session is called spent or boxes.

// Day names the day of a moment in accounts.
func Day(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// SpentAccount holds the money of a day, of one person or, without one, of all.
func SpentAccount(day, person string) string { return ofDay("spent", day, person) }

// BoxesAccount holds the box time of a day, a call for each second; of one
// person or, without one, of all.
func BoxesAccount(day, person string) string { return ofDay("boxes", day, person) }

func ofDay(kind, day, person string) string {
	if person == "" {
		return kind + ":" + day
	}
	return kind + ":" + day + ":" + person
}

func spanAccount(session, span string) string { return session + ":" + span + ":box" }

// purse is an account that a call is paid from. A limit of zero is none, unless
// it is strict: the turn's own, which bounds the calls too.
type purse struct {
	account string
	limit   float64
	strict  bool
	// refusal is what a call hears when the limit is reached.
	refusal func() *refusal
}

// purse is the turn's own.
func (g Grant) purse() purse {
	return purse{account: g.account(), limit: g.BudgetUSD, strict: true, refusal: func() *refusal { return budgetSpent(g) }}
}

// purses of the turn's calls on a day: that of all, and the person's.
func (g Grant) purses(day string) []purse {
	all := []purse{{account: SpentAccount(day, ""), limit: g.DayUSD, refusal: func() *refusal { return daySpent("all together", g.DayUSD) }}}
	if g.Person != "" {
		all = append(all, purse{account: SpentAccount(day, g.Person), limit: g.PersonDayUSD, refusal: func() *refusal { return daySpent("one person", g.PersonDayUSD) }})
	}
	return all
}

func accountsOf(purses []purse) []string {
	var names []string
	for _, p := range purses {
		names = append(names, p.account)
	}
	return names
}

// daySpent is of a day's budget. It has the code of a turn's budget: what follows for the agent is the same.
func daySpent(whose string, usd float64) *refusal {
	return refuse(http.StatusForbidden, codeBudget, "the budget of %.2f USD for %s today is spent", usd, whose)
}

// Balance is what a grant's accounts have spent: its turn's so far, and those of
// its person and of all on this day.
type Balance struct {
	Day               string
	Turn, Person, All Usage
}

// Balance reads the accounts of a grant. Calls under way are counted, their
// tokens and money are not.
func (b *Broker) Balance(ctx context.Context, g Grant) (Balance, error) {
	day := Day(b.till.now())
	accounts := []string{g.account(), SpentAccount(day, "")}
	if g.Person != "" {
		accounts = append(accounts, SpentAccount(day, g.Person))
	}
	spent, err := b.till.totals(ctx, accounts...)
	if err != nil {
		return Balance{}, err
	}
	sum := Balance{Day: day, Turn: spent[0], All: spent[1]}
	if g.Person != "" {
		sum.Person = spent[2]
	}
	return sum, nil
}

// Stay is time that a box ran for a session.
type Stay struct {
	Session string
	// Span names a time without gaps, or several, that are booked bit by bit.
	Span string
	// Turn whose budget it is a part of; empty: it was no turn's.
	Turn string
	// Person as in Grant.
	Person string
	// Total is how long the span is by now.
	Total time.Duration
}

// Book counts what of a stay was not booked yet, in whole seconds, for its turn,
// its person and all. It may be called again and again with the same Total or a
// greater one. The span itself is marked last: after a crash in between a part
// is counted twice, and none is missed.
func (b *Broker) Book(ctx context.Context, s Stay) error {
	mark := spanAccount(s.Session, s.Span)
	booked, err := b.till.spend(ctx, mark, Usage{})
	if err != nil {
		return fmt.Errorf("book box time: %w", err)
	}
	seconds := int(s.Total/time.Second) - booked.Calls
	if seconds <= 0 {
		return nil
	}
	for _, account := range b.stayAccounts(s) {
		if _, err := b.till.spend(ctx, account.name, account.of(seconds)); err != nil {
			return fmt.Errorf("book box time: %w", err)
		}
	}
	if _, err := b.till.spend(ctx, mark, Usage{Calls: seconds}); err != nil {
		return fmt.Errorf("book box time: %w", err)
	}
	return nil
}

// stayAccount is one that box time goes to: counted as calls, as money, or both.
type stayAccount struct {
	name  string
	count bool
	price float64
}

func (a stayAccount) of(seconds int) Usage {
	u := Usage{USD: float64(seconds) / 3600 * a.price}
	if a.count {
		u.Calls = seconds
	}
	return u
}

func (b *Broker) stayAccounts(s Stay) []stayAccount {
	day, price := Day(b.till.now()), b.boxUSDPerHour
	all := []stayAccount{{BoxesAccount(day, ""), true, price}}
	if s.Person != "" {
		all = append(all, stayAccount{BoxesAccount(day, s.Person), true, price})
	}
	if price == 0 {
		return all
	}
	all = append(all, stayAccount{name: SpentAccount(day, ""), price: price})
	if s.Person != "" {
		all = append(all, stayAccount{name: SpentAccount(day, s.Person), price: price})
	}
	if s.Turn != "" {
		all = append(all, stayAccount{name: account(s.Session, s.Turn), price: price})
	}
	return all
}
