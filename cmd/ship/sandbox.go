package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ship/sandbox"
	"ship/sandbox/broker"
	"ship/sandbox/docker"
	"ship/sandbox/e2b"
	"ship/sandbox/local"
	"ship/sandbox/preview"
)

// opencodeVersion is the one that ship was measured with: its API is not
// promised to stay.
const opencodeVersion = "1.18.33"

// programInBox is where the agent's program is shown in a local box, and where
// a template has it.
const programInBox = "/opt/ship/opencode"

// brokerDir holds the broker's socket and nothing else: boxes see this folder.
func brokerDir(s Settings) string { return filepath.Join(s.DataDir, "broker") }

// boxes are what a provider of ours offers: with a look at a box that changes
// nothing about it.
type boxes interface {
	sandbox.Provider
	preview.Boxes
}

// openSandbox opens the provider that the settings name. A new provider is a
// folder below sandbox and a case here.
func openSandbox(ctx context.Context, s Settings, vault e2b.Vault, log *slog.Logger) (boxes, error) {
	switch s.Sandbox.Provider {
	case "local":
		return openLocal(ctx, s, log)
	case "docker":
		return openDocker(ctx, s, log)
	case "e2b":
		return openE2B(ctx, s, vault, log)
	default:
		return nil, fmt.Errorf("sandbox.provider: %q is not known; use local, docker or e2b", s.Sandbox.Provider)
	}
}

// openE2B asks E2B for our boxes, so that a wrong key is noticed at the start.
func openE2B(ctx context.Context, s Settings, vault e2b.Vault, log *slog.Logger) (boxes, error) {
	switch {
	case s.PublicURL == "":
		return nil, errors.New("public_url is missing: sandbox.provider e2b needs it, as boxes reach ship by it; set it to where this ship can be reached from the internet")
	case !strings.HasPrefix(s.PublicURL, "https://"):
		return nil, errors.New("public_url has to begin with https: boxes at E2B send their tokens there, over the internet")
	case s.Sandbox.E2B.APIKey.Empty():
		return nil, errors.New("sandbox.e2b.api_key is missing: take one from the dashboard of the E2B team")
	}
	program, err := guestProgram(s)
	if err != nil {
		return nil, err
	}
	s.Sandbox.E2B.Guest = program
	// No box at E2B comes to the socket in there, and yet a worker opens it.
	if err := openBrokerDir(s); err != nil {
		return nil, fmt.Errorf("make the broker's folder: %w", err)
	}
	key, err := broker.LoadKey(filepath.Join(s.DataDir, "broker.key"))
	if err != nil {
		return nil, err
	}
	config := e2b.Config{
		Settings: s.Sandbox.E2B, PublicURL: s.PublicURL, Key: key, Vault: vault,
		Logger: log.With("part", "sandbox"),
	}
	faultE2B(&config)
	p, err := e2b.New(config)
	if err != nil {
		return nil, err
	}
	return p, p.Check(ctx)
}

// guestProgram is what runs as the guest at E2B.
func guestProgram(s Settings) (string, error) {
	program := s.Sandbox.E2B.Guest
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("find ship's own program: %w", err)
		}
		program = self
	}
	return program, e2b.CheckProgram(program)
}

// openDocker asks the engine whether it can make our boxes. The agent's program
// is the image's own unless one is set.
func openDocker(ctx context.Context, s Settings, log *slog.Logger) (*docker.Provider, error) {
	program := s.Sandbox.Docker.Guest
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find ship's own program: %w", err)
		}
		program = self
	}
	if err := docker.CheckProgram(program); err != nil {
		return nil, err
	}
	s.Sandbox.Docker.Guest = program
	var binds []docker.Bind
	if s.Agent.OpenCode != "" {
		agent, err := findOpenCode(s.Agent.OpenCode)
		if err != nil {
			return nil, err
		}
		binds = []docker.Bind{{Host: agent, Box: programInBox}}
	}
	if err := openBrokerDir(s); err != nil {
		return nil, fmt.Errorf("make the broker's folder: %w", err)
	}
	p, err := docker.New(docker.Config{
		Settings: s.Sandbox.Docker, Dir: filepath.Join(s.DataDir, "containers"),
		Broker: brokerDir(s), Binds: binds, Logger: log.With("part", "sandbox"),
	})
	if err != nil {
		return nil, err
	}
	return p, p.Check(ctx)
}

// openBrokerDir makes the broker's folder. When ship is root, boxes are another
// user, who may then pass through it but not change it.
func openBrokerDir(s Settings) error {
	mode := os.FileMode(0o700)
	if os.Getuid() == 0 {
		mode = 0o711
	}
	dir := brokerDir(s)
	return errors.Join(os.MkdirAll(dir, mode), os.Chmod(dir, mode))
}

func openLocal(ctx context.Context, s Settings, log *slog.Logger) (boxes, error) {
	program, err := findOpenCode(s.Agent.OpenCode)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(brokerDir(s), 0o700); err != nil {
		return nil, fmt.Errorf("make the broker's folder: %w", err)
	}
	p, err := local.New(local.Config{
		Dir: filepath.Join(s.DataDir, "boxes"), Isolation: s.Sandbox.Local.Isolation,
		Broker: brokerDir(s), Path: toolPath(os.Getenv("PATH")),
		Binds:  []local.Bind{{Host: program, Box: programInBox}},
		Limits: local.Limits{Memory: int64(s.Sandbox.Local.Memory), PIDs: int64(s.Sandbox.Local.PIDs)},
		Logger: log.With("part", "sandbox"),
	})
	if err != nil {
		return nil, err
	}
	return p, p.Check(ctx)
}

// findOpenCode returns the agent's program: the one that is set, the one of a
// checkout of ship, or the one on the PATH.
func findOpenCode(set string) (string, error) {
	candidates := []string{set}
	if set == "" {
		candidates = []string{filepath.Join(".tools", "node_modules", "opencode-ai", "bin", "opencode.exe")}
		if found, err := exec.LookPath("opencode"); err == nil {
			candidates = append(candidates, found)
		}
	}
	for _, c := range candidates {
		real, err := filepath.EvalSymlinks(c)
		if err != nil {
			continue
		}
		if real, err = filepath.Abs(real); err == nil {
			return real, nil
		}
	}
	if set != "" {
		return "", fmt.Errorf("agent.opencode: there is no program at %s", set)
	}
	return "", errors.New("OpenCode is not installed: run `npm install -g opencode-ai@" + opencodeVersion + "`, or set agent.opencode to its path")
}

// toolPath is the part of this machine's PATH that boxes can see, so that the
// agent finds the tools that the operator has installed.
func toolPath(path string) string {
	var keep []string
	for _, dir := range filepath.SplitList(path) {
		if strings.HasPrefix(dir, "/usr/") || dir == "/bin" || dir == "/sbin" {
			keep = append(keep, dir)
		}
	}
	return strings.Join(keep, string(filepath.ListSeparator))
}
