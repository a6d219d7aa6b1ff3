// Command ship turns "please do this" into a draft pull request, where a team
// already works.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"ship/sandbox/guest"
	"ship/session"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "guest" {
		// The first process of a box: not a command for people, and without
		// anything that the command line would cost at every start of a box.
		os.Exit(guest.Main(context.Background(), os.Args[2:]))
	}
	ctx, stop := interruptible(context.Background())
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ship: "+err.Error())
		os.Exit(1)
	}
}

// interruptible ends the context at the first SIGINT or SIGTERM, and the
// process at the second.
func interruptible(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
			cancel(session.ErrShutdown)
		case <-done:
			return
		}
		select {
		case <-signals:
			fmt.Fprintln(os.Stderr, "ship: ending at once")
			os.Exit(1)
		case <-done:
		}
	}()
	return ctx, func() { signal.Stop(signals); close(done); cancel(nil) }
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "ship",
		Short: "Turns a request on GitHub into a draft pull request",
		Long: `ship takes requests where a team already works, runs a coding agent on them
in an isolated box, and answers with a draft pull request.

Start with "ship demo", which needs no account. Then "ship setup github",
"ship doctor" and "ship serve".`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(serveCommand(), demoCommand(), setupCommand(), doctorCommand(), sendCommand(), sessionsCommand(), deliveriesCommand(), versionCommand())
	helpful(root)
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which version this is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "ship "+version())
			return err
		},
	}
}

// version is what the Go command has written into the program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			v += " (" + s.Value[:12] + ")"
		}
	}
	return v + " " + info.GoVersion
}
