package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"ship/integrations/github"
)

// The files that `ship setup github` writes.
const (
	keyFile      = "github.pem"
	secretFile   = "webhook-secret"
	settingsFile = "ship.yaml"
)

// drawer is where the files of a new app are put.
type drawer struct {
	// dir is where the secrets are written to.
	dir string
	// config is where settings are, or will be.
	config string
	// force overwrites the secrets, and never the settings.
	force bool
}

func (d drawer) path(name string) string { return filepath.Join(d.dir, name) }

// reference is what the settings say where a file is. Relative paths there start
// at the settings.
func (d drawer) reference(name string) string {
	if filepath.Dir(d.config) == d.dir {
		return name
	}
	return d.path(name)
}

// papers are the files of a new app at GitHub.
type papers struct{ drawer }

func newPapers(o setupOptions) papers {
	config := variable(o.environ, "SHIP_CONFIG")
	if config == "" {
		config = filepath.Join(o.dir, settingsFile)
	}
	return papers{drawer{dir: o.dir, config: config, force: o.force}}
}

// prepare makes sure that keep will work, as far as that can be known.
func (p papers) prepare() error {
	return prepareFolder(p.dir, []string{keyFile, secretFile}, p.force)
}

// prepareFolder makes a folder, if need be, that files can be written to, none
// of which may be there without force.
func prepareFolder(dir string, names []string, force bool) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil && !force {
			return fmt.Errorf("%s is there already: give another folder with --out, or --force to overwrite it", path)
		}
	}
	probe, err := os.CreateTemp(dir, ".ship-setup-")
	if err != nil {
		return fmt.Errorf("write to the folder: %w", err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// keep writes the app's secrets and, if there are none, settings that name
// them. It returns the paths of what it wrote.
func (p papers) keep(reg github.Registration, app github.NewApp) (written []string, err error) {
	files := []struct{ name, text string }{
		{keyFile, app.PrivateKey.Reveal()}, {secretFile, app.WebhookSecret.Reveal() + "\n"},
	}
	for _, f := range files {
		if err := writeWhole(p.path(f.name), f.text, p.force); err != nil {
			return written, err
		}
		written = append(written, p.path(f.name))
	}
	section, err := p.section(reg, app)
	if err != nil {
		return written, err
	}
	switch err := writeWhole(p.config, section, false); {
	case err == nil:
		written = append(written, p.config)
	case !errors.Is(err, fs.ErrExist):
		return written, err
	}
	return written, nil
}

// missing is what to add to the settings, if they do not name this app yet.
func (p papers) missing(reg github.Registration, app github.NewApp, environ []string) (string, error) {
	if s, err := readSettings(p.config, environ); err == nil && s.GitHub.AppID == app.ID && s.PublicURL == reg.PublicURL {
		return "", nil
	}
	return p.section(reg, app)
}

// section is the part of ship.yaml that a new app brings along.
func (p papers) section(reg github.Registration, app github.NewApp) (string, error) {
	type section struct {
		AppID             int64  `yaml:"app_id"`
		PrivateKeyFile    string `yaml:"private_key_file"`
		WebhookSecretFile string `yaml:"webhook_secret_file"`
		APIURL            string `yaml:"api_url,omitempty"`
		WebURL            string `yaml:"web_url,omitempty"`
	}
	s := section{AppID: app.ID, PrivateKeyFile: p.reference(keyFile), WebhookSecretFile: p.reference(secretFile)}
	if reg.APIURL != github.DefaultAPIURL {
		s.APIURL = reg.APIURL
	}
	if reg.WebURL != github.DefaultWebURL {
		s.WebURL = reg.WebURL
	}
	b, err := yaml.Marshal(struct {
		PublicURL string  `yaml:"public_url"`
		GitHub    section `yaml:"github"`
	}{reg.PublicURL, s})
	return string(b), err
}

// writeWhole writes a file that only its owner may read, whole or not at all.
// Without force, one that is there is left alone: then the error is
// fs.ErrExist.
func writeWhole(path, text string, force bool) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	place := os.Link // fails when there is one
	if force {
		place = os.Rename
	}
	if err := place(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
