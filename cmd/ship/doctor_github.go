package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ship/integrations/github"
)

const (
	// hubTime is how long GitHub may take for one answer.
	hubTime = 10 * time.Second
	// The app's signatures are dated 30 seconds back and live for two minutes,
	// so a clock that is further off gets them refused.
	driftShown, driftFatal = 5 * time.Second, 25 * time.Second
	// maxCounted installations have their repositories counted.
	maxCounted = 20
)

// hub is what GitHub can be asked about the app. A github.Inspector is one.
type hub interface {
	About(ctx context.Context) (github.About, time.Time, error)
	Hook(ctx context.Context) (github.Hook, error)
	Installations(ctx context.Context) ([]github.Installed, error)
	Repositories(ctx context.Context, installation int64) (int, error)
}

func checkApp(ctx context.Context, p *patient) finding {
	if !p.settings.GitHub.Enabled() {
		return bad("ship setup github", "no GitHub App is set up")
	}
	inspector, err := github.NewInspector(p.settings.GitHub.Config())
	if err != nil {
		return bad("generate a private key on the app's page, and set github.private_key_file to it", "%v", err)
	}
	p.hub = inspector
	ctx, cancel := context.WithTimeout(ctx, hubTime)
	defer cancel()
	about, at, err := p.hub.About(ctx)
	if !at.IsZero() {
		drift := time.Since(at).Truncate(time.Second)
		p.drift = &drift
	}
	switch {
	case errors.Is(err, github.ErrKey):
		return bad("compare github.app_id and github.private_key with the app's page, and see github.clock", "GitHub does not accept app_id %d with this key", p.settings.GitHub.AppID)
	case err != nil:
		return bad("check the network and github.api_url", "%v", err)
	}
	p.about = about
	return good("%s, app_id %d, %s", about.Slug, p.settings.GitHub.AppID, about.URL)
}

func checkClock(_ context.Context, p *patient) finding {
	const remedy = "let the system set the clock (NTP)"
	switch {
	case p.drift == nil:
		return finding{Status: unknown, What: "not checked, because GitHub did not answer"}
	case p.drift.Abs() > driftFatal:
		return bad(remedy, "this machine's clock is %s, which GitHub refuses", tellDrift(*p.drift))
	case p.drift.Abs() > driftShown:
		return doubt(remedy, "this machine's clock is %s", tellDrift(*p.drift))
	}
	return good("this machine's clock agrees with GitHub's")
}

func tellDrift(d time.Duration) string {
	if d < 0 {
		return d.Abs().String() + " behind GitHub's"
	}
	return d.String() + " ahead of GitHub's"
}

func checkPermissions(_ context.Context, p *patient) finding {
	needs, err := github.Needed()
	if err != nil {
		return bad("", "%v", err)
	}
	if lacking := needs.Lacking(p.about.Permissions); len(lacking) > 0 {
		return bad("add them on the app's page, then accept them for each installation", "the app does not ask for %s", strings.Join(lacking, ", "))
	}
	if p.about.Permissions["workflows"] != "write" {
		return good("all that are needed; without workflows: write, GitHub refuses changes below .github/workflows")
	}
	return good("all that are needed, and workflows: write")
}

func checkEvents(_ context.Context, p *patient) finding {
	needs, err := github.Needed()
	if err != nil {
		return bad("", "%v", err)
	}
	if unheard := needs.Unheard(p.about.Events); len(unheard) > 0 {
		return bad("subscribe to them on the app's page", "the app is not sent %s", strings.Join(unheard, ", "))
	}
	return good("all %d that are handled", len(needs.Events))
}

func checkHook(ctx context.Context, p *patient) finding {
	ctx, cancel := context.WithTimeout(ctx, hubTime)
	defer cancel()
	hook, err := p.hub.Hook(ctx)
	want := p.settings.PublicURL + hookPath
	switch {
	case err != nil:
		return bad("try again", "%v", err)
	case hook.URL == "":
		return bad("set the webhook's URL on the app's page", "GitHub sends no webhooks: the app has no address for them")
	case hook.ContentType != "json":
		return bad("choose application/json on the app's page", "the webhook's content type is %s", hook.ContentType)
	case p.settings.PublicURL == "":
		return doubt("set public_url to where that leads", "GitHub sends to %s, and public_url is not set", hook.URL)
	case hook.URL != want:
		return bad("correct one of the two", "GitHub sends to %s, but public_url says %s", hook.URL, want)
	case hook.Insecure && strings.HasPrefix(hook.URL, "https:"):
		return doubt("enable SSL verification on the app's page", "GitHub sends to %s without verifying its certificate", hook.URL)
	}
	return good("GitHub sends JSON to %s", hook.URL)
}

func checkInstallations(ctx context.Context, p *patient) []finding {
	install := p.about.URL + "/installations/new"
	needs, err := github.Needed()
	if err != nil {
		return []finding{bad("", "%v", err)}
	}
	all, err := p.hub.Installations(ctx)
	switch {
	case err != nil:
		return []finding{bad("try again", "%v", err)}
	case len(all) == 0:
		return []finding{bad("install it: "+install, "the app is installed nowhere")}
	}
	found := []finding{good("on %s", plural(len(all), "account"))}
	for i, in := range all {
		if i == maxCounted {
			return append(found, good("the others were not looked at"))
		}
		found = append(found, checkInstallation(ctx, p, needs, in))
	}
	return found
}

func checkInstallation(ctx context.Context, p *patient, needs github.Needs, in github.Installed) finding {
	if in.Suspended {
		return doubt("its owner can unsuspend it in GitHub's settings", "%s: suspended", in.Account)
	}
	if lacking := needs.Lacking(in.Permissions); len(lacking) > 0 {
		return doubt("its owner has to accept them in GitHub's settings", "%s: not granted %s", in.Account, strings.Join(lacking, ", "))
	}
	ctx, cancel := context.WithTimeout(ctx, hubTime)
	defer cancel()
	n, err := p.hub.Repositories(ctx, in.ID)
	switch {
	case err != nil:
		return bad("try again", "%s: %v", in.Account, err)
	case n == 0:
		return doubt("choose repositories: "+p.about.URL+"/installations/new", "%s: on no repository", in.Account)
	}
	return good("%s: %s", in.Account, plural(n, "repository"))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
