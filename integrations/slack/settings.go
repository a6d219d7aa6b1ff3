package slack

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ship/config"
)

// maxConnections is how many Socket Mode connections Slack lets one app have.
const maxConnections = 10

// Settings is the section `slack` of ship.yaml.
type Settings struct {
	BotToken config.Secret `yaml:"bot_token" doc:"Token of the app's bot user, xoxb-…, from OAuth & Permissions on its page."`
	// SigningSecret is one secret or a list of them, for rotation.
	SigningSecret config.Secrets `yaml:"signing_secret" doc:"Signing secret of the app, from Basic Information on its page; several while it is being changed. Needed unless app_token is set."`
	// AppToken turns Socket Mode on.
	AppToken    config.Secret `yaml:"app_token" doc:"App-level token, xapp-…, with the scope connections:write. With it ship fetches everything over Socket Mode, and Slack need not reach it."`
	Connections int           `yaml:"connections" default:"2" min:"1" doc:"Socket Mode connections that each ship keeps open. Slack allows one app 10 in all."`
	// Channels and Groups restrict who may command, and where.
	Channels []string `yaml:"channels" doc:"Channels in which ship takes work, as their ids or names such as #backend. Empty: in all that it is invited to, and in direct messages."`
	Groups   []string `yaml:"groups" doc:"User groups whose members may command ship, as their ids or handles such as @backend. Empty: everybody of the workspace. A right on the repository is needed as well."`
	// Replies says which replies in a session's thread are instructions.
	Replies string `yaml:"replies" default:"mention" oneof:"mention thread" doc:"Which replies in a thread that ship works in are for it: those that mention it, with what was said besides as context, or all of the thread."`
	APIURL  string `yaml:"api_url" default:"https://slack.com/api/" is:"url" doc:"Address of the API."`
	// Slow is how long a turn may run before people are told that it takes longer
	// than most; zero: as long as it likes.
	Slow time.Duration `yaml:"slow" default:"10m" min:"0s" doc:"After how long people are told that a turn takes longer than most; 0 is never."`
}

// Enabled tells whether anything of the section is set that has no default.
func (s Settings) Enabled() bool {
	return !s.BotToken.Empty() || len(s.SigningSecret) > 0 || !s.AppToken.Empty()
}

// SocketMode tells whether events are fetched and not posted to us.
func (s Settings) SocketMode() bool { return !s.AppToken.Empty() }

// OpenThreads tells whether each reply of a person in a session's thread is an
// instruction, whether or not it mentions ship.
func (s Settings) OpenThreads() bool { return s.Replies == "thread" }

// Validate says what is wrong with the section, and what to do. All of it at
// once, and none of the secrets.
func (s Settings) Validate() error {
	var errs []error
	wrong := func(bad bool, key, what, remedy string) {
		if bad {
			errs = append(errs, config.Invalid(key, what, remedy))
		}
	}
	const page = "copy it from the app's page on api.slack.com/apps, "
	const oauth, basic = page + "OAuth & Permissions", page + "Basic Information"
	wrong(s.BotToken.Empty(), "bot_token", "is missing", oauth)
	wrong(!s.BotToken.Empty() && !botToken(s.BotToken.Reveal()), "bot_token", "is not a bot's token, which begins with xoxb-", oauth)
	wrong(len(s.SigningSecret) == 0 && s.AppToken.Empty(), "signing_secret", "is missing", basic+"; or set app_token for Socket Mode")
	for i, one := range s.SigningSecret {
		wrong(strings.TrimSpace(one.Reveal()) == "", "signing_secret", fmt.Sprintf("entry %d is empty", i+1), "leave it out")
	}
	wrong(!s.AppToken.Empty() && !strings.HasPrefix(s.AppToken.Reveal(), "xapp-"),
		"app_token", "is not an app-level token, which begins with xapp-", basic+", App-Level Tokens")
	wrong(s.Connections > maxConnections, "connections", "is more than Slack allows one app", fmt.Sprintf("make it %d or less", maxConnections))
	for _, list := range []struct {
		key   string
		names []string
	}{{"channels", s.Channels}, {"groups", s.Groups}} {
		wrong(slices.ContainsFunc(list.names, nameless), list.key, "has an entry without a name", "leave it out")
	}
	return errors.Join(errs...)
}

func nameless(name string) bool { return strings.Trim(name, "#@ \t") == "" }

// botToken tells whether a token is a bot's. With token rotation it begins with
// what says that it expires.
func botToken(token string) bool {
	return strings.HasPrefix(strings.TrimPrefix(token, "xoxe."), "xoxb-")
}
