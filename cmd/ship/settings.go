package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ship/bot"
	"ship/config"
	"ship/integrations"
	"ship/sandbox/docker"
	"ship/sandbox/e2b"
)

// Settings is ship.yaml. docs/settings.md is made from it.
type Settings struct {
	Listen    string `yaml:"listen" default:"127.0.0.1:8080" doc:"Address to listen on. Put a proxy with TLS in front of it."`
	PublicURL string `yaml:"public_url" is:"url" doc:"Where platforms and remote boxes reach this ship."`
	DataDir   string `yaml:"data_dir" doc:"Folder for the broker's key, local boxes and the embedded Redis. Default: $XDG_STATE_HOME/ship, ~/.local/state/ship, or for root /var/lib/ship."`

	Redis                 RedisSettings `yaml:"redis"`
	integrations.Settings `yaml:",inline"`
	Sandbox               SandboxSettings          `yaml:"sandbox"`
	Preview               PreviewSettings          `yaml:"preview"`
	Agent                 AgentSettings            `yaml:"agent"`
	Models                map[string]ModelProvider `yaml:"models"`
	Limits                LimitSettings            `yaml:"limits"`
	Access                AccessSettings           `yaml:"access"`
	Telemetry             TelemetrySettings        `yaml:"telemetry"`
}

// SandboxSettings say where the agent works.
type SandboxSettings struct {
	Provider    string        `yaml:"provider" default:"local" doc:"Where boxes are made: local, docker or e2b."`
	Max         int           `yaml:"max" default:"2" min:"1" doc:"How many boxes may work at the same time for each worker process; further turns wait in line."`
	Total       int           `yaml:"total" default:"0" min:"0" doc:"How many boxes may work at the same time for all worker processes together, such as an account at E2B allows. 0: no limit but max of each."`
	IdlePause   time.Duration `yaml:"idle_pause" default:"5m" min:"10s" doc:"How long a box may be idle before it is paused, where the provider can."`
	IdleDestroy time.Duration `yaml:"idle_destroy" default:"1h" min:"1m" doc:"How long a box may be idle before it is destroyed. The branch keeps the work."`
	MaxLife     time.Duration `yaml:"max_life" default:"0" min:"0" doc:"How long the provider lets a box run at a stretch, as its plan says; a turn that may not end before that begins in a new box. 0: as long as it takes, or for e2b as e2b.max_life says if that is enough for a whole turn."`
	USDPerHour  float64       `yaml:"usd_per_hour" is:"usd" default:"0" min:"0" doc:"What an hour of a box costs. It counts for the budgets, as models do. 0: box time is counted, and costs nothing."`
	Warn        time.Duration `yaml:"warn" default:"20m" min:"1m" doc:"How long before the end of max_life people are told, if a turn is at work then."`
	AllowHosts  []string      `yaml:"allow_hosts" doc:"Hosts that boxes may reach, such as registry.npmjs.org or *.example.com; the word registries stands for the usual package registries. Empty: none. Whatever takes uploads is a way out; see docs/sandbox.md."`
	MaxTraffic  int64         `yaml:"max_traffic" is:"size" default:"4GiB" min:"1048576" doc:"How much one turn may send to and receive from allow_hosts."`
	Chaos       bool          `yaml:"chaos" doc:"Allows ship serve --chaos, which makes boxes fail on purpose. Never where work is done that matters."`
	Local       struct {
		Isolation string `yaml:"isolation" default:"bubblewrap" oneof:"bubblewrap none" doc:"none only on a machine or in a container that is a sandbox itself: the agent can then read all that ship can."`
		Memory    int64  `yaml:"memory" is:"size" default:"4GiB" min:"0" doc:"Memory of one box; 0 is without a limit."`
		PIDs      int64  `yaml:"pids" default:"1024" min:"0" doc:"Processes and threads in one box; 0 is without a limit."`
	} `yaml:"local"`
	Docker docker.Settings `yaml:"docker"`
	E2B    e2b.Settings    `yaml:"e2b"`
}

