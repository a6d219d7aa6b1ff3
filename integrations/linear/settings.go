package linear

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"

	"ship/config"
)

// Grants: how ship gets its access to a workspace.
const (
	// GrantClient: by the app's own credentials. One workspace, that of the
	// app, and nothing to keep.
	GrantClient = "client_credentials"
	// GrantCode: by an admin of each workspace, who installs the app there.
	GrantCode = "authorization_code"
)

// minTokenKey is how long a key of Settings.TokenKey is at least: it is used
// as it is, so it has to be random and not something to remember.
const minTokenKey = 32

// validClientID is what a client id may look like. It ends up in keys.
var validClientID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Settings is the section `linear` of ship.yaml.
type Settings struct {
	ClientID     string        `yaml:"client_id" doc:"Client id of the OAuth app, from its settings page."`
	ClientSecret config.Secret `yaml:"client_secret" doc:"Its client secret."`
	// WebhookSecret is one secret or a list of them, for rotation.
	WebhookSecret config.Secrets `yaml:"webhook_secret" doc:"Signing secret of its webhook; several while it is being changed."`
	Grant         string         `yaml:"grant" default:"client_credentials" oneof:"client_credentials authorization_code" doc:"client_credentials serves the one workspace that owns the app. authorization_code serves every workspace whose admin installs it."`
	// TokenKey: the first seals, all open.
	TokenKey config.Secrets `yaml:"token_key" doc:"What tokens are encrypted with before they are kept, 32 characters or more, such as openssl rand -hex 32 makes; to change it, put the new one first and keep the old one. Needed for authorization_code; otherwise derived from client_secret."`
	APIURL   string         `yaml:"api_url" default:"https://api.linear.app/graphql" is:"url" doc:"Address of the API."`
	TokenURL string         `yaml:"token_url" default:"https://api.linear.app/oauth/token" is:"url" doc:"Address that hands out tokens."`
}

// Enabled tells whether anything of the section is set that has no default.
func (s Settings) Enabled() bool {
	return s.ClientID != "" || !s.ClientSecret.Empty() || len(s.WebhookSecret) > 0
}

// Validate says what is wrong with the section, and what to do. All of it at
// once, and none of the secrets.
func (s Settings) Validate() error {
	var errs []error
	wrong := func(bad bool, key, what, remedy string) {
		if bad {
			errs = append(errs, config.Invalid(key, what, remedy))
		}
	}
	const page = "copy it from the app's page, Linear → Settings → API"
	wrong(s.ClientID == "", "client_id", "is missing", page)
	wrong(s.ClientID != "" && !validClientID.MatchString(s.ClientID), "client_id", "is not a client id", page)
	wrong(s.ClientSecret.Empty(), "client_secret", "is missing", page)
	wrong(len(s.WebhookSecret) == 0, "webhook_secret", "is missing", page)
	for i, one := range s.WebhookSecret {
		wrong(one.Empty(), "webhook_secret", fmt.Sprintf("entry %d is empty", i+1), "leave it out")
	}
	const make32 = "make one with: openssl rand -hex 32"
	wrong(s.Grant == GrantCode && len(s.TokenKey) == 0, "token_key", "is needed with grant: authorization_code", make32)
	for i, one := range s.TokenKey {
		wrong(len(one.Reveal()) < minTokenKey, "token_key", fmt.Sprintf("entry %d has less than %d characters", i+1, minTokenKey), make32)
	}
	return errors.Join(errs...)
}

// Tokens turns the section into what NewTokens takes, but for the vault.
func (s Settings) Tokens() TokensConfig {
	return TokensConfig{
		ClientID: s.ClientID, ClientSecret: s.ClientSecret, Grant: s.Grant, Keys: s.TokenKey,
		TokenURL: cmp.Or(s.TokenURL, DefaultTokenURL),
	}
}
