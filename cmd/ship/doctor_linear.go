package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"ship/bot"
	"ship/integrations"
	"ship/integrations/linear"
	"ship/session"
)

// lowShare of an allowance is when somebody should look who else uses it.
const lowShare = 0.1

// linearChecks are those for Linear. They say nothing where it is not set up.
func linearChecks() []check {
	list := []check{
		{name: "linear.app", after: []string{"settings"}, run: just(checkLinearApp)},
		{name: "linear.scopes", after: []string{"settings", "linear.app"}, run: just(checkLinearScopes)},
		{name: "linear.limits", after: []string{"settings", "linear.app"}, run: checkLinearLimits},
		{name: "linear.address", after: []string{"settings"}, run: just(checkLinearAddress)},
		{name: "linear.repositories", after: []string{"settings", "github.app"}, run: checkRoutes},
		{name: "linear.people", after: []string{"settings"}, run: checkPeople},
		{name: "linear.ping", after: []string{"settings"}, run: just(checkLinearPing)},
	}
	for i := range list {
		list[i].needed = func(p *patient) bool { return p.settings.Linear.Enabled() }
	}
	return list
}

// checkLinearApp asks Linear for a token, or only whether it would: where
// admins install the app, the tokens are theirs.
func checkLinearApp(ctx context.Context, p *patient) finding {
	inspector := linear.NewInspector(p.settings.Linear, nil)
	ctx, cancel := context.WithTimeout(ctx, linearTime)
	defer cancel()
	if p.settings.Linear.Grant == linear.GrantCode {
		if err := inspector.Known(ctx); err != nil {
			return linearRefusal(err)
		}
		return good("Linear knows the app; each workspace's admin installs it: ship setup linear --install")
	}
	visit, err := inspector.Enter(ctx)
	if err != nil {
		return linearRefusal(err)
	}
	viewer, err := visit.Viewer(ctx)
	switch {
	case err != nil:
		return bad("check the network and linear.api_url", "%v", err)
	case !viewer.App:
		return bad("ship setup linear", "Linear takes the token for a person, %s, and not for an app", viewer.Name)
	}
	p.visit = visit
	return good("%s, in the workspace %s, linear.app/%s", viewer.Name, viewer.Workspace, viewer.URLKey)
}

func linearRefusal(err error) finding {
	switch {
	case errors.Is(err, linear.ErrCredentials):
		return bad("compare linear.client_id and linear.client_secret with the app's page", "%v", err)
	case errors.Is(err, linear.ErrNotGranted):
		return bad("turn on Client credentials on the app's page, or set linear.grant to "+linear.GrantCode, "%v", err)
	}
	return bad("check the network and linear.token_url", "%v", err)
}

func checkLinearScopes(_ context.Context, p *patient) finding {
	const remedy = "install the app anew; nothing but its own page or its admin takes scopes away"
	switch {
	case p.visit == nil:
		return good("each workspace's admin agrees to those that are needed")
	case p.visit.Scopes == nil:
		return doubt("", "Linear does not say what the token may do")
	}
	if lacking := linear.LackingScopes(p.visit.Scopes); len(lacking) > 0 {
		return bad(remedy, "the token lacks %s", strings.Join(lacking, ", "))
	}
	return good("%s", strings.Join(p.visit.Scopes, ", "))
}

func checkLinearLimits(ctx context.Context, p *patient) []finding {
	if p.visit == nil {
		return []finding{good("each workspace has its own")}
	}
	ctx, cancel := context.WithTimeout(ctx, linearTime)
	defer cancel()
	limits, err := p.visit.Limits(ctx)
	if err != nil {
		return []finding{doubt("try again later", "%v", err)}
	}
	var found []finding
	for _, l := range limits {
		text := fmt.Sprintf("%s: %.0f of %.0f are left", strings.ToLower(l.Kind), l.Left, l.Allowed)
		f := good("%s", text)
		if l.Left < l.Allowed*lowShare {
			f = doubt("see who else uses this app's credentials", "%s", text)
		}
		found = append(found, f)
	}
	return found
}

