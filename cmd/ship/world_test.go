package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ship/integrations/github/githubtest"
	"ship/integrations/github/githubtest/openapi"
	"ship/sandbox/local"
)

// patience is how long a test waits for what has to come. It says nothing about
// how fast that is, and is only ever used up by a failure.
const patience = 3 * time.Minute

// crowded is how many times slower than a platform demands ship may be where
// sixteen tests share two cores; how fast it is alone, make load tells.
const crowded = 10

// validator checks every request and answer against GitHub's own description
// of its API where that is at hand; else nothing is checked.
func validator(t testing.TB) githubtest.Validator {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "data", "github-openapi-trim.json")
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	v, err := openapi.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// killBoxes ends what a ship that was killed has left.
func killBoxes(t testing.TB, dataDir string) {
	t.Helper()
	p, err := local.New(local.Config{Dir: filepath.Join(dataDir, "boxes"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	all, err := p.List(ctx, nil)
	if err != nil {
		t.Error(err)
	}
	for _, b := range all {
		if err := p.Destroy(ctx, b.ID); err != nil {
			t.Error(err)
		}
	}
}
