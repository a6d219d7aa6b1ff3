package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ship/session"
)

// followEvery is how often a transcript that is followed is looked at.
const followEvery = 500 * time.Millisecond

func logsCommand(configPath *string) *cobra.Command {
	var follow bool
	var from string
	cmd := &cobra.Command{
		Use: "logs ID", Short: "Print what the agent did, and what its commands printed", Args: cobra.ExactArgs(1),
		Long: `Prints what the agent did: each call of a tool, what commands printed, and what
it said at the end. The newest 2,000 lines are kept, for a week after the last.
Secrets of the settings, and what looks like one, are taken out.

Where it ends, a cursor is printed to the standard error. --from reads on from
there; -f waits for what is still to come, until it is interrupted.`,
		RunE: func(c *cobra.Command, args []string) error {
			return withRecords(c, *configPath, func(ctx context.Context, r records) error {
				if _, err := known(ctx, r, args[0]); err != nil {
					return err
				}
				p := page{session: session.ID(args[0]), cursor: from}
				if follow {
					return r.follow(c.Context(), p) // the other has a deadline
				}
				return r.print(ctx, p, c.ErrOrStderr())
			})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "wait for what is still to come")
	cmd.Flags().StringVar(&from, "from", "", "go on after this cursor, which an earlier call printed")
	return cmd
}

// page is a place in a transcript. An empty cursor is its beginning.
type page struct {
	session session.ID
	cursor  string
}

// print prints a transcript to its end, and tells where that is.
func (r records) print(ctx context.Context, p page, tell io.Writer) error {
	end, err := readOn(ctx, r, p, r.show)
	if err == nil && end != "" {
		fmt.Fprintf(tell, "--from %s goes on from here\n", end)
	}
	return err
}

// show prints a line of a transcript.
func (r records) show(line string) { fmt.Fprintln(r.out, visible(r.redact(line))) }

// follow prints a transcript as it grows, until ctx ends.
func (r records) follow(ctx context.Context, p page) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		end, err := readOn(ctx, r, p, r.show)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		p.cursor = end
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// readOn reads a transcript to its end, and returns the cursor of that.
func readOn(ctx context.Context, s session.Transcript, p page, f func(line string)) (end string, err error) {
	for {
		lines, next, err := s.Lines(ctx, p.session, p.cursor, 200)
		if err != nil || len(lines) == 0 {
			return p.cursor, err
		}
		for _, line := range lines {
			f(line)
		}
		p.cursor = next
	}
}