// checkLinearAddress looks whether Linear can deliver at all. Where it does,
// only the app's page tells.
func checkLinearAddress(_ context.Context, p *patient) finding {
	const remedy = "set public_url to where Linear reaches this ship, over https"
	if p.settings.PublicURL == "" {
		return bad(remedy, "public_url is not set, so nobody knows where Linear is to deliver")
	}
	target := strings.TrimRight(p.settings.PublicURL, "/") + linear.HookPath
	if err := bot.CheckPublic(p.settings.PublicURL, "Linear"); err != nil {
		return doubt(remedy, "%v", err)
	}
	return good("the webhook of the app has to lead to %s", target)
}

// checkRoutes looks whether each repository that work may go to can be had.
func checkRoutes(ctx context.Context, p *patient) []finding {
	opened, err := integrations.Open(integrations.Settings{GitHub: p.settings.GitHub}, integrations.Deps{Permission: p.settings.Access.Permission})
	if err != nil {
		return []finding{bad("ship setup github", "%v", err)}
	}
	names := routed(p.settings)
	if len(names) == 0 {
		return []finding{doubt("fill in repositories, so that not everything begins with a question", "none is named; ship asks which one is meant")}
	}
	host, err := codeHost(opened)
	if err != nil {
		return []finding{bad("ship setup github", "%v", err)}
	}
	var found []finding
	for i, name := range names {
		if i == maxCounted {
			return append(found, good("the others were not looked at"))
		}
		found = append(found, checkRoute(ctx, host, name))
	}
	return found
}

func checkRoute(ctx context.Context, host *integrations.CodeHost, name string) finding {
	ctx, cancel := context.WithTimeout(ctx, hubTime)
	defer cancel()
	_, base, err := host.Repositories.Repository(ctx, name)
	if problem, ok := errors.AsType[*session.Problem](err); ok {
		return bad("correct repositories, or install the app there", "%s: %s", name, strings.ReplaceAll(problem.Say, "`", ""))
	}
	if err != nil {
		return bad("try again", "%s: %v", name, err)
	}
	return good("%s, from its branch %s", name, base)
}

// routed are the repositories that the settings name, each once.
func routed(s Settings) []string {
	var names []string
	for _, rules := range []map[string]string{s.Routes.Labels, s.Routes.Projects, s.Routes.Teams, s.Routes.Channels, s.Routes.Users} {
		names = slices.AppendSeq(names, maps.Values(rules))
	}
	if s.Routes.Default != "" {
		names = append(names, s.Routes.Default)
	}
	slices.Sort(names)
	return slices.CompactFunc(names, strings.EqualFold)
}

// linearID is what an account's id is like in Linear.
var linearID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func checkPeople(_ context.Context, p *patient) []finding {
	people := p.settings.Access.People
	var found []finding
	if p.settings.Access.Unmatched == "allow" {
		found = append(found, doubt("set access.unmatched to refuse", "everybody who can write to ship in Linear or Slack may command it, whatever they may do on GitHub"))
	}
	for _, key := range slices.Sorted(maps.Keys(people)) {
		if id := strings.TrimSpace(key); !strings.Contains(id, "@") && !linearID.MatchString(id) && !slackID.MatchString(id) {
			found = append(found, doubt("write an e-mail address, or the id of an account", "access.people: %s is neither, so nobody is found by it", key))
		}
	}
	if len(people) == 0 {
		return append(found, good("nobody is named; people are found on GitHub by the e-mail address that they show there"))
	}
	return append(found, good("%s named; others are found on GitHub by the e-mail address that they show there", plural(len(people), "account")))
}

// checkLinearPing sends what Linear never sends, but signed as Linear does.
func checkLinearPing(ctx context.Context, p *patient) finding {
	return p.knock(ctx, door{
		platform: "Linear", key: "linear.webhook_secret", path: linear.HookPath, secrets: p.settings.Linear.WebhookSecret, answer: "ignored",
		sign: func(secret string) (signed, error) {
			return signLinear([]byte(linearPing), secret, newGUID(), time.Now())
		},
		misread: "what answers does not understand Linear's webhooks", remedy: "restart ship after an update; else another program answers there",
	})
}
