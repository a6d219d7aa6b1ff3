package github

import (
	"errors"
	"fmt"
	"strings"

	"ship/config"
)

// Settings is the section `github` of ship.yaml.
type Settings struct {
	AppID int64 `yaml:"app_id" doc:"Number of the GitHub App, from its settings page."`
	// PrivateKey is the PEM text, or the text with "\n" written as two
	// characters, as environment files force it.
	PrivateKey config.Secret `yaml:"private_key" doc:"Its private key, in PEM. Line breaks may be written as \\n."`
	// WebhookSecret is one secret or a list of them, for rotation.
	WebhookSecret config.Secrets `yaml:"webhook_secret" doc:"Secret of its webhook; several while it is being changed."`
	APIURL        string         `yaml:"api_url" doc:"Address of the API. Default: https://api.github.com; another for GitHub Enterprise Server."`
	WebURL        string         `yaml:"web_url" doc:"Address of the pages and of git. Default: https://github.com."`
}

// Enabled tells whether anything of the section is set.
func (s Settings) Enabled() bool {
	return s.AppID != 0 || !s.PrivateKey.Empty() || len(s.WebhookSecret) > 0
}

// Validate says what is wrong with the section, and what to do. All of it at
// once, and none of the secrets.
func (s Settings) Validate() error {
	var errs []error
	if s.AppID <= 0 {
		errs = append(errs, errors.New("github.app_id is missing: it is the number on the app's settings page"))
	}
	if !strings.Contains(s.PrivateKey.Reveal(), "PRIVATE KEY-----") {
		errs = append(errs, errors.New("github.private_key is not a PEM key: generate one on the app's settings page"))
	}
	if len(s.WebhookSecret) == 0 {
		errs = append(errs, errors.New("github.webhook_secret is missing"))
	}
	for i, secret := range s.WebhookSecret {
		if strings.TrimSpace(secret.Reveal()) == "" {
			errs = append(errs, fmt.Errorf("github.webhook_secret: secret %d is empty", i+1))
		}
	}
	for key, url := range map[string]string{"api_url": s.APIURL, "web_url": s.WebURL} {
		if _, err := baseURL(key, url, "-"); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Config turns the section into what New takes.
func (s Settings) Config() Config {
	return Config{
		AppID:          s.AppID,
		PrivateKey:     strings.ReplaceAll(s.PrivateKey.Reveal(), `\n`, "\n"),
		WebhookSecrets: s.WebhookSecret.Reveal(),
		APIURL:         s.APIURL,
		WebURL:         s.WebURL,
	}
}
