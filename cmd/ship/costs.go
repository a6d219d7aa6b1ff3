package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ship/sandbox/broker"
	"ship/session"
)

// maxDays is for how long a ledger keeps an account that nobody uses.
const maxDays = 30

// accounts lists what was spent.
type accounts interface {
	// Accounts returns the accounts whose names begin with a prefix.
	Accounts(ctx context.Context, prefix string) (map[string]session.Usage, error)
}

func costsCommand(configPath *string) *cobra.Command {
	days := 7
	cmd := &cobra.Command{
		Use: "costs", Short: "List what was spent, by day and person", Args: cobra.NoArgs,
		Long: "List what was spent on models and boxes, by day (UTC) and by who asked for it. ALL is everybody together.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if days < 1 || days > maxDays {
				return fmt.Errorf("--days is from 1 to %d, for as long as accounts are kept", maxDays)
			}
			return withRecords(cmd, *configPath, func(ctx context.Context, r records) error {
				return listCosts(ctx, r, r.out, lastDays(time.Now(), days))
			})
		},
	}
	cmd.Flags().IntVar(&days, "days", days, "how many days, with today")
	return cmd
}

// lastDays are the newest n, the newest first.
func lastDays(now time.Time, n int) []string {
	var days []string
	for i := range n {
		days = append(days, broker.Day(now.UTC().AddDate(0, 0, -i)))
	}
	return days
}

// listCosts prints a line for each day, and below it one for each person.
func listCosts(ctx context.Context, a accounts, w io.Writer, days []string) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "DAY\tWHO\tSPENT\tMODEL CALLS\tTOKENS IN\tTOKENS OUT\tBOX TIME\tOF IT BOXES")
	for _, day := range days {
		spent, err := ofDay(ctx, a, broker.SpentAccount(day, ""))
		if err != nil {
			return err
		}
		boxes, err := ofDay(ctx, a, broker.BoxesAccount(day, ""))
		if err != nil {
			return err
		}
		everybody := maps.Clone(spent)
		maps.Copy(everybody, boxes)
		for _, who := range slices.Sorted(maps.Keys(everybody)) {
			s, b := spent[who], boxes[who]
			if s == (session.Usage{}) && b == (session.Usage{}) {
				continue // they asked, and nothing came of it
			}
			fmt.Fprintf(t, "%s\t%s\t$%.2f\t%d\t%d\t%d\t%s\t$%.2f\n", day, nameOf(who), s.USD, s.Calls, s.Input, s.Output,
				time.Duration(b.Calls)*time.Second, b.USD)
		}
	}
	return t.Flush()
}

// ofDay are the accounts of a day by payer; the one of all has no name.
func ofDay(ctx context.Context, a accounts, prefix string) (map[string]session.Usage, error) {
	found, err := a.Accounts(ctx, prefix)
	if err != nil {
		return nil, err
	}
	by := map[string]session.Usage{}
	for name, u := range found {
		by[strings.TrimPrefix(strings.TrimPrefix(name, prefix), ":")] = u
	}
	return by, nil
}

// nameOf is a payer for people, in one word and without controls.
func nameOf(payer string) string {
	if payer == "" {
		return "ALL"
	}
	platform, login := session.ParsePayer(payer)
	return platform + ":" + strings.Trim(fmt.Sprintf("%q", login), `"`)
}
