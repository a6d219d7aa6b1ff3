package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ship/config"
	"ship/integrations/linear"
)

// linearTime is how long Linear may take to say what it thinks of credentials.
const linearTime = 20 * time.Second

// linearSetup holds the flags of `ship setup linear`.
type linearSetup struct {
	name, developer, dir, config, grant string
	publicURL, apiURL, tokenURL         string
	clientID, secretFile, hookFile      string
	force, install                      bool
	environ                             []string
	in                                  io.Reader
	out                                 io.Writer
}

func setupLinearCommand() *cobra.Command {
	var o linearSetup
	cmd := &cobra.Command{
		Use:   "linear",
		Short: "Set up the OAuth app of Linear and write its settings",
		Long: `Prints a link to Linear's form for a new OAuth app, filled in with what ship
needs, and asks for the three values that the app's page shows then. They are
tried at once, and written to files that only you can read. The section linear
is added to ship.yaml if there is none; what is there is left as it is.

Scripts give the values as --client-id, --client-secret-file and
--webhook-secret-file, or as SHIP_LINEAR_CLIENT_ID, SHIP_LINEAR_CLIENT_SECRET and
SHIP_LINEAR_WEBHOOK_SECRET, or on standard input, a line for each that is missing.

With --grant authorization_code the app serves every workspace whose admin
installs it. "ship setup linear --install" prints a link for one of them.`,
		Example: `  ship setup linear --public-url https://ship.example.com
  ship setup linear --install`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.environ, o.in, o.out = os.Environ(), cmd.InOrStdin(), cmd.OutOrStdout()
			return setUpLinear(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.publicURL, "public-url", "", "where Linear reaches this ship, like https://ship.example.com (default: public_url of the settings)")
	f.StringVar(&o.name, "name", "ship", "name of the app, by which people mention it")
	f.StringVar(&o.developer, "developer", "", "who is named as the app's maker")
	f.StringVar(&o.grant, "grant", linear.GrantClient, "client_credentials for the one workspace that owns the app, authorization_code for several")
	f.StringVar(&o.dir, "out", ".", "folder to write to")
	f.StringVar(&o.config, "config", "", "settings file (default: SHIP_CONFIG, else ship.yaml in the folder)")
	f.BoolVar(&o.force, "force", false, "overwrite linear-client-secret and linear-webhook-secret if they are there")
	f.BoolVar(&o.install, "install", false, "print a link by which an admin installs the app in a workspace")
	f.StringVar(&o.clientID, "client-id", "", "client id of an app that is there already")
	f.StringVar(&o.secretFile, "client-secret-file", "", "file with its client secret")
	f.StringVar(&o.hookFile, "webhook-secret-file", "", "file with the signing secret of its webhook")
	f.StringVar(&o.apiURL, "api-url", "", "address of Linear's API, if it is another")
	f.StringVar(&o.tokenURL, "token-url", "", "address of Linear's tokens, if it is another")
	return cmd
}

// setUpLinear has a person make an app, and keeps what they bring back.
func setUpLinear(ctx context.Context, o linearSetup) error {
	o, err := o.complete()
	if err != nil {
		return err
	}
	if o.install {
		return o.printLink()
	}
	// What would go wrong at the end is found now, before anybody copies secrets.
	papers := linearPapers{drawer{dir: o.dir, config: o.config, force: o.force}}
	if err := papers.prepare(); err != nil {
		return err
	}
	reg, err := linear.Registration{Name: o.name, Developer: o.developer, PublicURL: o.publicURL, Public: o.grant == linear.GrantCode}.Check()
	if err != nil {
		return err
	}
	s, err := o.collect(ctx, reg)
	if err != nil {
		return err
	}
	if s.TokenKey, err = papers.tokenKey(s); err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return err
	}
	if err := o.try(ctx, s); err != nil {
		return err
	}
	return o.settle(papers, reg, s)
}

// complete fills in what the settings know, as far as they can be read.
func (o linearSetup) complete() (linearSetup, error) {
	if o.grant != linear.GrantClient && o.grant != linear.GrantCode {
		return o, fmt.Errorf("--grant is %s or %s, not %q", linear.GrantClient, linear.GrantCode, o.grant)
	}
	var err error
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return o, err
	}
	o.config = cmp.Or(o.config, variable(o.environ, "SHIP_CONFIG"), filepath.Join(o.dir, settingsFile))
	if s, err := readSettings(fileIfThere(o.config), without(o.environ, "SHIP_LINEAR_")); err == nil {
		o.publicURL = cmp.Or(o.publicURL, s.PublicURL)
	}
	if o.publicURL == "" && !o.install {
		return o, errors.New("give --public-url https://ship.example.com: Linear has to know where to send webhooks (it can be changed later; for a trial, the address of a tunnel will do)")
	}
	return o, nil
}

