package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"ship/config"
	"ship/integrations"
	"ship/integrations/github"
	"ship/integrations/github/githubtest"
	"ship/sandbox/agent/modeltest"
	"ship/session"
	"ship/session/memory"
)

const (
	demoRepo   = "acme/prices"
	demoPerson = "ada"
	demoModel  = "stand-in/scripted"
	demoSecret = "demo-webhook-secret"
	demoLimit  = 10 * time.Minute
)

func demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch a request become a pull request, without any account",
		Long: `Runs the whole road on this machine: an issue is assigned in a stand-in for
Linear, whose signed webhook sets a real coding agent (OpenCode) to work in an
isolated box; a real git push to a stand-in for GitHub, a draft pull request and
a settled check follow, and the session in Linear tells of it all.

With --from slack it begins with a mention in a stand-in for Slack, whose thread
tells of it.

The model is a script that says so, unless --model names one that the settings
have (ship.yaml or SHIP_MODELS_…); then the same run asks a real model.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.out = cmd.OutOrStdout()
			o.color = isTerminal(o.out) && os.Getenv("NO_COLOR") == ""
			return demo(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.from, "from", "linear", "where the request is made: linear or slack")
	cmd.Flags().StringVar(&o.model, "model", "", "a model of the settings, as PROVIDER/NAME")
	cmd.Flags().StringVar(&o.config, "config", "", "settings file, for --model")
	cmd.Flags().BoolVar(&o.verbose, "verbose", false, "show the log as well")
	cmd.Flags().StringVar(&o.isolation, "isolation", "", "how to isolate the box: bubblewrap, or none on a machine that is a sandbox itself")
	return cmd
}

type demoOptions struct {
	from, model, config, isolation string
	verbose, color                 bool
	out                            io.Writer
}

// stage is what the demo runs on: everything that is a stand-in.
type stage struct {
	demoOptions
	dir    string
	host   *githubtest.Server
	scene  scene
	model  *http.Server
	script *modeltest.Server
	// settings are those of the ship that runs in it.
	settings Settings
}

// scene is where the request is made: a stand-in for a platform.
type scene struct {
	// where is the stand-in, for people.
	where string
	// ask makes the request and tells the ship at an address of it.
	ask func(ctx context.Context, url string) error
	// listen shows what was said since the last time, and ending how it looks
	// there in the end.
	listen, ending func()
	close          func() error
}

// scenes are where a request can be made. Each sets up who asks, and adds the
// platform to the settings.
var scenes = map[string]func(*stage) (scene, error){"linear": inLinear, "slack": inSlack}

func demo(ctx context.Context, o demoOptions) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, errors.New("the demo took too long"))
	defer cancel()
	s, err := setStage(o)
	if s != nil {
		defer func() { err = errors.Join(err, s.clear(context.WithoutCancel(ctx))) }()
	}
	if err != nil {
		return err
	}
	return s.play(ctx)
}

func setStage(o demoOptions) (*stage, error) {
	open, ok := scenes[o.from]
	if !ok {
		return nil, fmt.Errorf("--from is linear or slack, not %q", o.from)
	}
	dir, err := os.MkdirTemp("", "ship-demo-") // short, for the sockets in it
	if err != nil {
		return nil, fmt.Errorf("make a folder for the demo: %w", err)
	}
	s := &stage{demoOptions: o, dir: dir}
	if s.host, err = githubtest.New(githubtest.Options{}); err != nil {
		return s, err
	}
	if err := s.host.CreateRepo(demoRepo, sampleFiles()); err != nil {
		return s, err
	}
	s.host.SetPermission(demoRepo, demoPerson, "write")
	if err := s.configure(); err != nil {
		return s, err
	}
	s.scene, err = open(s)
	return s, err
}

// configure makes the settings of the ship that runs on the stage.
func (s *stage) configure() error {
	if err := s.chooseModel(); err != nil {
		return err
	}
	s.settings.DataDir = filepath.Join(s.dir, "data")
	s.settings.Sandbox.Provider, s.settings.Sandbox.Max = "local", 1
	if s.isolation != "" {
		s.settings.Sandbox.Local.Isolation = s.isolation
	}
	s.settings.GitHub = github.Settings{
		AppID: 4242, PrivateKey: config.NewSecret(s.host.PrivateKey()), WebhookSecret: config.NewSecrets(demoSecret),
		APIURL: s.host.APIURL(), WebURL: s.host.URL,
	}
	s.settings.Access.People = map[string]string{demoPerson + "@acme.example": demoPerson}
	return os.MkdirAll(s.settings.DataDir, 0o700)
}

// chooseModel takes a model of the user's own settings, or the script.
func (s *stage) chooseModel() error {
	var err error
	if s.settings, err = readSettings(s.config, os.Environ()); err != nil {
		return err
	}
	if s.demoOptions.model != "" {
		s.settings.Agent.Model = s.demoOptions.model
		if !slices.Contains(s.settings.modelNames(), s.demoOptions.model) {
			return fmt.Errorf("--model %s is not in the settings; there are: %s", s.demoOptions.model, strings.Join(s.settings.modelNames(), ", "))
		}
		return nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("start the scripted model: %w", err)
	}
	s.script = modeltest.New(sampleScript())
	s.model = &http.Server{Handler: s.script, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.model.Serve(listener) }() // ends with clear
	s.settings.Agent.Model = demoModel
	s.settings.Models = map[string]ModelProvider{"stand-in": {
		BaseURL: "http://" + listener.Addr().String() + "/v1", APIKey: config.NewSecret("no-key-needed"),
		Models: map[string]Price{"scripted": {}},
	}}
	return nil
}

// clear ends everything and removes what it left.
func (s *stage) clear(ctx context.Context) error {
	var errs []error
	if s.settings.DataDir != "" {
		errs = append(errs, s.destroyBoxes(ctx))
	}
	if s.model != nil {
		errs = append(errs, s.model.Close())
	}
	if s.scene.close != nil {
		errs = append(errs, s.scene.close())
	}
	if s.host != nil {
		errs = append(errs, s.host.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

func (s *stage) destroyBoxes(ctx context.Context) error {
	boxes, err := openSandbox(ctx, s.settings, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil // then there was never a box
	}
	all, err := boxes.List(ctx, nil)
	for _, b := range all {
		err = errors.Join(err, boxes.Destroy(ctx, b.ID))
	}
	return err
}

// play runs ship on the stage, sends the request, and shows what follows.
func (s *stage) play(ctx context.Context) error {
	log := slog.New(slog.DiscardHandler)
	if s.verbose {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	store := memory.New()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	vault := &memory.Vault{}
	told := newTelemetry()
	platforms, err := integrations.Open(s.settings.Settings, integrations.Deps{
		Inbox: store, Archive: store, Heard: told.front.Heard, Log: log, People: s.settings.Access.PeopleSettings,
		Shared: integrations.Shared{Vault: vault, Locker: vault, Quota: &memory.Quota{}},
	})
	if err != nil {
		return err
	}
	a, err := wire(ctx, parts{
		settings: s.settings, store: store, platforms: platforms, told: told, log: log,
		ready: func(context.Context) error { return nil },
	}, roleAll)
	if err != nil {
		return err
	}
	s.opening()
	running, stop := context.WithCancelCause(ctx)
	group, running := errgroup.WithContext(running)
	group.Go(func() error { return a.run(running, listener) })
	group.Go(func() error {
		defer stop(session.ErrShutdown)
		return s.tell(running, store, "http://"+listener.Addr().String())
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return s.ending()
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