// Validate refuses a box that is gone before it would be paused.
func (s SandboxSettings) Validate() error {
	if s.IdlePause >= s.IdleDestroy {
		return config.Invalid("idle_pause", "is not shorter than idle_destroy", "a box is paused before it is destroyed")
	}
	return validateHosts(s.AllowHosts)
}

// PreviewSettings say whether people may look at what the agent runs.
type PreviewSettings struct {
	URL string `yaml:"url" is:"url" doc:"Address at which people see what the agent serves in a box, such as https://ship-preview.example.net: a host name of its own that leads to this ship too. Empty: there are no previews. See docs/sandbox.md."`
}

// Validate refuses what is more than a host.
func (s PreviewSettings) Validate() error {
	u, err := url.Parse(s.URL)
	if s.URL == "" || err == nil && strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == "" {
		return nil
	}
	return config.Invalid("url", "is more than a host", "write it like https://ship-preview.example.net")
}

// AgentSettings choose the agent and its model.
type AgentSettings struct {
	Model    string `yaml:"model" doc:"The model to use unless a person names another, as provider/name. Default: the first of models."`
	OpenCode string `yaml:"opencode" doc:"Path of the OpenCode program. Default: the one on the PATH."`
}

// ModelProvider is one entry of models.
type ModelProvider struct {
	BaseURL string           `yaml:"base_url" is:"url" doc:"Address of an API that speaks as OpenAI's does, such as https://api.openai.com/v1."`
	APIKey  config.Secret    `yaml:"api_key" doc:"Its key. It never enters a box."`
	Models  map[string]Price `yaml:"models"`
}

// Validate refuses a provider that could not be called.
func (p ModelProvider) Validate() error {
	var errs []error
	if p.BaseURL == "" {
		errs = append(errs, config.Invalid("base_url", "is missing", "write where the provider's API is, such as https://api.openai.com/v1"))
	}
	if len(p.Models) == 0 {
		errs = append(errs, config.Invalid("models", "is empty", "name at least one model with its prices"))
	}
	return errors.Join(errs...)
}

// Price in USD per million tokens.
type Price struct {
	Input  float64 `yaml:"input" is:"usd" doc:"USD per million tokens that are sent."`
	Output float64 `yaml:"output" is:"usd" doc:"USD per million tokens that come back."`
	Cached float64 `yaml:"cached" is:"usd" doc:"USD per million tokens that are read from the provider's cache."`
}

// LimitSettings bound what a turn and a person may use.
type LimitSettings struct {
	TurnTimeout       time.Duration `yaml:"turn_timeout" default:"1h" min:"1m" doc:"Wall clock of one turn."`
	Stall             time.Duration `yaml:"stall" default:"5m" min:"10s" doc:"How long nothing may move before the agent is stopped."`
	Retries           int           `yaml:"retries" default:"5" min:"0" doc:"How often a failing model is asked again."`
	ModelCalls        int           `yaml:"model_calls" default:"200" min:"1" doc:"Model calls in one turn."`
	BudgetUSD         float64       `yaml:"budget_usd" is:"usd" default:"5" min:"0.01" doc:"What one turn may spend, unless a person sets another budget."`
	MaxBudgetUSD      float64       `yaml:"max_budget_usd" is:"usd" default:"100" min:"0.01" doc:"The highest budget that a person may set."`
	PersonDayUSD      float64       `yaml:"person_day_usd" is:"usd" default:"0" min:"0" doc:"What one person's turns may spend on a day, in UTC. 0: no limit."`
	DayUSD            float64       `yaml:"day_usd" is:"usd" default:"0" min:"0" doc:"What all turns together may spend on a day, in UTC. 0: no limit."`
	Extend            bool          `yaml:"extend" default:"true" doc:"Whether people may have a turn go on past a budget by saying so. They are asked when one is used up. false: the budgets of a day hold until the next."`
	SessionsPerUser   int           `yaml:"sessions_per_user" default:"10" min:"1" doc:"How many turns of one person may be under way at the same time, in all worker processes together; further ones wait in line."`
	RequestsPerMinute int           `yaml:"requests_per_minute" default:"60" min:"1" doc:"How many requests of one person are taken in a minute."`
}

