package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.yaml.in/yaml/v3"

	"ship/config"
)

func loadSettings(path string, environ []string) (Settings, error) {
	var s Settings
	s.Listen, s.DataDir = "127.0.0.1:8080", "/var/lib/ship"
	s.Sandbox.Provider, s.Sandbox.Max, s.Sandbox.IdleDestroy = "local", 2, time.Hour
	s.Limits.TurnTimeout, s.Limits.Stall, s.Limits.Retries = time.Hour, 5*time.Minute, 5
	s.Limits.ModelCalls, s.Limits.BudgetUSD, s.Limits.MaxBudgetUSD = 200, 5, 100
	if path == "" {
		path = os.Getenv("SHIP_CONFIG")
	}
	if path == "" {
		return s, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("read settings: %w", err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return s, fmt.Errorf("read settings: %w", err)
	}
	return s, nil
}

func newSecret(s string) config.Secret { return config.NewSecret(s) }

func (s Settings) webhookSecrets() []string { return s.GitHub.WebhookSecret }
