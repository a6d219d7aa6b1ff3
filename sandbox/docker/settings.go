package docker

import (
	"errors"
	"path"
	"strings"

	"ship/config"
)

// Settings are the section sandbox.docker.
type Settings struct {
	Host    string  `yaml:"host" default:"unix:///var/run/docker.sock" doc:"Socket of the engine on this machine, unix:///path."`
	Image   string  `yaml:"image" default:"ship-box" doc:"Image that boxes are made from; ship never pulls it. It needs git, a shell and, unless agent.opencode is set, OpenCode at /opt/ship/opencode."`
	Memory  int64   `yaml:"memory" is:"size" default:"4GiB" min:"0" doc:"Memory of one box, with what lies in its /tmp; 0 is without a limit."`
	CPUs    float64 `yaml:"cpus" default:"2" doc:"Processors that one box may use, such as 1.5, and never more than there are; 0 is without a limit."`
	PIDs    int64   `yaml:"pids" default:"1024" min:"0" doc:"Processes and threads in one box; 0 is without a limit."`
	Runtime string  `yaml:"runtime" doc:"Runtime that the engine starts boxes with, such as runsc for gVisor. Default: the engine's own."`
	Guest   string  `yaml:"guest" doc:"Path of the ship program that runs in boxes, a static one. Default: the one that runs."`
}

// Validate refuses what could only fail later. An engine on another machine is
// refused because it could show a box neither its folders nor the broker.
func (s Settings) Validate() error {
	var errs []error
	if _, err := socketOf(s.Host); err != nil {
		errs = append(errs, config.Invalid("host", "is not a socket on this machine", "write it like unix:///var/run/docker.sock"))
	}
	if s.CPUs < 0 || s.CPUs > 4096 {
		errs = append(errs, config.Invalid("cpus", "is not a number of processors", "write it like 2 or 0.5"))
	}
	if s.Image == "" || strings.ContainsAny(s.Image, " \t\n?#%") || strings.HasPrefix(s.Image, "-") {
		errs = append(errs, config.Invalid("image", "is not the name of an image", "write it like ship-box or registry.example.com/ship-box:1"))
	}
	return errors.Join(errs...)
}

var errNoSocket = errors.New("it has to be unix:// and an absolute path")

// socketOf is the path behind the address of an engine.
func socketOf(host string) (string, error) {
	socket, ok := strings.CutPrefix(host, "unix://")
	if !ok || !path.IsAbs(socket) {
		return "", errNoSocket
	}
	return socket, nil
}
