package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ship/session"
)

// export is all that is kept of a session.
type export struct {
	Session    session.ID    `json:"session"`
	ExportedAt time.Time     `json:"exported_at"`
	State      session.State `json:"state"`
	// Inbox is how many events wait to be read.
	Inbox       int       `json:"inbox"`
	Transcript  []string  `json:"transcript"`
	DeadLetters []remains `json:"dead_letters"`
}

func exportCommand(configPath *string) *cobra.Command {
	var markdown bool
	cmd := &cobra.Command{
		Use: "export ID", Short: "Print all that is kept of a session, as JSON or Markdown", Args: cobra.ExactArgs(1),
		Long: `Prints a session's state, what the agent did and what was given up, for a bug
report or an archive. The secrets of the settings, and what looks like one, are
taken out. What people wrote is not.`,
		RunE: func(c *cobra.Command, args []string) error {
			return withRecords(c, *configPath, func(ctx context.Context, r records) error {
				e, err := newExport(ctx, r, args[0])
				if err != nil {
					return err
				}
				if markdown {
					return printMarkdown(r, e)
				}
				return printJSON(r, e)
			})
		},
	}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "print it for people to read")
	return cmd
}

func newExport(ctx context.Context, r records, id string) (export, error) {
	state, err := known(ctx, r, id)
	if err != nil {
		return export{}, err
	}
	e := export{Session: session.ID(id), State: state, Transcript: []string{}, DeadLetters: []remains{}}
	claim, err := r.Peek(ctx, e.Session)
	if err != nil {
		return export{}, err
	}
	e.ExportedAt, e.Inbox = claim.Now, len(claim.Events)
	if _, err := readOn(ctx, r, page{session: e.Session}, func(line string) { e.Transcript = append(e.Transcript, line) }); err != nil {
		return export{}, err
	}
	sel := selection{session: id}
	dead, err := sel.letters(ctx, r)
	for _, d := range dead {
		e.DeadLetters = append(e.DeadLetters, newRemains(d))
	}
	return e, err
}

// printMarkdown prints what a person wants to know first, and then the rest.
func printMarkdown(r records, e export) error {
	v := session.ViewOf(e.State)
	fmt.Fprintf(r.out, "# Session %s\n\n%s\n\n", e.Session, r.line(v.Title, 200))
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(r.out, "- %s: %s\n", name, r.line(value, 500))
		}
	}
	row("Exported", e.ExportedAt.Format(time.RFC3339))
	row("Repository", v.Repo)
	row("Branch", v.Branch)
	if v.PR != nil {
		row("Pull request", v.PR.URL)
	}
	row("Turn", fmt.Sprintf("%d, %s", v.Turn, v.Phase))
	if v.Outcome != nil {
		row("Ended", strings.TrimSpace(string(v.Outcome.Ending)+" "+v.Outcome.Say))
	}
	row("Spent", fmt.Sprintf("$%.2f", e.State.Spent.USD))
	row("Waiting events", fmt.Sprint(e.Inbox))
	section(r, "Transcript", strings.Join(e.Transcript, "\n"))
	for _, d := range e.DeadLetters {
		if err := jsonSection(r, fmt.Sprintf("Dead letter %s: %s", d.ID, contents(d.DeadLetter)), d); err != nil {
			return err
		}
	}
	return jsonSection(r, "State", e.State)
}

// section prints a text in a fence that it cannot end.
func section(r records, title, text string) {
	text = visible(r.redact(text))
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	fmt.Fprintf(r.out, "\n## %s\n\n%s\n%s\n%s\n", title, fence, text, fence)
}

func jsonSection(r records, title string, v any) error {
	var b strings.Builder
	to := r
	to.out = io.Writer(&b)
	if err := printJSON(to, v); err != nil {
		return err
	}
	section(r, title, strings.TrimSpace(b.String()))
	return nil
}
