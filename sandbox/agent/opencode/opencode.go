// Package opencode drives OpenCode through the HTTP API of its server
// (`opencode serve`, version 1 of the API, measured with OpenCode 1.18.33).
//
// One server runs in each box and outlives the gateway. What is needed to find
// it again lies in the box, in the run folder:
//
//	/run/ship/opencode.json         which process it is, its password, what it
//	                                was started with
//	/run/ship/opencode-config.json  OpenCode's own settings
//	/run/ship/shelf.sh              puts the repository's .opencode aside
//
// Its memory (sessions, messages) lies below sandbox.HomeDir and lasts as long
// as the box. None of this is secret from the agent: it runs in the same box.
package opencode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"time"

	"ship/sandbox"
	"ship/sandbox/agent"
)

// DefaultPort is where the server listens inside the box.
const DefaultPort = 4096

const (
	recordPath = sandbox.RunDir + "/opencode.json"
	configPath = sandbox.RunDir + "/opencode-config.json"
)

// Driver starts OpenCode. The zero value is ready to use.
type Driver struct {
	// Port on the box's loopback; zero: DefaultPort.
	Port int
}

var _ agent.Driver = Driver{}

// Start puts the repository's own agent configuration on the shelf, and starts
// the server or finds the running one. A running one that was started with
// another setup is replaced if it is idle, and kept if it works.
func (d Driver) Start(ctx context.Context, box sandbox.Box, setup agent.Setup) (agent.Agent, error) {
	setup, err := complete(setup)
	if err != nil {
		return nil, err
	}
	if err := Shelve(ctx, box); err != nil {
		return nil, err
	}
	a := newHandle(box, setup, cmp.Or(d.Port, DefaultPort))
	if _, err := a.Revive(ctx); err != nil {
		return nil, fmt.Errorf("start opencode: %w", err)
	}
	return a, nil
}

var providerName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// complete fills in the defaults and refuses what cannot work.
func complete(s agent.Setup) (agent.Setup, error) {
	s.Broker = cmp.Or(s.Broker, sandbox.BrokerURL)
	s.Silence = cmp.Or(s.Silence, 2*time.Minute)
	if s.Instructions == nil {
		s.Instructions = []string{sandbox.RepoDir + "/AGENTS.md"}
	}
	if !path.IsAbs(s.Program) {
		return s, fmt.Errorf("set up opencode: program %q is not an absolute path", s.Program)
	}
	if len(s.Providers) == 0 || len(s.Providers[0].Models) == 0 {
		return s, errors.New("set up opencode: no model is configured")
	}
	for _, p := range s.Providers {
		if !providerName.MatchString(p.Name) {
			return s, fmt.Errorf("set up opencode: provider name %q has other characters "+
				"than letters, digits, dash and underscore", p.Name)
		}
	}
	return s, nil
}
