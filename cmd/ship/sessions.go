package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ship/session"
	"ship/session/redis"
	"ship/session/turn"
)

// withStore runs f on the sessions of the settings, without starting anything:
// with an embedded redis-server, `ship serve` has to be running.
func withStore(cmd *cobra.Command, configPath string, f func(context.Context, *redis.Store) error) error {
	return withRecords(cmd, configPath, func(ctx context.Context, r records) error { return f(ctx, r.Store) })
}

// records are what is kept of sessions, for people to read.
type records struct {
	*redis.Store
	// redact takes the secrets of the settings, and what looks like one, out of
	// a text.
	redact func(string) string
	out    io.Writer
}

// withRecords is withStore for what may hold what people wrote.
func withRecords(cmd *cobra.Command, configPath string, f func(context.Context, records) error) error {
	s, err := readSettings(configPath, os.Environ())
	if err != nil {
		return err
	}
	o, remedy := s.Redis.options(slog.New(slog.DiscardHandler)), "check redis.url, and that the server runs"
	if o.URL == "" {
		o.URL, remedy = redis.EmbeddedURL(filepath.Join(s.DataDir, "redis")), "redis.url is empty, so `ship serve` has to be running"
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 30*time.Second)
	defer cancel()
	store, err := redis.Open(ctx, o)
	if err != nil {
		return fmt.Errorf("%w (%s)", err, remedy)
	}
	defer store.Close()
	return f(ctx, records{Store: store, redact: turn.Redactor(s.secrets()), out: cmd.OutOrStdout()})
}

func sessionsCommand() *cobra.Command {
	var configPath string
	cmd := &cobra.Command{Use: "sessions", Short: "List, look at, follow, stop, retry, attach to and export sessions, and what they cost"}
	cmd.PersistentFlags().StringVar(&configPath, "config", "", "settings file")
	add := func(use, short string, f func(context.Context, *redis.Store, io.Writer, string) error) {
		args := cobra.NoArgs
		if strings.Contains(use, "ID") {
			args = cobra.ExactArgs(1)
		}
		cmd.AddCommand(&cobra.Command{Use: use, Short: short, Args: args, RunE: func(c *cobra.Command, a []string) error {
			id := ""
			if len(a) > 0 {
				id = a[0]
			}
			return withStore(c, configPath, func(ctx context.Context, s *redis.Store) error { return f(ctx, s, c.OutOrStdout(), id) })
		}})
	}
	add("list", "List all sessions", func(ctx context.Context, s *redis.Store, w io.Writer, _ string) error { return listSessions(ctx, s, w) })
	add("stop ID", "Stop the running turn", func(ctx context.Context, s *redis.Store, w io.Writer, id string) error {
		return command(ctx, s, w, id, session.Stop)
	})
	add("retry ID", "Start the last turn again", func(ctx context.Context, s *redis.Store, w io.Writer, id string) error {
		return command(ctx, s, w, id, session.Retry)
	})
	cmd.AddCommand(showCommand(&configPath), logsCommand(&configPath), exportCommand(&configPath), attachCommand(&configPath), costsCommand(&configPath))
	return cmd
}

func listSessions(ctx context.Context, s session.Archive, w io.Writer) error {
	ids, err := s.Sessions(ctx)
	if err != nil {
		return err
	}
	slices.Sort(ids)
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "SESSION\tREPOSITORY\tTURN\tSTATE\tSPENT\tBOX TIME\tPULL REQUEST")
	for _, id := range ids {
		state, err := peek(ctx, s, id)
		if err != nil {
			return err
		}
		v := session.ViewOf(state)
		word, pr := string(v.Phase), ""
		if v.Outcome != nil && v.Phase == session.PhaseEnded {
			word = string(v.Outcome.Ending)
		}
		if state.Forward != "" {
			word = "see " + string(state.Forward)
		}
		if v.PR != nil {
			pr = v.PR.URL
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t$%.2f\t%s\t%s\n", id, v.Repo, v.Turn, word, v.All.USD, v.All.Box, pr)
	}
	return t.Flush()
}

// known is the state of a session that there is.
func known(ctx context.Context, s session.Archive, id string) (session.State, error) {
	state, err := peek(ctx, s, session.ID(id))
	if errors.Is(err, session.ErrUnknown) {
		return state, fmt.Errorf("there is no session %s; `ship sessions list` names them all", id)
	}
	return state, err
}

func showCommand(configPath *string) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Print a session's state as JSON", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withRecords(c, *configPath, func(ctx context.Context, r records) error {
				state, err := known(ctx, r, args[0])
				if err != nil {
					return err
				}
				return printJSON(r, state)
			})
		},
	}
}

// command puts an operator's word into a session's inbox. Who can reach the
// store may say it; no platform is asked.
func command(ctx context.Context, s *redis.Store, w io.Writer, id string, verb session.Verb) error {
	state, err := known(ctx, s, id)
	if err != nil {
		return err
	}
	if why := pointless(state, verb); why != "" {
		return fmt.Errorf("session %s: %s", id, why)
	}
	word := rand.Text()
	_, err = s.Append(ctx, session.Delivery{
		Session: session.ID(id), Keys: []string{"operator:" + word}, Keep: time.Hour,
		Event: session.Event{V: session.EventVersion, Kind: session.Ordered, Request: &session.Request{
			ID: "operator-" + word, Thread: state.Threads[0].Thread, By: session.Person{Login: "the operator"}, Verb: verb, At: time.Now(),
		}},
	})
	if err == nil {
		fmt.Fprintf(w, "%s: told to %s\n", id, verb)
	}
	return err
}

// pointless says why a word would come to nothing, which the thread need not
// hear.
func pointless(s session.State, verb session.Verb) string {
	busy := s.Turn != nil && s.Turn.Stage != session.Ended
	switch {
	case s.Forward != "":
		return fmt.Sprintf("it goes on as %s", s.Forward)
	case s.Turn == nil || len(s.Threads) == 0:
		return "nothing was ever run in it"
	case verb == session.Stop && !busy:
		return "nothing is running, so there is nothing to stop"
	case verb == session.Retry && busy:
		return fmt.Sprintf("it is still at it; end the turn with `ship sessions stop %s` first", s.ID)
	}
	return ""
}
