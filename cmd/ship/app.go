package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"ship/bot"
	"ship/integrations"
	"ship/sandbox"
	"ship/sandbox/agent"
	"ship/sandbox/agent/opencode"
	"ship/sandbox/broker"
	"ship/sandbox/e2b"
	"ship/session"
	"ship/session/turn"
)

// backend is what both stores are.
type backend interface {
	session.Inbox
	session.Store
	session.Register
	session.Archive
	session.Graveyard
	session.Transcript
	session.Ledger
}

// role says which half of ship a process is.
type role string

const (
	roleAll    role = "all"
	roleIntake role = "intake"
	roleWorker role = "worker"
)

// parts are what an app is wired from, opened already.
type parts struct {
	settings  Settings
	store     backend
	ready     func(context.Context) error
	platforms []integrations.Platform
	// vault keeps what boxes elsewhere are reached with; local ones need none.
	vault e2b.Vault
	// places for boxes are shared by all workers; nil: this process is alone.
	places session.Places
	// told is what the process tells of itself.
	told *telemetry
	log  *slog.Logger
	// hook is called at every point where a crash would be interesting.
	hook func(point string)
	// disturb makes boxes fail; nil: they are left alone.
	disturb *disturbance
}

// app is everything that one process runs.
type app struct {
	server     *bot.Server
	dispatcher *session.Dispatcher
	// chores run beside the rest until their context ends.
	chores []func(context.Context) error
	broker *broker.Broker
	socket string
	// foreign: boxes may be another user than ship.
	foreign bool
	role    role
	log     *slog.Logger
}

// wire puts an app together. It listens nowhere yet.
func wire(ctx context.Context, p parts, r role) (*app, error) {
	b, signer, err := newBroker(p, newMetrics(p.told.registry))
	if err != nil {
		return nil, err
	}
	a := &app{
		broker: b, role: r, log: p.log, socket: filepath.Join(brokerDir(p.settings), "broker.sock"),
		foreign: p.settings.Sandbox.Provider == "docker",
	}
	front := bot.Config{
		Inbox: p.store, Receivers: map[string]bot.Receiver{}, Ready: p.ready, Metrics: p.told.front, Tracer: p.told.tracer, Logger: p.log,
		Mounts: map[string]http.Handler{"/broker/": b},
	}
	if r != roleIntake {
		if err := a.employ(ctx, p, office{signer, front.Mounts}); err != nil {
			return nil, err
		}
	}
	if r != roleWorker {
		a.takeIn(p, front)
	}
	a.server = bot.NewServer(front)
	return a, nil
}

// takeIn adds what hears the platforms, over HTTP and otherwise.
func (a *app) takeIn(p parts, front bot.Config) {
	for _, platform := range p.platforms {
		if platform.Receiver != nil {
			front.Receivers[platform.Name] = platform.Receiver
		}
		if platform.Run != nil {
			a.chores = append(a.chores, platform.Run)
		}
		maps.Copy(front.Mounts, platform.Pages)
		a.chores = append(a.chores, func(ctx context.Context) error { return recoverMissed(ctx, platform, p.log) })
	}
}

// codeHost is the platform that hosts repositories.
func codeHost(platforms []integrations.Platform) (*integrations.CodeHost, error) {
	for _, p := range platforms {
		if p.Code != nil {
			return p.Code, nil
		}
	}
	return nil, errors.New("no platform that hosts repositories is set up: fill in the section github")
}

// office is what workers find when they begin.
type office struct {
	signer *broker.Signer
	// mounts take what is served for them.
	mounts map[string]http.Handler
}

// employ adds what works on sessions: the dispatcher and what it needs.
func (a *app) employ(ctx context.Context, p parts, o office) error {
	boxes, err := openSandbox(ctx, p.settings, p.vault, p.log)
	if err != nil {
		return err
	}
	boxes = watchedBoxes{p.disturb.before(boxes, p.log), p.told.boxes}
	if err := countable(ctx, p.places); err != nil {
		return err
	}
	worker, err := newWorker(ctx, p, boxes, a.broker, o.signer)
	if err != nil {
		return err
	}
	if err := exhibit(p.settings, boxes, worker, o.mounts); err != nil {
		return err
	}
	a.dispatcher = &session.Dispatcher{Max: 10_000, Engine: &session.Engine{
		Store: p.store, Inbox: p.store, Performers: performers(p, worker), Policy: p.settings.policy(p.platforms), Log: p.log, Hook: p.hook, Observer: p.told.observer(),
	}}
	p.told.watchWorker(a.dispatcher, worker)
	a.chores = append(a.chores, func(ctx context.Context) error {
		return worker.Reap(ctx, sessionsOf{p.store})
	}, func(ctx context.Context) error { return worker.Heed(ctx, p.store.Wakes(ctx)) })
	return nil
}

