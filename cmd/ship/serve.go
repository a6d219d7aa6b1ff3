package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ship/integrations"
	"ship/session"
)

func serveCommand() *cobra.Command {
	var configPath, roleName, chaosSeed string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Take requests and work on them, all in this one process",
		Long: `Takes webhooks, coordinates sessions and runs the boxes. Settings come from
ship.yaml (or --config, or SHIP_CONFIG) and from the environment; see
docs/settings.md.

With redis.url empty, the machine's own redis-server is started on a socket in
data_dir and stopped with ship.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := readSettings(configPath, os.Environ())
			if err != nil {
				return err
			}
			r := role(roleName)
			if r != roleAll && r != roleIntake && r != roleWorker {
				return fmt.Errorf("--role is intake, worker or all, not %q", roleName)
			}
			log := slog.New(session.LogHandler(slog.NewJSONHandler(cmd.ErrOrStderr(), discreetly(s.secrets()))))
			return serve(cmd.Context(), s, duty{r, chaosSeed}, log)
		},
	}
	cmd.Flags().StringVar(&configPath, "config", "", "settings file (default: SHIP_CONFIG, else ship.yaml if it is there)")
	cmd.Flags().StringVar(&roleName, "role", string(roleAll), "intake, worker or all")
	cmd.Flags().StringVar(&chaosSeed, "chaos", "", "make boxes fail, as a seed says; refused unless sandbox.chaos allows it")
	cmd.Flags().Lookup("chaos").NoOptDefVal = anySeed
	return cmd
}

// duty is what one process is asked to do.
type duty struct {
	role role
	// chaos is the seed that its boxes fail by; empty: they are left alone.
	chaos string
}

func serve(ctx context.Context, s Settings, d duty, log *slog.Logger) (err error) {
	told, err := openTelemetry(ctx, s.Telemetry, d.role, log)
	if err != nil {
		return err
	}
	defer told.close(ctx, log)
	disturb, err := newDisturbance(d.chaos, s.Sandbox, told.registry)
	if err != nil {
		return err
	}
	defer disturb.sum(log)
	leaveDataDir, err := enterDataDir(ctx, s.DataDir, d.role, log)
	if err != nil {
		return err
	}
	defer leaveDataDir()
	hook := faultHook(log)
	store, closeStore, err := openRedis(ctx, s, log, hook)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	kept := told.watch(store)
	platforms, err := openPlatforms(s, integrations.Deps{
		Inbox: kept, Archive: kept, Heard: told.front.Heard, Log: log, Transport: told.transport(http.DefaultTransport),
		Shared: integrations.Shared{Vault: store.Vault(), Locker: store.Vault(), Quota: watchedQuota{store.Quota(), told.store}},
	})
	if err != nil {
		return err
	}
	a, err := wire(ctx, parts{
		settings: s, store: kept, vault: store.Vault(), places: store.Places(), ready: store.Ping, platforms: platforms, told: told, log: log, hook: hook,
		disturb: disturb,
	}, d.role)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	log.Info("ready", "listen", listener.Addr().String(), "role", string(d.role), "version", version(), "model", s.defaultModel(), "public_url", s.PublicURL)
	return a.run(ctx, listener)
}

// openPlatforms opens the platforms that are set up, with what the settings say
// of all of them.
func openPlatforms(s Settings, d integrations.Deps) ([]integrations.Platform, error) {
	d.PublicURL, d.Permission, d.People = s.PublicURL, s.Access.Permission, s.Access.PeopleSettings
	p, err := integrations.Open(s.Settings, d)
	if errors.Is(err, integrations.ErrNone) {
		return nil, errors.New("no platform is set up: fill in the section github of ship.yaml (docs/github.md), or try `ship demo`")
	}
	return p, err
}

// enterDataDir makes the folder, and where boxes are run makes this process its
// only worker until leave is called.
func enterDataDir(ctx context.Context, dir string, r role, log *slog.Logger) (leave func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data_dir: %w", err)
	}
	if r == roleIntake {
		return func() {}, nil
	}
	return lock(ctx, filepath.Join(dir, "worker.lock"), log)
}

// lock makes this process the only worker on a data_dir: its boxes reach the
// broker by a socket in there. A process that is about to end is waited for.
func lock(ctx context.Context, path string, log *slog.Logger) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data_dir: %w", err)
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for deadline, told := time.Now().Add(30*time.Second), false; ; told = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			// Closing it alone would leave the lock with a program that this
			// process is just starting, until that runs.
			return func() { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN); _ = f.Close() }, nil
		}
		if time.Now().After(deadline) {
			_ = f.Close()
			return nil, fmt.Errorf("another ship works in %s: stop that one, or set another data_dir", filepath.Dir(path))
		}
		if !told {
			log.Info("waiting for the ship that works in this data_dir to end")
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// shorten cuts a text for a line on a terminal.
func shorten(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-1], "") + "…"
}
