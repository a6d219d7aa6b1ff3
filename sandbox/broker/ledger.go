package broker

import "context"

// Usage is what model calls used.
type Usage struct {
	Calls int
	// Input tokens, those that the provider read from its cache included.
	Input int
	// Output tokens, those of reasoning included.
	Output int
	// USD is money in US dollars.
	USD float64
}

// Ledger counts what turns spend. It survives restarts, is shared by all
// processes that serve a turn, and keeps an account for longer than any grant
// lives.
type Ledger interface {
	// Spend adds to an account, in one atomic step, and returns its total.
	// Adding nothing reads it; an unknown account is empty. Not idempotent: a
	// repeat counts again, which errs on the safe side.
	Spend(ctx context.Context, account string, u Usage) (Usage, error)
	// Totals reads accounts, in the order of their names; an unknown one is
	// empty. They need not be of the same moment.
	Totals(ctx context.Context, accounts ...string) ([]Usage, error)
}

func account(session, turn string) string { return session + ":" + turn }

// endedAccount holds calls when the turn is over. No turn has an exclamation
// mark in its name.
func endedAccount(account string) string { return account + "!ended" }