// countable: without the right to count places, every turn would wait for good.
func countable(ctx context.Context, places session.Places) error {
	if places == nil {
		return nil
	}
	if _, err := places.Release(ctx, "", 0); err != nil { // nobody's
		return fmt.Errorf("count the places for boxes (redis.url needs a user with the rights in deploy/redis/users.acl): %w", err)
	}
	return nil
}

// sessionsOf adapts a store to what boxes are held against.
type sessionsOf struct{ backend }

func (r sessionsOf) State(ctx context.Context, id session.ID) (session.State, error) {
	return peek(ctx, r.backend, id)
}

func newWorker(ctx context.Context, p parts, boxes sandbox.Provider, b *broker.Broker, signer *broker.Signer) (*turn.Worker, error) {
	host, err := codeHost(p.platforms)
	if err != nil {
		return nil, err
	}
	s := p.settings
	site, err := siteOf(s)
	if err != nil {
		return nil, err
	}
	return turn.New(turn.Config{
		Boxes: boxes, Site: site, Rounds: faultRounds(), Agent: opencode.Driver{}, Restore: opencode.Unshelve, Tokens: signer, Broker: b,
		Setup:      agent.Setup{Program: programInBox, Providers: s.agentProviders(), Env: s.Sandbox.agentEnv()},
		Transcript: p.store, Redact: turn.Redactor(s.secrets()), Secrets: s.secrets(),
		Places: p.places, Slots: s.Sandbox.Max, PerPerson: s.Limits.SessionsPerUser, Total: s.Sandbox.Total,
		Life:  s.boxPolicy(),
		Calls: s.Limits.ModelCalls, PersonDayUSD: s.Limits.PersonDayUSD, DayUSD: s.Limits.DayUSD,
		Hosts:   s.Sandbox.reachable(),
		Limits:  agent.Limits{Stall: time.Duration(s.Limits.Stall), Retries: s.Limits.Retries},
		Author:  identity(ctx, host, p.log),
		Message: bot.CommitMessage,
		Log:     p.log,
	}), nil
}

// performers are who does what is decided, by their names. What platforms are
// asked is counted, and told what was spent; no failure of any says a secret.
func performers(p parts, worker *turn.Worker) map[string]session.Performer {
	redact := turn.Redactor(p.settings.secrets())
	all := map[string]session.Performer{session.Worker: discreet{worker, redact}}
	for _, platform := range p.platforms {
		told := teller{platform.Performer, p.store, p.settings.Limits, time.Now}
		counted := throttle{Performer: told, ledger: p.store, perMinute: p.settings.Limits.RequestsPerMinute, now: time.Now}
		all[platform.Name] = discreet{counted, redact}
	}
	return all
}

// identity asks the code host whom commits are made by. A host that does not
// answer at the start is no reason not to start.
func identity(ctx context.Context, host *integrations.CodeHost, log *slog.Logger) turn.Identity {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	name, email, err := host.Identity(ctx)
	if err != nil {
		log.Warn("the code host does not say who we are, so commits are by ship[bot]", "err", err)
		return turn.Identity{Name: "ship[bot]", Email: "ship[bot]@users.noreply.github.com"}
	}
	return turn.Identity{Name: name, Email: email}
}

// run serves until ctx ends, and then stops in order: no new deliveries, no
// new sessions, leases released, and the door of the boxes last.
func (a *app) run(ctx context.Context, listener net.Listener) error {
	doorCtx, closeDoor := context.WithCancelCause(context.WithoutCancel(ctx)) // outlives the dispatcher
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.server.Run(ctx, listener) })
	group.Go(func() error { return a.runDoor(doorCtx) })
	group.Go(func() error {
		defer closeDoor(session.ErrShutdown)
		if a.dispatcher == nil {
			<-ctx.Done()
			return nil
		}
		return a.dispatcher.Run(ctx)
	})
	for _, chore := range a.chores {
		group.Go(func() error { return chore(ctx) })
	}
	return group.Wait()
}
