package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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

// credentials adapts a code host to what the broker asks.
type credentials struct{ host *integrations.CodeHost }

func (c credentials) GitCredential(ctx context.Context, key string) (user, password string, err error) {
	return c.host.Credential(ctx, key)
}

// ledger adapts a store to the broker's own words.
type ledger struct{ session.Ledger }

func (l ledger) Spend(ctx context.Context, account string, u broker.Usage) (broker.Usage, error) {
	account = strings.ReplaceAll(account, "!", ":") // not among the characters that a store takes
	total, err := l.Ledger.Spend(ctx, account, session.Usage(u))
	return broker.Usage(total), err
}

func newBroker(p parts, m *metrics) (*broker.Broker, *broker.Signer, error) {
	host, err := codeHost(p.platforms)
	if err != nil {
		return nil, nil, err
	}
	key, err := broker.LoadKey(filepath.Join(p.settings.DataDir, "broker.key"))
	if err != nil {
		return nil, nil, err
	}
	signer, err := broker.NewSigner(key)
	if err != nil {
		return nil, nil, err
	}
	egress, err := p.settings.Sandbox.egress(m)
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox.allow_hosts: %w", err)
	}
	b, err := broker.New(broker.Config{
		Signer: signer, Ledger: ledger{p.store}, Providers: p.settings.brokerProviders(), BoxUSDPerHour: p.settings.Sandbox.USDPerHour,
		GitURL: host.WebURL, Credentials: credentials{host}, Egress: egress, Observer: m, Log: p.log.With("part", "broker"),
	})
	return b, signer, err
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
	worker, err := newWorker(ctx, p, boxes, a.broker, o.signer)
	if err != nil {
		return err
	}
	if err := exhibit(p.settings, boxes, worker, o.mounts); err != nil {
		return err
	}
	performers := map[string]session.Performer{session.Worker: worker}
	for _, platform := range p.platforms {
		performers[platform.Name] = throttle{Performer: teller{platform.Performer, p.store, p.settings.Limits, time.Now}, ledger: p.store, perMinute: p.settings.Limits.RequestsPerMinute, now: time.Now}
	}
	redact := turn.Redactor(p.settings.secrets())
	for name, performer := range performers {
		performers[name] = discreet{performer, redact}
	}
	a.dispatcher = &session.Dispatcher{Max: 10_000, Engine: &session.Engine{
		Store: p.store, Inbox: p.store, Performers: performers, Policy: p.settings.policy(p.platforms), Log: p.log, Hook: p.hook, Observer: p.told.observer(),
	}}
	p.told.watchWorker(a.dispatcher, worker)
	a.chores = append(a.chores, func(ctx context.Context) error {
		return worker.Reap(ctx, sessionsOf{p.store})
	})
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
	place, err := placeOf(s)
	if err != nil {
		return nil, err
	}
	return turn.New(turn.Config{
		Boxes: boxes, Place: place, Rounds: faultRounds(), Agent: opencode.Driver{}, Restore: opencode.Unshelve, Tokens: signer, Broker: b,
		Setup:      agent.Setup{Program: programInBox, Providers: s.agentProviders(), Env: s.Sandbox.agentEnv()},
		Transcript: p.store, Redact: turn.Redactor(s.secrets()), Secrets: s.secrets(), Slots: s.Sandbox.Max, PerPerson: s.Limits.SessionsPerUser,
		Life:  s.boxPolicy(),
		Calls: s.Limits.ModelCalls, PersonDayUSD: s.Limits.PersonDayUSD, DayUSD: s.Limits.DayUSD,
		Hosts:   s.Sandbox.reachable(),
		Limits:  agent.Limits{Stall: time.Duration(s.Limits.Stall), Retries: s.Limits.Retries},
		Author:  identity(ctx, host, p.log),
		Message: bot.CommitMessage,
		Log:     p.log,
	}), nil
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

// How often missed deliveries are looked for, and how far back each look goes
// beyond the one before.
const (
	recoverEvery   = 7 * time.Minute
	recoverOverlap = 2 * time.Hour
	// recoverAgain is how soon a look that failed is repeated, and then later
	// each time. It goes back as far as the first did.
	recoverAgain = 5 * time.Second
)

// recoverMissed fetches what was delivered while ship was down, at the start
// and every few minutes. What was accepted before is a duplicate then.
func recoverMissed(ctx context.Context, p integrations.Platform, log *slog.Logger) error {
	if p.Recover == nil {
		return nil
	}
	since, again := time.Now().Add(-3*24*time.Hour), recoverAgain
	for {
		began, next := time.Now(), recoverEvery
		asked, err := p.Recover(ctx, since)
		if asked > 0 {
			log.Info("missed deliveries are asked for again", "platform", p.Name, "count", asked)
		}
		switch {
		case err == nil:
			since, again = began.Add(-recoverOverlap), recoverAgain
		case ctx.Err() == nil:
			log.Warn("look for missed deliveries", "platform", p.Name, "err", err)
			next, again = again, min(2*again, recoverEvery)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		}
	}
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

// runDoor serves the broker on the unix socket that local boxes see.
func (a *app) runDoor(ctx context.Context) error {
	if a.role == roleIntake {
		return nil
	}
	if err := os.Remove(a.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("clear the broker's socket: %w", err)
	}
	listener, err := net.Listen("unix", a.socket)
	if err != nil {
		return fmt.Errorf("open the broker's socket: %w", err)
	}
	if a.foreign { // who comes here at all is up to the folder
		if err := os.Chmod(a.socket, 0o666); err != nil {
			return errors.Join(fmt.Errorf("open the broker's socket to boxes: %w", err), listener.Close())
		}
	}
	server := &http.Server{
		Handler: a.broker, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	go func() {
		<-ctx.Done()
		_ = server.Close() // agents repeat what is cut
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the broker: %w", err)
	}
	return nil
}
