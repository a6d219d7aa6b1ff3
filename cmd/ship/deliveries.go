package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ship/session"
)

const (
	// listedLetters is how many dead letters a list shows.
	listedLetters = 100
	// searchedLetters is how many are looked through for those that are meant.
	searchedLetters = 10_000
)

func deliveriesCommand() *cobra.Command {
	var configPath string
	cmd := &cobra.Command{
		Use: "deliveries", Short: "List, look at, replay and drop what was given up",
		Long: `What could not be done, or could not even be read, is put aside as a dead
letter: an event (somebody asked something) or an effect (something that ship
wanted to do about it). It lies there until it is replayed or dropped.`,
	}
	cmd.PersistentFlags().StringVar(&configPath, "config", "", "settings file")
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List dead letters, newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return withRecords(c, configPath, listDead) },
	}, showDeadCommand(&configPath), replayCommand(&configPath), dropCommand(&configPath))
	return cmd
}

func showDeadCommand(configPath *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show N|ID", Short: "Print one dead letter, by its number in the list or its id", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withRecords(c, *configPath, func(ctx context.Context, r records) error {
				d, err := letter(ctx, r, args[0])
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(r, newRemains(d))
				}
				return showDead(ctx, r, d)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print all of it, as JSON")
	return cmd
}

func listDead(ctx context.Context, r records) error {
	dead, err := r.DeadLetters(ctx, listedLetters)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(r.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "N\tID\tWHEN\tSESSION\tWHAT\tCAUSE")
	for i, d := range dead {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\n", i+1, d.ID, d.At.Format(time.RFC3339), d.Session, contents(d), r.line(d.Cause, 100))
	}
	return t.Flush()
}

// contents says in a word or three what a dead letter holds.
func contents(d session.DeadLetter) string {
	switch {
	case d.Effect != nil:
		return string(d.Effect.Kind) + " by " + d.Effect.By
	case d.Event != nil:
		return "event " + string(d.Event.Kind)
	default:
		return "no event"
	}
}

// letter finds a dead letter by its number in the list or by its id.
func letter(ctx context.Context, s session.Graveyard, name string) (session.DeadLetter, error) {
	unknown := fmt.Errorf("there is no dead letter %s; `ship deliveries list` shows all that are left", name)
	n, err := strconv.Atoi(name)
	if err != nil {
		d, err := s.DeadLetter(ctx, name)
		if errors.Is(err, session.ErrUnknown) {
			return d, unknown
		}
		return d, err
	}
	dead, err := s.DeadLetters(ctx, min(n, searchedLetters))
	if err == nil && (n < 1 || n > len(dead)) {
		err = unknown
	}
	if err != nil {
		return session.DeadLetter{}, err
	}
	return dead[n-1], nil
}

// showDead prints a dead letter for people: long texts are cut.
func showDead(ctx context.Context, r records, d session.DeadLetter) error {
	t := tabwriter.NewWriter(r.out, 0, 4, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, value)
		}
	}
	row("Dead letter", d.ID)
	row("When", d.At.Format(time.RFC3339))
	row("Session", string(d.Session))
	row("What", contents(d))
	row("Cause", r.line(d.Cause, 2000))
	if e := d.Event; e != nil {
		row("Delivery", r.line(e.Delivery, 200))
		r.rowsOfRequest(row, e.Request)
	}
	if e := d.Effect; e != nil {
		r.rowsOfEffect(row, *e)
	}
	if d.Turn != nil && d.Turn.Outcome != nil {
		o := d.Turn.Outcome
		row("Turn", fmt.Sprintf("%d, %s", d.Turn.N, o.Ending))
		row("Answer", r.line(cmp.Or(o.Answer, o.Say), 500))
	}
	row("Bytes", r.line(string(d.Raw), 500))
	row("Replay", advice(ctx, r, d))
	return t.Flush()
}

func (r records) rowsOfRequest(row func(name, value string), q *session.Request) {
	if q == nil {
		return
	}
	row("Asked by", r.line(q.By.Login, 100))
	row("Asked in", r.line(q.Thread.Platform+" "+q.Thread.Key, 200))
	row("Request", r.line(string(q.Verb)+" "+q.Text, 300))
}

func (r records) rowsOfEffect(row func(name, value string), e session.Effect) {
	row("Effect", e.ID)
	decided := e.Since.Format(time.RFC3339)
	if e.Turn > 0 {
		decided += fmt.Sprintf(", in turn %d", e.Turn)
	}
	row("Decided", decided)
	row("Attempts", strconv.Itoa(e.Attempts+1)) // the last is not counted in it
	if e.Thread != nil {
		row("Thread", r.line(e.Thread.Platform+" "+e.Thread.Key, 200))
	}
	r.rowsOfRequest(row, e.Request)
	row("Text", r.line(e.Text, 300))
	row("Answers", r.line(e.Ref, 200))
	if e.Check != nil {
		row("Check", fmt.Sprintf("%s %s", e.Check.SHA, cmp.Or(e.Check.Conclusion, "in progress")))
	}
}

// advice says how to replay a dead letter, or why not to.
func advice(ctx context.Context, s session.Archive, d session.DeadLetter) string {
	why, err := obstacle(ctx, s, d)
	switch {
	case err != nil:
		return "not known: " + err.Error()
	case why != "":
		return fmt.Sprintf("no: %s; `ship deliveries drop %s` removes it", why, d.ID)
	}
	return fmt.Sprintf("`ship deliveries replay %s`", d.ID)
}

// obstacle says why a dead letter cannot be replayed now; empty: it can.
func obstacle(ctx context.Context, s session.Archive, d session.DeadLetter) (string, error) {
	state, err := peek(ctx, s, d.Session)
	if errors.Is(err, session.ErrUnknown) { // an event makes it anew
		state, err = session.State{ID: d.Session}, nil
		if d.Effect != nil {
			return "the session is forgotten", nil
		}
	}
	if err != nil {
		return "", err
	}
	return d.Obstacle(state), nil
}

// remains is a dead letter as JSON for people and programs: its bytes are text.
type remains struct {
	session.DeadLetter
	Raw string `json:"raw,omitempty"`
}

func newRemains(d session.DeadLetter) remains {
	return remains{DeadLetter: d, Raw: strings.ToValidUTF8(string(d.Raw), "\uFFFD")}
}
