// Package docker makes boxes with the container engine of this machine: for
// teams with one machine and without KVM.
//
// Each box is one container without a network, without any capability and with
// a read-only system. What it shares with ship is a folder below Config.Dir,
// named by the box's id:
//
//	box.json    what it is, beyond the labels of its container
//	host/       what ship tells the guest: when the box expires (read-only inside)
//	etc/        who the box's user is (read-only inside)
//	door/       the socket of its guest
//	work/       /work in the box
//	run/        /run/ship in the box
//
// The engine's word on whether a box lives is the truth. The name of a container
// is derived from the box's key, so that the engine itself sees to it that there
// are no two of one key. Changes to a folder are made under a lock on it, so
// several processes may use the same Dir.
package docker

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/moby/moby/client"

	"ship/sandbox"
)

// Bind shows a file or a folder of this machine in every box, read-only.
type Bind struct {
	Host, Box string
}

// Config says where boxes live and what surrounds them.
type Config struct {
	Settings
	// Dir holds the boxes' folders. It is made if it is not there.
	Dir string
	// Broker is the folder that holds broker.sock. Empty: boxes have no broker.
	Broker string
	// Binds are shown in every box.
	Binds  []Bind
	Logger *slog.Logger
}

// Provider is a sandbox.Provider. It starts no goroutine.
type Provider struct {
	cfg    Config
	engine *client.Client
	// gateway tells our containers from those of others on the same engine.
	gateway string
	// patience is how long a guest may take to serve.
	patience time.Duration
	// checked is the result of a check that went well.
	checked atomic.Pointer[ability]
}

var _ sandbox.Provider = (*Provider)(nil)

// New checks the configuration and makes the folder. Whether the engine can make
// a box is for Check to say; Create asks it as well.
func New(cfg Config) (*Provider, error) {
	cfg, err := complete(cfg)
	if err != nil {
		return nil, fmt.Errorf("docker sandbox: %w", err)
	}
	engine, err := connect(cfg.Host)
	if err != nil {
		return nil, fmt.Errorf("docker sandbox: %w", err)
	}
	sum := sha256.Sum256([]byte(cfg.Dir))
	return &Provider{cfg: cfg, engine: engine, gateway: hex.EncodeToString(sum[:4]), patience: launchPatience}, nil
}

// complete fills in what is missing. Dir is resolved, as the engine does not
// follow our links, and as it says which boxes are ours.
func complete(cfg Config) (Config, error) {
	if cfg.Dir == "" {
		return cfg, errors.New("no folder for the boxes is set")
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return cfg, fmt.Errorf("making the folder of the boxes: %w", err)
	}
	var errs [4]error
	cfg.Dir, errs[0] = resolve(cfg.Dir)
	if cfg.Guest == "" {
		cfg.Guest, errs[1] = os.Executable()
	}
	cfg.Guest, errs[2] = resolve(cfg.Guest)
	if cfg.Broker != "" {
		cfg.Broker, errs[3] = resolve(cfg.Broker)
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return cfg, errors.Join(append(errs[:], checkBinds(cfg.Binds))...)
}

func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// reserved are the paths of a box that no bind may hide.
var reserved = []string{sandbox.WorkDir, sandbox.RunDir, hostDir, doorDir, brokerDir, guestPath, "/proc", "/sys", "/dev", "/tmp", "/etc"}

func checkBinds(binds []Bind) error {
	for _, b := range binds {
		if !filepath.IsAbs(b.Host) || !filepath.IsAbs(b.Box) || filepath.Clean(b.Box) != b.Box || b.Box == "/" {
			return fmt.Errorf("bind %q to %q: not clean absolute paths", b.Host, b.Box)
		}
		for _, dir := range reserved {
			if b.Box == dir || strings.HasPrefix(b.Box, dir+"/") || strings.HasPrefix(dir, b.Box+"/") {
				return fmt.Errorf("bind to %q: %s belongs to the box itself", b.Box, dir)
			}
		}
	}
	return nil
}
