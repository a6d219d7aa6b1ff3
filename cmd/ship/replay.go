package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ship/session"
)

// selection is which dead letters are meant: some by their ids, or all that the
// flags leave.
type selection struct {
	ids      []string
	session  string
	cause    string
	kind     string
	platform string
	since    string
	all      bool
	// dry: only say which.
	dry bool

	// after is since as a moment; zero: from the first on.
	after time.Time
}

func (sel *selection) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&sel.session, "session", "", "all of this session")
	cmd.Flags().StringVar(&sel.cause, "cause", "", "all whose cause contains this")
	cmd.Flags().StringVar(&sel.kind, "kind", "", "all of this kind: event, effect, or the name of one, such as asked or publish")
	cmd.Flags().StringVar(&sel.platform, "platform", "", "all that came from this platform or were to be done there, such as github")
	cmd.Flags().StringVar(&sel.since, "since", "", "all that were put aside since then: 2h, or 2026-01-02T15:04:05Z")
	cmd.Flags().BoolVar(&sel.all, "all", false, "all there are")
	cmd.Flags().BoolVar(&sel.dry, "dry-run", false, "say which it would be, and what would become of them, and change nothing")
}

// narrowed: a flag says which.
func (sel *selection) narrowed() bool {
	return sel.session+sel.cause+sel.kind+sel.platform+sel.since != ""
}

// check refuses what could be meant in two ways, and what means nothing.
func (sel *selection) check(ids []string, now time.Time) (err error) {
	sel.ids = ids
	switch {
	case len(ids) > 0 && (sel.narrowed() || sel.all), sel.all && sel.narrowed():
		return errors.New("give ids, or what narrows them down (--session, --cause, --kind, --platform, --since), or --all")
	case len(ids) == 0 && !sel.narrowed() && !sel.all:
		return errors.New("say which: ids as `ship deliveries list` shows them, --session ID, --cause TEXT, --kind KIND, --platform NAME, --since TIME or --all")
	}
	sel.after, err = moment(sel.since, now)
	return err
}

// moment reads a time, or how long ago it was. Empty: the zero time.
func moment(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("--since is how long ago, such as 90m, or a time such as 2026-01-02T15:04:05Z, not %q", text)
	}
	return at, nil
}

// means tells whether the flags leave a dead letter.
func (sel *selection) means(d session.DeadLetter) bool {
	return (sel.session == "" || d.Session == session.ID(sel.session)) &&
		strings.Contains(d.Cause, sel.cause) &&
		(sel.kind == "" || slices.Contains(kindsOf(d), sel.kind)) &&
		(sel.platform == "" || slices.Contains(platformsOf(d), sel.platform)) &&
		!d.At.Before(sel.after)
}

// kindsOf are the words that a dead letter's kind is found by.
func kindsOf(d session.DeadLetter) []string {
	switch {
	case d.Effect != nil:
		return []string{"effect", string(d.Effect.Kind)}
	case d.Event != nil:
		return []string{"event", string(d.Event.Kind)}
	}
	return nil // its bytes are no event
}

// platformsOf are those that a dead letter has to do with: where it was asked,
// and who was to do it.
func platformsOf(d session.DeadLetter) (names []string) {
	asked := func(q *session.Request) {
		if q != nil {
			names = append(names, q.Thread.Platform)
		}
	}
	if e := d.Effect; e != nil {
		names = append(names, e.By)
		asked(e.Request)
		if e.Thread != nil {
			names = append(names, e.Thread.Platform)
		}
	}
	if d.Event != nil {
		asked(d.Event.Request)
	}
	return names
}

// letters are those that are meant, oldest first, as they came.
func (sel *selection) letters(ctx context.Context, s session.Graveyard) ([]session.DeadLetter, error) {
	if len(sel.ids) == 0 {
		dead, err := s.DeadLetters(ctx, searchedLetters)
		dead = slices.DeleteFunc(dead, func(d session.DeadLetter) bool { return !sel.means(d) })
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

// deed is what a command does to a dead letter, and what it says instead of
// doing it.
type deed struct {
	do, say func(context.Context, records, session.DeadLetter) error
}

// eachCommand is a command that does something to each dead letter that is
// meant.
func eachCommand(cmd *cobra.Command, configPath *string, d deed) *cobra.Command {
	var sel selection
	sel.flags(cmd)
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(c *cobra.Command, ids []string) error {
		if err := sel.check(ids, time.Now()); err != nil {
			return misused(c, err)
		}
		do := d.do
		if sel.dry {
			do = d.say
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
  ship deliveries replay --platform linear --since 2h --dry-run
  ship deliveries replay --kind publish
  ship deliveries replay --all`,
	}, configPath, deed{do: replayLetter, say: func(ctx context.Context, r records, d session.DeadLetter) error {
		why, err := obstacle(ctx, r, d)
		if err == nil && why != "" {
			err = errors.New("would not be replayed: " + why)
		}
		if err != nil {
			return err
		}
		return becomes(r, d, "would replay")
	}})
}

// becomes says what becomes of a dead letter.
func becomes(r records, d session.DeadLetter, what string) error {
	_, err := fmt.Fprintf(r.out, "%s: %s: %s %s\n", d.ID, d.Session, what, contents(d))
	return err
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
	return becomes(r, d, "replayed")
}

func dropCommand(configPath *string) *cobra.Command {
	return eachCommand(&cobra.Command{
		Use: "drop [ID…]", Short: "Remove dead letters for good",
	}, configPath, deed{
		do: func(ctx context.Context, r records, d session.DeadLetter) error {
			if err := r.DropDeadLetter(ctx, d.ID); err != nil {
				return err
			}
			return becomes(r, d, "dropped")
		},
		say: func(_ context.Context, r records, d session.DeadLetter) error { return becomes(r, d, "would drop") },
	})
}
