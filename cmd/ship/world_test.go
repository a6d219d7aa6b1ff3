package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ship/integrations/github/githubtest"
	"ship/integrations/github/githubtest/openapi"
	linearschema "ship/integrations/linear/lineartest/schema"
	slackschema "ship/integrations/slack/slacktest/schema"
	"ship/sandbox/local"
)

// patience is how long a test waits for what has to come. It says nothing about
// how fast that is, and is only ever used up by a failure.
const patience = 3 * time.Minute

// crowded is how many times slower than a platform demands ship may be where
// dozens of tests share two cores; how fast it is alone, make load tells.
const crowded = 10

// validator checks every request and answer against GitHub's own description
// of its API where that is at hand; else nothing is checked.
func validator(t testing.TB) githubtest.Validator {
	t.Helper()
	v, err := descriptions.github()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// descriptions are what platforms publish of themselves. To read one takes a
// second, so it is read once for all tests.
var descriptions = struct {
	github func() (*openapi.Validator, error)
	linear func() (*linearschema.Validator, error)
	slack  func() (*slackschema.Validator, error)
}{
	sync.OnceValues(func() (*openapi.Validator, error) { return openapi.Load(published + "github-openapi-trim.json") }),
	sync.OnceValues(func() (*linearschema.Validator, error) { return linearschema.Load(published + "linear-schema.graphql") }),
	sync.OnceValues(func() (*slackschema.Validator, error) {
		return slackschema.Load(published + "slack-blockkit.schema.json")
	}),
}

// published is where they lie, if they are at hand.
const published = "../../../shared/data/"

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
