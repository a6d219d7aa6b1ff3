package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"ship/integrations/github"
	"ship/integrations/linear"
	"ship/integrations/slack"
)

// checkTime bounds one check. The slowest starts a box and ends it.
const checkTime = 30 * time.Second

// health is what a check came to.
type health string

const (
	healthy health = "ok"
	doubted health = "warn"
	broken  health = "fail"
	// unknown: the check could not be made.
	unknown health = "skip"
)

// finding is one line of what the doctor says.
type finding struct {
	Check  string `json:"check"`
	Status health `json:"status"`
	What   string `json:"what"`
	Remedy string `json:"remedy,omitempty"`
}

func good(format string, args ...any) finding {
	return finding{Status: healthy, What: fmt.Sprintf(format, args...)}
}

func doubt(remedy, format string, args ...any) finding {
	return finding{Status: doubted, What: fmt.Sprintf(format, args...), Remedy: remedy}
}

func bad(remedy, format string, args ...any) finding {
	return finding{Status: broken, What: fmt.Sprintf(format, args...), Remedy: remedy}
}

// check is one thing that is looked at.
type check struct {
	name string
	// after are checks that this one rests on: when one of them failed, this
	// one is not made.
	after []string
	run   func(context.Context, *patient) []finding
	// needed tells whether there is anything to look at; nil: always.
	needed func(*patient) bool
}

// just is a check with one finding.
func just(f func(context.Context, *patient) finding) func(context.Context, *patient) []finding {
	return func(ctx context.Context, p *patient) []finding { return []finding{f(ctx, p)} }
}

// patient is what checks look at, and what they leave for those that come
// after.
type patient struct {
	configPath string
	environ    []string
	// settings are there once the check of that name went well.
	settings Settings
	// serves: a ship answers at the address of the settings.
	serves bool
	hub    hub
	about  github.About
	// drift is how far this machine's clock is ahead of GitHub's, if known.
	drift *time.Duration
	// visit is what Linear's token opens, where ship has one without anybody's
	// help.
	visit *linear.Visit
	// holder is whom Slack's token acts as.
	holder slack.Holder
}

// checks are all, in the order in which a person would set things up.
func checks() []check {
	app := []string{"settings", "github.app"}
	list := []check{
		{name: "settings", run: checkSettings},
		{name: "data_dir", after: []string{"settings"}, run: just(checkDataDir)},
		{name: "broker_key", after: []string{"settings", "data_dir"}, run: just(checkBrokerKey)},
		{name: "redis", after: []string{"settings"}, run: just(checkRedis)},
		{name: "sandbox", after: []string{"settings"}, run: just(checkSandbox)},
		{name: "opencode", after: []string{"settings"}, run: just(checkOpenCode)},
		{name: "models", after: []string{"settings"}, run: checkModels},
		{name: "default_model", after: []string{"settings"}, run: just(checkDefaultModel)},
		{name: "serve", after: []string{"settings"}, run: just(checkServe)},
		{name: "github.app", after: []string{"settings"}, run: just(checkApp)},
		{name: "github.clock", after: []string{"settings"}, run: just(checkClock)},
		{name: "github.permissions", after: app, run: just(checkPermissions)},
		{name: "github.events", after: app, run: just(checkEvents)},
		{name: "github.webhook", after: app, run: just(checkHook)},
		{name: "github.installations", after: app, run: checkInstallations},
		{name: "github.ping", after: []string{"settings"}, run: just(checkPing)},
	}
	return slices.Concat(list, linearChecks(), slackChecks())
}

func doctorCommand() *cobra.Command {
	var configPath string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that ship needs, and say what to do",
		Long: `Checks the settings, the data_dir, Redis, the sandbox, OpenCode, the keys of all
models (without asking any of them anything), the GitHub App with its
permissions, events, webhook and installations, the apps of Linear and Slack if
there are any, and sends ship signed pings through public_url. It may run beside
ship serve or without it. No secret is printed. It fails when a check failed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := &patient{configPath: configPath, environ: os.Environ()}
			say := sayText
			if asJSON {
				say = sayJSON
			}
			return diagnose(cmd.Context(), p, checks(), say(cmd.OutOrStdout()))
		},
	}
	cmd.Flags().StringVar(&configPath, "config", "", "settings file (default: SHIP_CONFIG, else ship.yaml if it is there)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each line")
	return cmd
}

// diagnose makes the checks, one after the other, and tells each finding as
// it comes. It fails when one of them failed.
func diagnose(ctx context.Context, p *patient, list []check, say func(finding) error) error {
	failed, count := map[string]bool{}, 0
	for _, c := range list {
		if c.needed != nil && !c.needed(p) {
			continue
		}
		for _, f := range examine(ctx, p, c, failed) {
			if f.Status == broken || f.Status == unknown {
				failed[c.name] = true
			}
			if f.Status == broken {
				count++
			}
			if err := say(f.clean(p)); err != nil {
				return fmt.Errorf("print: %w", err)
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	switch count {
	case 0:
		return nil
	case 1:
		return errors.New("one check failed")
	}
	return fmt.Errorf("%d checks failed", count)
}

// examine makes one check, unless one that it rests on failed.
func examine(ctx context.Context, p *patient, c check, failed map[string]bool) []finding {
	if i := slices.IndexFunc(c.after, func(name string) bool { return failed[name] }); i >= 0 {
		return []finding{{Check: c.name, Status: unknown, What: "not checked, because " + c.after[i] + " failed"}}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, checkTime, fmt.Errorf("it took more than %s", checkTime))
	defer cancel()
	found := c.run(ctx, p)
	for i := range found {
		if found[i].Check == "" {
			found[i].Check = c.name
		}
	}
	return found
}

// clean makes one line out of what others said, without a secret and without
// what a terminal would obey.
func (f finding) clean(p *patient) finding {
	for _, text := range []*string{&f.What, &f.Remedy} {
		plain := strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) || unicode.IsSpace(r) {
				return r
			}
			return -1
		}, p.conceal(*text))
		*text = shorten(plain, 600)
	}
	return f
}

// conceal takes the secrets of the settings out of a text. None should be in
// there; this is for what libraries and other machines say.
func (p *patient) conceal(text string) string {
	for _, secret := range p.settings.secrets() {
		for line := range strings.Lines(strings.ReplaceAll(secret, `\n`, "\n")) {
			if line = strings.TrimSpace(line); len(line) >= 6 {
				text = strings.ReplaceAll(text, line, "[redacted]")
			}
		}
	}
	return text
}

// sayText prints lines for people.
func sayText(w io.Writer) func(finding) error {
	return func(f finding) error {
		line := fmt.Sprintf("%-4s  %-20s  %s", f.Status, f.Check, f.What)
		if f.Remedy != "" {
			line += " → " + f.Remedy
		}
		_, err := fmt.Fprintln(w, line)
		return err
	}
}

// sayJSON prints an object on each line.
func sayJSON(w io.Writer) func(finding) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return func(f finding) error { return enc.Encode(f) }
}
