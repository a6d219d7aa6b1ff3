package main

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"ship/bot"
	"ship/integrations/slack"
)

// slackChecks are those for Slack. They say nothing where it is not set up.
func slackChecks() []check {
	app := []string{"settings", "slack.app"}
	list := []check{
		{name: "slack.app", after: []string{"settings"}, run: just(checkSlackApp)},
		{name: "slack.scopes", after: app, run: checkSlackScopes},
		{name: "slack.account", after: app, run: just(checkSlackAccount)},
		{name: "slack.socket", after: app, run: just(checkSlackSocket), needed: bySocket},
		{name: "slack.address", after: []string{"settings"}, run: just(checkSlackAddress), needed: byDelivery},
		{name: "slack.repositories", after: []string{"settings", "github.app"}, run: checkRoutes, needed: withoutLinear},
		{name: "slack.people", after: []string{"settings"}, run: checkPeople, needed: withoutLinear},
		{name: "slack.ping", after: []string{"settings"}, run: just(checkSlackPing), needed: byDelivery},
	}
	for i := range list {
		also := list[i].needed
		list[i].needed = func(p *patient) bool { return p.settings.Slack.Enabled() && (also == nil || also(p)) }
	}
	return list
}

func bySocket(p *patient) bool   { return p.settings.Slack.SocketMode() }
func byDelivery(p *patient) bool { return !bySocket(p) }

// withoutLinear: else the same was looked at for Linear.
func withoutLinear(p *patient) bool { return !p.settings.Linear.Enabled() }

func (p *patient) inspectSlack() *slack.Inspector { return slack.NewInspector(p.settings.Slack, nil) }

const (
	slackUnheard = "check the network and slack.api_url"
	slackInstall = "on the app's page, OAuth & Permissions, and install the app again"
)

func checkSlackApp(ctx context.Context, p *patient) finding {
	ctx, cancel := context.WithTimeout(ctx, slackTime)
	defer cancel()
	holder, err := p.inspectSlack().Holder(ctx)
	switch {
	case errors.Is(err, slack.ErrBotToken):
		return bad("copy slack.bot_token anew from the app's page, OAuth & Permissions; if the app was removed, install it there again", "%v", err)
	case err != nil:
		return bad(slackUnheard, "%v", err)
	case !holder.App:
		return bad("ship setup slack", "Slack takes the token for a person, %s, and not for an app", holder.Name)
	}
	p.holder = holder
	return good("%s, in the workspace %s, %s", holder.Name, holder.Workspace, holder.Host)
}

// checkSlackScopes says for each that is lacking what does not work.
func checkSlackScopes(_ context.Context, p *patient) []finding {
	if p.holder.Scopes == nil {
		return []finding{doubt("", "Slack does not say what the token may do")}
	}
	var found []finding
	for _, s := range slack.LackingScopes(p.holder.Scopes) {
		blame := doubt
		if s.Needed {
			blame = bad
		}
		found = append(found, blame("add it "+slackInstall, "without %s, %s", s.Name, s.Without))
	}
	if len(found) == 0 {
		return []finding{good("all that are needed")}
	}
	return found
}

// checkSlackAccount looks its own account up, as ship looks up everybody who
// asks for something.
func checkSlackAccount(ctx context.Context, p *patient) finding {
	ctx, cancel := context.WithTimeout(ctx, slackTime)
	defer cancel()
	account, err := p.inspectSlack().Account(ctx, p.holder.User)
	switch {
	case errors.Is(err, slack.ErrScope):
		return bad("add users:read "+slackInstall, "ship cannot look up who asks: %v", err)
	case err != nil:
		return bad(slackUnheard, "ship cannot look up who asks: %v", err)
	case account.Gone:
		return bad("install the app again", "the account of %s is deactivated", account.Name)
	}
	return good("people can be looked up, %s itself for one", account.Name)
}

func checkSlackSocket(ctx context.Context, p *patient) finding {
	ctx, cancel := context.WithTimeout(ctx, slackTime)
	defer cancel()
	err := p.inspectSlack().Socket(ctx)
	switch {
	case errors.Is(err, slack.ErrScope):
		return bad("make another on the app's page, Basic Information, App-Level Tokens", "the app-level token lacks the scope connections:write")
	case errors.Is(err, slack.ErrAppToken):
		return bad("compare slack.app_token with the app's page, Basic Information, and turn Socket Mode on there", "%v", err)
	case err != nil:
		return bad(slackUnheard+", or try again in a minute", "%v", err)
	}
	return good("Slack gives sockets, so it need not reach this ship")
}

// checkSlackAddress looks whether Slack can deliver at all. Where it does, only
// the app's page tells.
func checkSlackAddress(_ context.Context, p *patient) finding {
	const remedy = "set public_url to where Slack reaches this ship, over https, or use Socket Mode: ship setup slack --socket"
	if p.settings.PublicURL == "" {
		return bad(remedy, "public_url is not set, so nobody knows where Slack is to deliver")
	}
	if err := bot.CheckPublic(p.settings.PublicURL, "Slack"); err != nil {
		return doubt(remedy, "%v", err)
	}
	return good("events, commands and buttons of the app have to lead to %s", strings.TrimRight(p.settings.PublicURL, "/")+slack.HookPath)
}

// slackID is what an account's id is like in Slack.
var slackID = regexp.MustCompile(`^[UW][A-Z0-9]{4,}$`)

// checkSlackPing sends what Slack sends when somebody types the address in.
func checkSlackPing(ctx context.Context, p *patient) finding {
	return p.knock(ctx, door{
		platform: "Slack", key: "slack.signing_secret", path: slack.HookPath, secrets: p.settings.Slack.SigningSecret, answer: slackChallenge,
		sign:    func(secret string) (signed, error) { return signSlack([]byte(slackPing), secret, time.Now()) },
		misread: "what answers does not understand Slack", remedy: "restart ship after an update; else another program answers there",
	})
}
