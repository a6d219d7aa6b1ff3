package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// linearPapers are the files of an app in Linear.
type linearPapers struct {
	dir, config string
	// force overwrites the two secrets, and never the settings or the token key:
	// without the one no token that is kept could be read.
	force bool
}

func (p linearPapers) path(name string) string { return filepath.Join(p.dir, name) }

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

// kept is what became of the papers.
type kept struct {
	// secrets are the paths of what was written.
	secrets []string
	// left is what somebody has to add to the settings by hand.
	left string
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

// extend adds a section to the settings, and returns what it may not add: to
// change what somebody wrote is theirs alone.
func (p linearPapers) extend(reg linear.Registration, s linear.Settings) (left string, err error) {
	section, err := p.section(s)
	if err != nil {
		return "", err
	}
	address, err := yaml.Marshal(map[string]string{"public_url": reg.PublicURL})
	if err != nil {
		return "", err
	}
	old, err := os.ReadFile(p.config)
	if errors.Is(err, fs.ErrNotExist) {
		return "", writeWhole(p.config, string(address)+section, false)
	}
	if err != nil {
		return "", fmt.Errorf("read the settings: %w", err)
	}
	there, err := topLevel(old)
	switch {
	case err != nil || there == nil: // not what can be added to
		return string(address) + section, nil
	case there["linear"] != nil:
		return p.unlike(section, s), nil
	case there["public_url"] == nil:
		section = string(address) + section
	}
	return p.add(old, section)
}

// unlike is the section, unless the one that is there says the same.
func (p linearPapers) unlike(section string, s linear.Settings) string {
	now, err := readSettings(p.config, nil)
	if err == nil && now.Linear.ClientID == s.ClientID && now.Linear.Grant == s.Grant &&
		now.Linear.ClientSecret.Reveal() == s.ClientSecret.Reveal() && now.Linear.WebhookSecret[0].Reveal() == s.WebhookSecret[0].Reveal() {
		return ""
	}
	return section
}

// add appends a section to the file, if that makes settings of it that have all
// the old ones and the new. The file stays whose it is.
func (p linearPapers) add(old []byte, section string) (left string, err error) {
	text := "\n" + section
	if len(old) > 0 && !bytes.HasSuffix(old, []byte("\n")) {
		text = "\n" + text
	}
	whole, err := topLevel(append(bytes.Clone(old), text...))
	if err != nil || whole["linear"] == nil {
		return section, nil
	}
	f, err := os.OpenFile(p.config, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return "", fmt.Errorf("add to the settings: %w", err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", fmt.Errorf("add to the settings: %w", err)
	}
	return "", nil
}

// topLevel are the sections of a YAML text; nil when it is no plain list of
// them.
func topLevel(text []byte) (map[string]*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return map[string]*yaml.Node{}, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0 {
		return nil, nil
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		out[root.Content[i].Value] = root.Content[i+1]
	}
	return out, nil
}

// section is the part of ship.yaml that an app brings along. Relative paths
// there start at the settings.
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
	at := func(name string) string {
		if filepath.Dir(p.config) == p.dir {
			return name
		}
		return p.path(name)
	}
	out := section{
		ClientID: s.ClientID, ClientSecretFile: at(linearSecretFile), WebhookSecretFile: at(linearHookFile),
		APIURL: s.APIURL, TokenURL: s.TokenURL,
	}
	if s.Grant == linear.GrantCode {
		out.Grant, out.TokenKeyFile = s.Grant, at(linearKeyFile)
	}
	b, err := yaml.Marshal(map[string]section{"linear": out})
	return string(b), err
}
