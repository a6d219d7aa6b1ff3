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
	"time"

	"ship/integrations"
	"ship/sandbox/broker"
	"ship/session"
)

// credentials adapts a code host to what the broker asks.
type credentials struct{ host *integrations.CodeHost }

// GitCredential implements broker.Credentials.
func (c credentials) GitCredential(ctx context.Context, key string) (user, password string, err error) {
	return c.host.Credential(ctx, key)
}

// ledger adapts a store to the broker's own words.
type ledger struct{ session.Ledger }

// Spend implements broker.Ledger.
func (l ledger) Spend(ctx context.Context, account string, u broker.Usage) (broker.Usage, error) {
	total, err := l.Ledger.Spend(ctx, storeAccount(account), session.Usage(u))
	return broker.Usage(total), err
}

// Totals implements broker.Ledger.
func (l ledger) Totals(ctx context.Context, accounts ...string) ([]broker.Usage, error) {
	var names []string
	for _, account := range accounts {
		names = append(names, storeAccount(account))
	}
	all, err := l.Ledger.Totals(ctx, names...)
	var totals []broker.Usage
	for _, u := range all {
		totals = append(totals, broker.Usage(u))
	}
	return totals, err
}

// storeAccount names an account of the broker's without the exclamation mark,
// which is not among the characters that a store takes.
func storeAccount(account string) string { return strings.ReplaceAll(account, "!", ":") }

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
