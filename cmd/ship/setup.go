package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ship/integrations/github"
)

// setupLimit is how long a person has to find the browser.
const setupLimit = 10 * time.Minute

// errSetupLimit is why a set-up that nobody finished ends.
var errSetupLimit = fmt.Errorf("nobody confirmed the app within %s; start again", setupLimit)

// setupOptions are the flags of `ship setup github`.
type setupOptions struct {
	org, name, dir            string
	publicURL, apiURL, webURL string
	force                     bool
	environ                   []string
	out                       io.Writer
}

func setupCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "setup", Short: "Set up a platform and write its settings", Args: cobra.NoArgs}
	cmd.AddCommand(setupGitHubCommand(), setupLinearCommand(), setupSlackCommand())
	return cmd
}

func setupGitHubCommand() *cobra.Command {
	var o setupOptions
	cmd := &cobra.Command{
		Use:   "github",
		Short: "Create the GitHub App and write its key, its secret and ship.yaml",
		Long: `Prints a link to a page on this machine. In a browser it leads to GitHub, where
you confirm a GitHub App with exactly the permissions and events that ship
needs. GitHub then hands its key and its webhook secret to this command, which
writes them to files that only you can read. Nothing is overwritten: a ship.yaml
that is there is left as it is, and what to add to it is printed.`,
		Example: `  ship setup github --public-url https://ship.example.com --org acme --out /etc/ship`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.environ, o.out = os.Environ(), cmd.OutOrStdout()
			return setUpGitHub(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.publicURL, "public-url", "", "where GitHub reaches this ship, like https://ship.example.com (default: public_url of the settings)")
	f.StringVar(&o.org, "org", "", "organisation that will own the app (default: you)")
	f.StringVar(&o.name, "name", "", "name of the app; GitHub lets you change it (default: ship- and the organisation)")
	f.StringVar(&o.dir, "out", ".", "folder to write to")
	f.BoolVar(&o.force, "force", false, "overwrite github.pem and webhook-secret if they are there")
	f.StringVar(&o.apiURL, "api-url", "", "address of the API, for GitHub Enterprise Server (default: that of --web-url)")
	f.StringVar(&o.webURL, "web-url", "", "address of GitHub Enterprise Server, like https://github.example.com")
	return cmd
}

// setUpGitHub makes an app with the help of a person's browser.
func setUpGitHub(ctx context.Context, o setupOptions) error {
	ctx, cancel := context.WithTimeoutCause(ctx, setupLimit, errSetupLimit)
	defer cancel()
	o, err := o.complete()
	if err != nil {
		return err
	}
	// What would go wrong at the end is found now: GitHub gives the secrets once.
	papers := newPapers(o)
	if err := papers.prepare(); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("open a page on this machine: %w", err)
	}
	defer listener.Close()
	home := "http://" + listener.Addr().String()
	reg, err := github.Registration{
		Name: o.name, Org: o.org, PublicURL: o.publicURL, RedirectURL: home + createdPath, APIURL: o.apiURL, WebURL: o.webURL,
	}.Check()
	if err != nil {
		return err
	}
	d := newDesk(reg, o.out)
	o.invite(home+d.path, listener.Addr().(*net.TCPAddr).Port)
	return d.serve(ctx, listener, func(app github.NewApp) error { return o.settle(papers, reg, app) })
}

// complete fills in what the settings know, as far as they can be read.
func (o setupOptions) complete() (setupOptions, error) {
	if s, err := readSettings("", o.environ); err == nil {
		o.publicURL = cmp.Or(o.publicURL, s.PublicURL)
		if o.webURL == "" && o.apiURL == "" {
			o.webURL, o.apiURL = s.GitHub.WebURL, s.GitHub.APIURL
		}
	}
	if o.publicURL == "" {
		return o, errors.New("GitHub has to know where to send webhooks: give --public-url https://ship.example.com (it can be changed later; for a trial, the address of a tunnel will do)")
	}
	if o.webURL != "" && o.apiURL == "" && strings.TrimRight(o.webURL, "/") != github.DefaultWebURL {
		o.apiURL = strings.TrimRight(o.webURL, "/") + "/api/v3" // GitHub Enterprise Server has it there
	}
	if o.name == "" {
		o.name = "ship-" + cmp.Or(o.org, strings.ToLower(rand.Text()[:6]))
		o.name = o.name[:min(len(o.name), 34)]
	}
	var err error
	o.dir, err = filepath.Abs(o.dir)
	return o, err
}

// invite says where to go.
func (o setupOptions) invite(link string, port int) {
	owner := "your own account"
	if o.org != "" {
		owner = o.org
	}
	fmt.Fprintf(o.out, `Open this in a browser, within %d minutes:

  %s

It leads to GitHub, where you confirm the app %q for %s.
If the browser is on another machine, run this there first:
  ssh -N -L %d:127.0.0.1:%d %s

`, int(setupLimit.Minutes()), link, o.name, owner, port, port, hostName())
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "HOST"
	}
	return name
}

// settle keeps what GitHub gave and says what comes next.
func (o setupOptions) settle(p papers, reg github.Registration, app github.NewApp) error {
	written, err := p.keep(reg, app)
	if err != nil {
		return fmt.Errorf("%w; the app exists: make another private key and webhook secret on %s", err, app.URL)
	}
	fmt.Fprintf(o.out, "The app %s exists, with id %d. Only you can read what was written:\n", app.Slug, app.ID)
	for _, path := range written {
		fmt.Fprintf(o.out, "  %s\n", path)
	}
	section, err := p.missing(reg, app, o.environ)
	if err != nil {
		return err
	}
	if section != "" {
		fmt.Fprintf(o.out, "\n%s is left as it is. Put this into it:\n\n%s", p.config, section)
	}
	fmt.Fprintf(o.out, `
Next:
  1. Install the app on the repositories that ship should work on:
     %s
  2. If there is no model yet, set one: agent and models in ship.yaml.
  3. Run: ship doctor --config %s
`, app.InstallURL(), p.config)
	return nil
}