// Validate refuses a default that nobody could set.
func (l LimitSettings) Validate() error {
	if l.BudgetUSD > l.MaxBudgetUSD {
		return config.Invalid("max_budget_usd", "is below budget_usd", "raise it, or lower budget_usd")
	}
	return nil
}

// AccessSettings say who may command.
type AccessSettings struct {
	Permission string `yaml:"permission" default:"write" oneof:"write admin" doc:"The permission on the repository that a person needs."`

	bot.PeopleSettings `yaml:",inline"`
}

// Validate refuses what only shows when sections are seen together.
func (s *Settings) Validate() error {
	return errors.Join(s.validatePreview(), s.validateModel(), s.validateLife())
}

// validateLife refuses a box that ends before a turn in it may.
func (s *Settings) validateLife() error {
	p := s.boxPolicy()
	if least := p.TurnTimeout + p.Margin; p.Cap > 0 && p.Cap <= least {
		return config.Invalid("sandbox.max_life", fmt.Sprintf("is too short for a turn of limits.turn_timeout, %s, and %s to finish it", p.TurnTimeout, p.Margin),
			fmt.Sprintf("set it to more than %s as far as the provider allows, or lower limits.turn_timeout", least))
	}
	if p.Cap > 0 && p.Warn >= p.Cap {
		return config.Invalid("sandbox.warn", "is not shorter than max_life", "a warning comes before the end, and after the start")
	}
	if err := p.Validate(); err != nil {
		return config.Invalid("sandbox", err.Error(), "change the times that contradict each other")
	}
	return nil
}

// validatePreview: what a preview shows could act for whoever looks at it on
// the host that it comes from, and without isolation it could be of this machine.
func (s *Settings) validatePreview() error {
	switch {
	case s.Preview.URL == "":
		return nil
	case hostOf(s.Preview.URL) == hostOf(s.PublicURL):
		return config.Invalid("preview.url", "has the host of public_url", "use a host name of its own: what a repository shows must not come from where ship itself is")
	case s.Sandbox.Provider == "local" && s.Sandbox.Local.Isolation == "none":
		return config.Invalid("preview.url", "needs boxes that are isolated", "without isolation a preview would show the ports of this machine; leave it empty, or set sandbox.local.isolation to bubblewrap")
	}
	return nil
}

// hostOf is an address's host as names are compared: in lower case, without
// the port and the dot at its end.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
}

func (s *Settings) validateModel() error {
	names := s.modelNames()
	if s.Agent.Model == "" || slices.Contains(names, s.Agent.Model) {
		return nil
	}
	remedy := "add it there"
	if len(names) > 0 {
		remedy = "use one of " + strings.Join(names, ", ")
	}
	return config.Invalid("agent.model", "is not among models", remedy)
}

// settingsPath is the file at path; or the one that SHIP_CONFIG names; or
// ship.yaml, if it is there. Empty: there is none.
func settingsPath(path string, environ []string) string {
	if path == "" {
		path = variable(environ, "SHIP_CONFIG")
	}
	if path != "" {
		return path
	}
	if _, err := os.Stat("ship.yaml"); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return "ship.yaml"
}

// readSettings reads the file that settingsPath finds. Then comes the
// environment.
func readSettings(path string, environ []string) (Settings, error) {
	var s Settings
	if err := config.Load(settingsPath(path, environ), environ, &s); err != nil {
		return Settings{}, err
	}
	if s.DataDir == "" {
		s.DataDir = defaultDataDir(environ, os.Geteuid())
	}
	return s, nil
}

// defaultDataDir is where a program of this user keeps its state.
func defaultDataDir(environ []string, uid int) string {
	if state := variable(environ, "XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "ship")
	}
	if home := variable(environ, "HOME"); uid != 0 && filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "ship")
	}
	return "/var/lib/ship"
}

// variable looks a name up in an environment, where the last one counts.
func variable(environ []string, name string) string {
	for _, pair := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}
