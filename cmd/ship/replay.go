package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ship/session"
)

// selection is which dead letters are meant: some by their ids, or all that the
// flags leave.
type selection struct {
	ids     []string
	session string
	cause   string
	all     bool
}

func (sel *selection) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&sel.session, "session", "", "all of this session")
	cmd.Flags().StringVar(&sel.cause, "cause", "", "all whose cause contains this")
	cmd.Flags().BoolVar(&sel.all, "all", false, "all there are")
}

// check refuses what could be meant in two ways, and what means nothing.
func (sel *selection) check(ids []string) error {
	sel.ids = ids
	narrowed := sel.session != "" || sel.cause != ""
	switch {
	case len(ids) > 0 && (narrowed || sel.all), sel.all && narrowed:
		return errors.New("give ids, or --session and --cause, or --all")
	case len(ids) == 0 && !narrowed && !sel.all:
		return errors.New("say which: ids as `ship deliveries list` shows them, --session ID, --cause TEXT or --all")
	}
	return nil
}

// letters are those that are meant, oldest first, as they came.
func (sel *selection) letters(ctx context.Context, s session.Graveyard) ([]session.DeadLetter, error) {
	if len(sel.ids) == 0 {
		dead, err := s.DeadLetters(ctx, searchedLetters)
		dead = slices.DeleteFunc(dead, func(d session.DeadLetter) bool {
			return sel.session != "" && d.Session != session.ID(sel.session) || !strings.Contains(d.Cause, sel.cause)
		})
		slices.Reverse(dead)
		return dead, err
	}
	var dead []session.DeadLetter
	for _, id := range sel.ids {
		// A number would name another one as soon as one is gone.
		d, err := s.DeadLetter(ctx, id)
		if errors.Is(err, session.ErrUnknown) {
			err = fmt.Errorf("there is no dead letter with the id %s; `ship deliveries list` shows all that are left", id)
		}
		if err != nil {
			return nil, err
		}
		dead = append(dead, d)
	}
	return dead, nil
}

// eachCommand is a command that does something to each dead letter that is
// meant.
func eachCommand(cmd *cobra.Command, configPath *string, do func(context.Context, records, session.DeadLetter) error) *cobra.Command {
	var sel selection
	sel.flags(cmd)
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(c *cobra.Command, ids []string) error {
		if err := sel.check(ids); err != nil {
			return misused(c, err)
		}
		return withRecords(c, *configPath, func(ctx context.Context, r records) error {
			letters, err := sel.letters(ctx, r)
			if err != nil {
				return err
			}
			if len(letters) == 0 {
				fmt.Fprintln(r.out, "there is none")
			}
			return forEach(ctx, r, letters, do)
		})
	}
	return cmd
}

// forEach goes on when one of them fails, and says how many did.
func forEach(ctx context.Context, r records, letters []session.DeadLetter, do func(context.Context, records, session.DeadLetter) error) error {
	failed := 0
	for _, d := range letters {
		if err := do(ctx, r, d); err != nil {
			failed++
			fmt.Fprintf(r.out, "%s: %s: %v\n", d.ID, d.Session, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("not all were reached: %w", context.Cause(ctx))
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d remain", failed, len(letters))
	}
	return nil
}

func replayCommand(configPath *string) *cobra.Command {
	return eachCommand(&cobra.Command{
		Use: "replay [ID…]", Short: "Put dead letters back, oldest first",
		Long: `Puts dead letters back, oldest first, and removes them from the list.

What somebody asked is put into its session's inbox again. What was to be said
or shown is tried again; whoever does it looks first whether it was done after
all. A step of a turn (prepare, run, publish, open) starts the turn again, as
"ship sessions retry" does. What would come to nothing by now, because the
session has gone on, is left where it is.

Find and mend the cause first: see "ship deliveries show ID".`,
		Example: `  ship deliveries replay 07-1790000000000-0
  ship deliveries replay --session gh.812345678.42
  ship deliveries replay --cause "rate limit"
  ship deliveries replay --all`,
	}, configPath, replayLetter)
}

// replayLetter appends first: when this process ends in between, the next
// replay finds the letter, appends nothing, and removes it.
func replayLetter(ctx context.Context, r records, d session.DeadLetter) error {
	why, err := obstacle(ctx, r, d)
	if err != nil {
		return err
	}
	if why != "" {
		return errors.New("not replayed: " + why)
	}
	if _, err := r.Append(ctx, d.Replay()); err != nil {
		return err
	}
	if err := r.DropDeadLetter(ctx, d.ID); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%s: %s: replayed %s\n", d.ID, d.Session, contents(d))
	return nil
}

func dropCommand(configPath *string) *cobra.Command {
	return eachCommand(&cobra.Command{
		Use: "drop [ID…]", Short: "Remove dead letters for good",
	}, configPath, func(ctx context.Context, r records, d session.DeadLetter) error {
		if err := r.DropDeadLetter(ctx, d.ID); err != nil {
			return err
		}
		fmt.Fprintf(r.out, "%s: %s: dropped %s\n", d.ID, d.Session, contents(d))
		return nil
	})
}
