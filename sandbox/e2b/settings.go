package e2b

import (
	"errors"
	"strings"
	"time"

	"ship/config"
)

// Settings are the section sandbox.e2b.
type Settings struct {
	APIKey      config.Secret `yaml:"api_key" doc:"API key of the E2B team, e2b_…, from its dashboard. It never enters a box."`
	APIURL      string        `yaml:"api_url" default:"https://api.e2b.app" is:"url" doc:"Address of the API that makes boxes."`
	Domain      string        `yaml:"domain" default:"e2b.app" doc:"Domain below which boxes are reached; another for a cluster of your own."`
	Template    string        `yaml:"template" default:"ship" doc:"Name or id of the template that boxes are made from. It needs git, OpenCode at /opt/ship/opencode, and the user."`
	User        string        `yaml:"user" default:"user" doc:"Who everything in a box runs as; not root."`
	AllowHosts  []string      `yaml:"allow_hosts" doc:"What a box may reach at once, past sandbox.allow_hosts and without being counted, besides public_url: host names, *.example.com, addresses and networks. Names count on ports 80 and 443 only."`
	Guest       string        `yaml:"guest" doc:"Path of the ship program that runs in boxes, a static one for their processor. Default: the one that runs."`
	PauseMemory bool          `yaml:"pause_memory" doc:"Whether a pause keeps memory and processes as well as files."`
	MaxLife     time.Duration `yaml:"max_life" default:"1h" min:"1m" doc:"The longest that a box may be told to live, as the E2B plan allows: 1h on Hobby, 24h on Pro."`
}

// Validate refuses what E2B would refuse, or what would let the agent become
// root.
func (s Settings) Validate() error {
	var errs []error
	if s.User == "root" {
		errs = append(errs, config.Invalid("user", "is root", "name a user of the template without rights, such as user"))
	}
	for _, host := range s.AllowHosts {
		if host == "" || strings.ContainsAny(host, "/: ") && !isNetwork(host) {
			errs = append(errs, config.Invalid("allow_hosts", "has an entry that is no host: "+host, "write it without scheme, port and path"))
		}
	}
	return errors.Join(errs...)
}
