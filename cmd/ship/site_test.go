package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestASiteIsNamedOnce, whoever asks first, and each site otherwise.
func TestASiteIsNamedOnce(t *testing.T) {
	t.Parallel()
	s := Settings{DataDir: t.TempDir()}
	s.Sandbox.Provider = "local"
	names := make([]string, 8)
	var group sync.WaitGroup
	for i := range names {
		group.Go(func() {
			var err error
			if names[i], err = siteOf(s); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, name := range names {
		if name != names[0] || !strings.HasPrefix(name, "local.") || len(name) < 12 {
			t.Errorf("the site is %q, and %q", names[0], name)
		}
	}
	if left, err := filepath.Glob(filepath.Join(s.DataDir, "*")); err != nil || len(left) != 1 {
		t.Errorf("in the folder are %v, %v", left, err)
	}
	docker, elsewhere := s, s
	docker.Sandbox.Provider, elsewhere.DataDir = "docker", t.TempDir()
	for _, other := range []Settings{docker, elsewhere} {
		if name, err := siteOf(other); err != nil || name == names[0] {
			t.Errorf("another site is %q, %v", name, err)
		}
	}
}

// TestASiteAtE2B is that of all who share its boxes.
func TestASiteAtE2B(t *testing.T) {
	t.Parallel()
	var names []string
	for _, key := range []string{strings.Repeat("a", 32), strings.Repeat("a", 32), strings.Repeat("b", 32)} {
		s := Settings{DataDir: t.TempDir()}
		s.Sandbox.Provider = "e2b"
		if err := os.WriteFile(filepath.Join(s.DataDir, "broker.key"), []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
		name, err := siteOf(s)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if names[0] != names[1] || names[0] == names[2] || strings.Contains(names[0], "aaaa") {
		t.Errorf("the sites are %v", names)
	}
}
