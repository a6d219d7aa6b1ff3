package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"strings"
	"testing"
)

// pkg is what the go command says of a package.
type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// TestImports holds the layers apart: the domain knows no platform, a platform
// knows no other, and each foreign library has one home.
func TestImports(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		dir := strings.TrimPrefix(p.ImportPath, "ship/")
		for _, imported := range p.Imports {
			if why := forbidden(dir, imported); why != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, why)
			}
		}
	}
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "ship/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// forbidden says why a folder may not import something; empty: it may.
func forbidden(dir, imported string) string {
	top, _, _ := strings.Cut(dir, "/")
	ours, isOurs := strings.CutPrefix(imported, "ship/")
	if !isOurs {
		return foreign(dir, imported)
	}
	its, _, _ := strings.Cut(ours, "/")
	switch {
	case top == "config" || top == "graphql":
		return "it knows nothing of ours"
	case top == "session" && (its == "bot" || its == "integrations" || its == "graphql"):
		return "the domain knows no platform"
	case top == "sandbox" && its != "sandbox" && its != "config":
		return "a sandbox knows nothing of sessions"
	case top == "bot" && (its == "integrations" || its == "sandbox" || its == "graphql"):
		return "the front door knows platforms by their interface only"
	case top == "integrations" && its == "integrations" && !sameIntegration(dir, ours):
		return "one integration does not know another"
	case top == "integrations" && its == "sandbox":
		return "an integration knows no box"
	}
	return ""
}

func sameIntegration(dir, other string) bool {
	if dir == "integrations" {
		return true // the list
	}
	return strings.Split(dir, "/")[1] == strings.Split(other, "/")[1]
}

// homes are where foreign libraries may be imported.
var homes = map[string][]string{
	"github.com/google/go-github":       {"integrations/github"},
	"github.com/bradleyfalzon":          {"integrations/github"},
	"github.com/slack-go/slack":         {"integrations/slack"},
	"github.com/gorilla/websocket":      {"integrations/slack"},
	"github.com/Khan/genqlient/graphql": {"integrations", "graphql"},
	"github.com/redis/go-redis":         {"session/redis"},
	"github.com/moby/moby":              {"sandbox/docker"},
	"github.com/containerd":             {"sandbox/docker"},
	"github.com/prometheus":             {"cmd/ship", "bot"},
	"go.opentelemetry.io":               {"cmd/ship", "bot"},
}

func foreign(dir, imported string) string {
	for library, allowed := range homes {
		if !strings.HasPrefix(imported, library) {
			continue
		}
		for _, home := range allowed {
			if dir == home || strings.HasPrefix(dir, home+"/") {
				return ""
			}
		}
		return "it belongs to " + path.Join(allowed[0])
	}
	return ""
}

func TestForbidden(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dir, imported string
		allowed       bool
	}{
		{"session", "ship/sandbox", true},
		{"session/turn", "ship/sandbox/broker", true},
		{"session", "ship/bot", false},
		{"sandbox/local", "ship/session", false},
		{"integrations/github", "ship/integrations/github/githubtest", true},
		{"integrations/linear", "ship/integrations/github", false},
		{"session/redis", "github.com/redis/go-redis/v9", true},
		{"bot", "github.com/redis/go-redis/v9", false},
		{"graphql/github", "github.com/Khan/genqlient/graphql", true},
		{"config", "ship/session", false},
	} {
		if got := forbidden(c.dir, c.imported) == ""; got != c.allowed {
			t.Errorf("%s importing %s: allowed %t, want %t", c.dir, c.imported, got, c.allowed)
		}
	}
}
