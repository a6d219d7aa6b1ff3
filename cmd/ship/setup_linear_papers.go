package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"ship/config"
	"ship/integrations/linear"
)

// The files that `ship setup linear` writes, beside the settings.
const (
	linearSecretFile = "linear-client-secret"
	linearHookFile   = "linear-webhook-secret"
	linearKeyFile    = "linear-token-key"
)

// linearPapers are the files of an app in Linear. Even with force the token key
// is never overwritten: without it no token that is kept could be read.
type linearPapers struct{ drawer }

// prepare makes sure that keep will work, as far as that can be known.
func (p linearPapers) prepare() error {
	return prepareFolder(p.dir, []string{linearSecretFile, linearHookFile}, p.force)
}

// tokenKey is the key that is there already, or a new one; none where nothing
// is kept.
func (p linearPapers) tokenKey(s linear.Settings) (config.Secrets, error) {
	if s.Grant != linear.GrantCode {
		return nil, nil
	}
	b, err := os.ReadFile(p.path(linearKeyFile))
	switch {
	case err == nil:
		return config.NewSecrets(strings.TrimSpace(string(b))), nil
	case errors.Is(err, fs.ErrNotExist):
		return config.NewSecrets(rand.Text() + rand.Text()), nil
	}
	return nil, fmt.Errorf("read the token key: %w", err)
}

// keep writes the secrets, and adds what names them to the settings. Performed
// again after an error, with force, it comes to the same.
func (p linearPapers) keep(reg linear.Registration, s linear.Settings) (kept, error) {
	files := []struct {
		name  string
		text  string
		force bool
	}{{linearSecretFile, s.ClientSecret.Reveal(), p.force}, {linearHookFile, s.WebhookSecret[0].Reveal(), p.force}}
	var k kept
	for _, f := range files {
		if err := writeWhole(p.path(f.name), f.text+"\n", f.force); err != nil {
			return k, err
		}
		k.secrets = append(k.secrets, p.path(f.name))
	}
	if s.Grant == linear.GrantCode {
		switch err := writeWhole(p.path(linearKeyFile), s.TokenKey[0].Reveal()+"\n", false); {
		case err == nil:
			k.secrets = append(k.secrets, p.path(linearKeyFile))
		case !errors.Is(err, fs.ErrExist):
			return k, err
		}
	}
	var err error
	k.left, err = p.extend(reg, s)
	return k, err
}

// extend adds the section to the settings.
func (p linearPapers) extend(reg linear.Registration, s linear.Settings) (left string, err error) {
	text, err := p.section(s)
	if err != nil {
		return "", err
	}
	return newSection{
		config: p.config, name: "linear", publicURL: reg.PublicURL, text: text, same: func(now Settings) bool {
			return now.Linear.ClientID == s.ClientID && now.Linear.Grant == s.Grant &&
				now.Linear.ClientSecret.Reveal() == s.ClientSecret.Reveal() && now.Linear.WebhookSecret[0].Reveal() == s.WebhookSecret[0].Reveal()
		},
	}.extend()
}

// section is the part of ship.yaml that an app brings along.
func (p linearPapers) section(s linear.Settings) (string, error) {
	type section struct {
		ClientID          string `yaml:"client_id"`
		ClientSecretFile  string `yaml:"client_secret_file"`
		WebhookSecretFile string `yaml:"webhook_secret_file"`
		Grant             string `yaml:"grant,omitempty"`
		TokenKeyFile      string `yaml:"token_key_file,omitempty"`
		APIURL            string `yaml:"api_url,omitempty"`
		TokenURL          string `yaml:"token_url,omitempty"`
	}
	out := section{
		ClientID: s.ClientID, ClientSecretFile: p.reference(linearSecretFile), WebhookSecretFile: p.reference(linearHookFile),
		APIURL: s.APIURL, TokenURL: s.TokenURL,
	}
	if s.Grant == linear.GrantCode {
		out.Grant, out.TokenKeyFile = s.Grant, p.reference(linearKeyFile)
	}
	b, err := yaml.Marshal(map[string]section{"linear": out})
	return string(b), err
}