// printLink prints where an admin begins to install the app.
func (o linearSetup) printLink() error {
	s, err := readSettings(fileIfThere(o.config), o.environ)
	if err != nil {
		return err
	}
	if !s.Linear.Enabled() {
		return errors.New("the section linear is not set up: run ship setup linear --grant " + linear.GrantCode)
	}
	link, err := linear.InstallLink(s.Linear, cmp.Or(o.publicURL, s.PublicURL), time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintf(o.out, "An admin of the workspace opens this link, while ship serve runs. It is good for one workspace and for a day:\n\n  %s\n", link)
	return nil
}

// collect returns the app's three values, from where there are some.
func (o linearSetup) collect(ctx context.Context, reg linear.Registration) (linear.Settings, error) {
	s := linear.Settings{Grant: o.grant, APIURL: o.apiURL, TokenURL: o.tokenURL}
	secret, err := givenSecret(o.environ, o.secretFile, "SHIP_LINEAR_CLIENT_SECRET")
	if err != nil {
		return s, err
	}
	hook, err := givenSecret(o.environ, o.hookFile, "SHIP_LINEAR_WEBHOOK_SECRET")
	if err != nil {
		return s, err
	}
	s.ClientID = cmp.Or(o.clientID, variable(o.environ, "SHIP_LINEAR_CLIENT_ID"))
	if s.ClientID == "" || secret == "" || hook == "" {
		if err := o.guide(reg); err != nil {
			return s, err
		}
	}
	desk := newAsker(o.in, o.out)
	for _, q := range []struct {
		what   string
		answer *string
		secret bool
	}{{"Client ID", &s.ClientID, false}, {"Client secret", &secret, true}, {"Webhook signing secret", &hook, true}} {
		if *q.answer != "" {
			continue
		}
		if *q.answer, err = desk.ask(ctx, q.what, q.secret); err != nil {
			return s, err
		}
	}
	s.ClientSecret, s.WebhookSecret = config.NewSecret(secret), config.NewSecrets(hook)
	return s, nil
}

// guide says where to go and what to click.
func (o linearSetup) guide(reg linear.Registration) error {
	page, err := reg.Page()
	if err != nil {
		return err
	}
	toggle := "Client credentials is on: ship gets its tokens by them"
	if o.grant == linear.GrantCode {
		toggle = "Public is on, if workspaces other than this one shall install the app"
	}
	fmt.Fprintf(o.out, `1. Open this in a browser, as an admin of the workspace:

  %s

2. Linear shows its form for a new app, filled in. See to it that
   - Webhooks is on and leads to %s
   - Agent session events, Inbox notifications and Permission changes are chosen
   - %s
   and create the app. Its name and icon are what people will see.

3. Copy three values of the app's page here.

`, page, reg.PublicURL+linear.HookPath, toggle)
	return nil
}

// try has Linear say what it thinks of the credentials.
func (o linearSetup) try(ctx context.Context, s linear.Settings) error {
	ctx, cancel := context.WithTimeout(ctx, linearTime)
	defer cancel()
	inspector := linear.NewInspector(s, nil)
	if s.Grant == linear.GrantCode {
		if err := inspector.Known(ctx); err != nil {
			return refusedBy(err)
		}
		fmt.Fprintln(o.out, "Linear knows the app.")
		return nil
	}
	visit, err := inspector.Enter(ctx)
	if err != nil {
		return refusedBy(err)
	}
	viewer, err := visit.Viewer(ctx)
	switch {
	case err != nil:
		return err
	case !viewer.App:
		return errors.New("these are the values of something else: Linear takes them for a person, not for an app")
	}
	fmt.Fprintf(o.out, "Linear lets ship into the workspace %s (%s), as %s.\n", viewer.Workspace, viewer.URLKey, viewer.Name)
	return nil
}

// refusedBy adds what to do.
func refusedBy(err error) error {
	switch {
	case errors.Is(err, linear.ErrCredentials):
		return fmt.Errorf("%w: compare both with the app's page", err)
	case errors.Is(err, linear.ErrNotGranted):
		return fmt.Errorf("%w: turn on Client credentials on the app's page, or use --grant %s", err, linear.GrantCode)
	}
	return err
}

// settle keeps what the person brought and says what comes next.
func (o linearSetup) settle(p linearPapers, reg linear.Registration, s linear.Settings) error {
	kept, err := p.keep(reg, s)
	if err != nil {
		return err
	}
	kept.say(o.out, p.config, "linear")
	fmt.Fprintf(o.out, `
Next:
  1. Say in ship.yaml which repository a team or a project belongs to, and who
     people are on GitHub: repositories and access.people, see docs/linear.md.
  2. Run: ship doctor --config %s
  3. Start ship anew, and delegate an issue to %s in Linear.
`, p.config, reg.Name)
	if s.Grant != linear.GrantCode {
		return nil
	}
	fmt.Fprintln(o.out)
	link, err := linear.InstallLink(s, reg.PublicURL, time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintf(o.out, `When ship runs, an admin of each workspace installs the app. This link is good
for one workspace and for a day; ship setup linear --install prints others:

  %s
`, link)
	return nil
}
