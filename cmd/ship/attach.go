package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ship/sandbox"
	"ship/sandbox/guest"
	"ship/sandbox/local"
	"ship/sandbox/preview"
	"ship/session"
	"ship/session/redis"
)

func attachCommand(configPath *string) *cobra.Command {
	var command, listen string
	var inEditor bool
	cmd := &cobra.Command{
		Use:   "attach ID",
		Short: "Open a terminal or an editor in a session's box",
		Long: `Opens a shell in the box that a session has, on the machine that has it. The
shell and what it starts end with this command, and with the box. It does not
keep the box: that is destroyed when the session has been idle for long enough,
as if nobody was there.

With --editor, the box's code-server is started, and a link printed by which one
browser on this machine reaches it.

What runs in a box is not to be trusted, and neither is what it prints.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			box, err := boxOf(c, *configPath, args[0])
			switch {
			case err != nil:
				return err
			case inEditor:
				if err := confined(*configPath); err != nil {
					return err
				}
				return edit(c.Context(), box, listen, c.OutOrStdout())
			case command != "":
				return runInBox(c.Context(), box, command, c.OutOrStdout())
			}
			return attach(c.Context(), box, os.Stdin, os.Stdout)
		},
	}
	cmd.Flags().StringVar(&command, "command", "", "run this there and print its output, without a terminal")
	cmd.Flags().BoolVar(&inEditor, "editor", false, "start the box's code-server and print a link to it")
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "where --editor is reached, on this machine alone")
	cmd.MarkFlagsMutuallyExclusive("command", "editor")
	return cmd
}

// boxOf finds the living box of a session, and changes nothing about it.
func boxOf(cmd *cobra.Command, configPath, id string) (box sandbox.Box, err error) {
	s, err := readSettings(configPath, os.Environ())
	if err != nil {
		return nil, err
	}
	err = withStore(cmd, configPath, func(ctx context.Context, store *redis.Store) error {
		state, err := known(ctx, store, id)
		if err != nil {
			return err
		}
		if why := boxless(state); why != "" {
			return fmt.Errorf("session %s: %s", id, why)
		}
		boxes, err := peekers(ctx, s, store)
		if err != nil {
			return err
		}
		box, err = boxes.Peek(ctx, state.Box)
		return sayWhy(state, err)
	})
	return box, err
}

// confined refuses an editor that every user of this machine could use: it asks
// for no password in its box.
func confined(configPath string) error {
	s, err := readSettings(configPath, os.Environ())
	if err == nil && s.Sandbox.Provider == "local" && s.Sandbox.Local.Isolation == "none" {
		err = errors.New("an editor needs boxes that are isolated: without isolation every user of this machine could use it; set sandbox.local.isolation to bubblewrap")
	}
	return err
}

// boxless says why there is no box to go to; empty: there should be one.
func boxless(s session.State) string {
	switch {
	case s.Forward != "":
		return fmt.Sprintf("it goes on as %s", s.Forward)
	case s.Box == "":
		return "it has no box at the moment; it gets one when it works"
	}
	return ""
}

// sayWhy says what the fault of a box means for who wants to go there.
func sayWhy(s session.State, err error) error {
	switch {
	case errors.Is(err, sandbox.ErrGone):
		return fmt.Errorf("session %s: its box does not live on this machine; it may be on that of another worker, or gone", s.ID)
	case errors.Is(err, sandbox.ErrBusy):
		return fmt.Errorf("session %s: its box is paused, and is woken only by work", s.ID)
	}
	return err
}

// peekers opens the provider to look at what it has. It makes no box, so it needs
// nothing of what goes into one.
func peekers(ctx context.Context, s Settings, store *redis.Store) (preview.Boxes, error) {
	log := slog.New(slog.DiscardHandler)
	switch s.Sandbox.Provider {
	case "e2b":
		return openE2B(ctx, s, store.Vault(), log)
	case "docker":
		return openDocker(ctx, s, log)
	}
	return local.New(local.Config{Dir: filepath.Join(s.DataDir, "boxes"), Isolation: s.Sandbox.Local.Isolation, Logger: log})
}

// runInBox runs one command line, and ends it when ctx does.
func runInBox(ctx context.Context, box sandbox.Box, line string, out io.Writer) error {
	cmd := sandbox.Command{Name: "attach-" + strings.ToLower(rand.Text()[:12]), Args: []string{"/bin/sh", "-c", line}}
	got, err := sandbox.Exec(ctx, box, cmd)
	if err != nil {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second) // ctx may be over
		defer cancel()
		if left := box.Kill(end, cmd.Name, time.Second); left != nil && !errors.Is(left, sandbox.ErrGone) {
			err = errors.Join(err, fmt.Errorf("end it: %w", left))
		}
		return err
	}
	if _, err := out.Write(got.Data); err != nil {
		return err
	}
	switch {
	case got.Truncated:
		return fmt.Errorf("there is more output than is shown; all of it is in the box at %s", got.Process.Output)
	case got.Signal != "":
		return fmt.Errorf("the command was ended by %s", got.Signal)
	case got.ExitCode != 0:
		return fmt.Errorf("the command ended with exit code %d", got.ExitCode)
	}
	return nil
}

// shells are boxes with a terminal.
type shells interface {
	Terminal(ctx context.Context, kind string, size guest.Window) (*guest.Terminal, error)
}

// attach connects a terminal of ours with one in a box, until one of them ends.
func attach(ctx context.Context, box sandbox.Box, in, out *os.File) error {
	there, ok := box.(shells)
	if !ok {
		return errors.New("this box has no terminals; --command runs one command in it")
	}
	fd := int(in.Fd())
	if !term.IsTerminal(fd) {
		return errors.New("the input is no terminal; --command runs one command without one")
	}
	shell, err := there.Terminal(ctx, os.Getenv("TERM"), windowOf(in))
	if errors.Is(err, sandbox.ErrTransient) {
		return fmt.Errorf("the box gave us no terminal, perhaps as it was made by an older ship; --command may work: %w", err)
	}
	if err != nil {
		return fmt.Errorf("open a terminal in the box: %w", err)
	}
	defer shell.Close()
	before, err := term.MakeRaw(fd)
	if err != nil {
		return fmt.Errorf("take over the terminal: %w", err)
	}
	err = relay(ctx, shell, in, out)
	return errors.Join(err, term.Restore(fd, before))
}

// relay carries what is typed and shown. The one who types is not waited for.
func relay(ctx context.Context, shell *guest.Terminal, in, out *os.File) error {
	defer context.AfterFunc(ctx, func() { _ = shell.Close() })()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer func() { signal.Stop(resized); close(resized) }()
	go func() {
		for range resized {
			_ = shell.Resize(windowOf(in)) // one that fails is the end of the shell
		}
	}()
	go func() { _, _ = io.Copy(shell, in) }()
	_, err := io.Copy(out, shell)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("the box is gone, or cannot be reached any more: %w", err)
	}
	return nil
}

// windowOf is the size of a terminal; as of old if it does not say.
func windowOf(f *os.File) guest.Window {
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		return guest.Window{Rows: 24, Columns: 80}
	}
	return guest.Window{Rows: uint16(rows), Columns: uint16(columns)}
}
