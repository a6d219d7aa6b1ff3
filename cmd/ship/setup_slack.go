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
	"ship/integrations/slack"
)

// slackTime is how long Slack may take to say what it thinks of a token.
const slackTime = 20 * time.Second

// slackVariables is what the variables of the section slack begin with.
const slackVariables = "SHIP_SLACK_"

// slackSetup holds the flags of `ship setup slack`.
type slackSetup struct {
	name, dir, config, publicURL, apiURL string
	botFile, signingFile, appFile        string
	socket, force                        bool
	environ                              []string
	in                                   io.Reader
	out                                  io.Writer
}

func setupSlackCommand() *cobra.Command {
	var o slackSetup
	cmd := &cobra.Command{
		Use:   "slack",
		Short: "Set up the app of Slack and write its settings",
		Long: `Prints a link to Slack's form for a new app, filled in with what ship needs, and
asks for two values that the app's pages show then: the bot token, and the
signing secret. They are tried at once as far as they can be, and written to
files that only you can read. The section slack is added to ship.yaml if there is
none; what is there is left as it is.

Without a public_url, or with --socket, ship fetches everything over Socket Mode
and Slack need not reach it. Then an app-level token takes the place of the
signing secret.

Scripts give the values as --bot-token-file, --signing-secret-file and
--app-token-file, or as SHIP_SLACK_BOT_TOKEN, SHIP_SLACK_SIGNING_SECRET and
SHIP_SLACK_APP_TOKEN, or on standard input, a line for each that is missing.`,
		Example: `  ship setup slack --public-url https://ship.example.com
  ship setup slack --socket`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.environ, o.in, o.out = os.Environ(), cmd.InOrStdin(), cmd.OutOrStdout()
			return setUpSlack(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.publicURL, "public-url", "", "where Slack reaches this ship, like https://ship.example.com (default: public_url of the settings)")
	f.BoolVar(&o.socket, "socket", false, "use Socket Mode even where there is a public_url")
	f.StringVar(&o.name, "name", "ship", "name of the app, by which people mention it")
	f.StringVar(&o.dir, "out", ".", "folder to write to")
	f.StringVar(&o.config, "config", "", "settings file (default: SHIP_CONFIG, else ship.yaml in the folder)")
	f.BoolVar(&o.force, "force", false, "overwrite slack-bot-token, slack-signing-secret and slack-app-token if they are there")
	f.StringVar(&o.botFile, "bot-token-file", "", "file with the bot token of an app that is there already")
	f.StringVar(&o.signingFile, "signing-secret-file", "", "file with its signing secret")
	f.StringVar(&o.appFile, "app-token-file", "", "file with its app-level token; implies --socket")
	f.StringVar(&o.apiURL, "api-url", "", "address of Slack's API, if it is another")
	return cmd
}

// setUpSlack has a person make an app, and keeps what they bring back.
func setUpSlack(ctx context.Context, o slackSetup) error {
	o, err := o.complete()
	if err != nil {
		return err
	}
	reg, err := o.registration().Check()
	if err != nil {
		return err
	}
	// What would go wrong at the end is found now, before anybody copies secrets.
	papers := slackPapers{drawer{dir: o.dir, config: o.config, force: o.force}}
	if err := papers.prepare(o.socket); err != nil {
		return err
	}
	s, err := o.collect(ctx, reg)
	if err != nil {
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

// registration is the app that Slack is asked to make.
func (o slackSetup) registration() slack.Registration {
	if o.socket {
		return slack.Registration{Name: o.name}
	}
	return slack.Registration{Name: o.name, PublicURL: o.publicURL}
}

// complete fills in what the settings know, and decides how Slack is heard.
func (o slackSetup) complete() (slackSetup, error) {
	var err error
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return o, err
	}
	o.config = cmp.Or(o.config, variable(o.environ, "SHIP_CONFIG"), filepath.Join(o.dir, settingsFile))
	const token = slackVariables + "APP_TOKEN" // with it ship serve uses Socket Mode as well
	o.socket = o.socket || o.appFile != "" || variable(o.environ, token) != "" || variable(o.environ, token+"_FILE") != ""
	if o.publicURL != "" || o.socket {
		return o, nil
	}
	s, err := readSettings(fileIfThere(o.config), without(o.environ, slackVariables))
	if err != nil {
		return o, fmt.Errorf("look for public_url (or give --public-url or --socket): %w", err)
	}
	o.publicURL, o.socket = s.PublicURL, s.PublicURL == ""
	return o, nil
}

// collect returns the app's values, from where there are some.
func (o slackSetup) collect(ctx context.Context, reg slack.Registration) (slack.Settings, error) {
	bot := slackValue{what: "Bot token", file: o.botFile, variable: slackVariables + "BOT_TOKEN"}
	way := slackValue{what: "Signing secret", file: o.signingFile, variable: slackVariables + "SIGNING_SECRET"}
	if o.socket {
		way = slackValue{what: "App-level token", file: o.appFile, variable: slackVariables + "APP_TOKEN"}
	}
	s := slack.Settings{APIURL: cmp.Or(o.apiURL, slack.DefaultAPIURL)}
	for _, v := range []*slackValue{&bot, &way} {
		var err error
		if v.is, err = givenSecret(o.environ, v.file, v.variable); err != nil {
			return s, err
		}
	}
	if bot.is == "" || way.is == "" {
		if err := o.guide(reg); err != nil {
			return s, err
		}
	}
	desk := newAsker(o.in, o.out)
	for _, v := range []*slackValue{&bot, &way} {
		var err error
		if v.is != "" {
			continue
		}
		if v.is, err = desk.ask(ctx, v.what, true); err != nil {
			return s, err
		}
	}
	s.BotToken = config.NewSecret(bot.is)
	if o.socket {
		s.AppToken = config.NewSecret(way.is)
	} else {
		s.SigningSecret = config.NewSecrets(way.is)
	}
	return s, nil
}

// slackValue is a secret of the app's, and where it may come from.
type slackValue struct{ what, file, variable, is string }

// guide says where to go and what to click.
func (o slackSetup) guide(reg slack.Registration) error {
	page, err := reg.Page()
	if err != nil {
		return err
	}
	second := "Signing secret: Basic Information, App Credentials"
	if o.socket {
		second = "App-level token: Basic Information, App-Level Tokens, Generate, with the scope\n     connections:write. It begins with xapp-"
	}
	fmt.Fprintf(o.out, `1. Open this in a browser in which you are signed in to the workspace:

  %s

2. Slack shows its form for a new app, filled in. Choose the workspace and create
   the app. Then choose Install App, and let it in. An admin may have to agree.

3. Copy two values of the app's pages here.
   - Bot token: OAuth & Permissions. It begins with xoxb-
   - %s

`, page, second)
	return nil
}

// try has Slack say what it thinks of the tokens. A signing secret is proved by
// the first delivery.
func (o slackSetup) try(ctx context.Context, s slack.Settings) error {
	ctx, cancel := context.WithTimeout(ctx, slackTime)
	defer cancel()
	inspector := slack.NewInspector(s, nil)
	who, err := inspector.Holder(ctx)
	switch {
	case errors.Is(err, slack.ErrBotToken):
		return fmt.Errorf("%w: copy it anew from OAuth & Permissions on the app's page", err)
	case err != nil:
		return err
	case !who.App:
		return errors.New("this is the token of a person, and not of the app's bot: copy the one that begins with xoxb-")
	}
	if o.socket {
		switch err := inspector.Socket(ctx); {
		case errors.Is(err, slack.ErrAppToken), errors.Is(err, slack.ErrScope):
			return fmt.Errorf("%w: make an app-level token with the scope connections:write, and see that Socket Mode is on", err)
		case err != nil:
			return err
		}
	}
	fmt.Fprintf(o.out, "Slack lets ship into the workspace %s (%s), as %s.\n", who.Workspace, who.Host, who.Name)
	if who.Scopes != nil {
		o.sayLacking(slack.LackingScopes(who.Scopes))
	}
	return nil
}

// sayLacking names the scopes that somebody took out of the manifest.
func (o slackSetup) sayLacking(scopes []slack.Scope) {
	for _, s := range scopes {
		fmt.Fprintf(o.out, "Without the scope %s, %s.\n", s.Name, s.Without)
	}
}

// settle keeps what the person brought and says what comes next.
func (o slackSetup) settle(p slackPapers, reg slack.Registration, s slack.Settings) error {
	kept, err := p.keep(reg, s)
	if err != nil {
		return err
	}
	kept.say(o.out, p.config, "slack")
	start := "Start ship anew."
	if !o.socket {
		start = "Start ship anew. Then open Event Subscriptions on the app's page and have Slack\n     try the address again: until now ship could not answer it."
	}
	fmt.Fprintf(o.out, `
Next:
  1. Say in ship.yaml which repository a channel belongs to, and who people are
     on GitHub: repositories and access.people, see docs/slack.md.
  2. Run: ship doctor --config %s
  3. %s
  4. Invite it to a channel in Slack, and mention it there:
     /invite @%s
     @%[3]s help
`, p.config, start, reg.Name)
	return nil
}
