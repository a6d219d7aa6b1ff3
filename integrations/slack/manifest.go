package slack

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"ship/bot"
)

// HookPath is where Slack delivers everything to, below the public address.
const HookPath = "/webhooks/slack"

const (
	// newAppPage is Slack's form for a new app, in the browser of whoever is
	// signed in. The manifest follows.
	newAppPage = "https://api.slack.com/apps?new_app=1&manifest_json="
	// maxAppName is the longest name of an app, in characters.
	maxAppName = 35
)

// Registration describes an app that is about to be made. Nobody makes one but
// a person: Page leads to Slack's form, filled in, and what Slack gives out
// then is copied by hand.
type Registration struct {
	// Name is how people see and mention the app; empty: "ship".
	Name string
	// PublicURL is where Slack delivers to, over https; empty: nowhere, for ship
	// fetches everything over Socket Mode.
	PublicURL string
}

// Check returns the registration with its defaults, or says what Slack would
// refuse.
func (r Registration) Check() (Registration, error) {
	r.Name = cmp.Or(r.Name, "ship")
	r.PublicURL = strings.TrimRight(r.PublicURL, "/")
	if n := len([]rune(r.Name)); n > maxAppName {
		return r, fmt.Errorf("slack: an app's name has up to %d characters, this one %d", maxAppName, n)
	}
	if strings.Contains(strings.ToLower(r.Name), "slack") {
		return r, errors.New("slack: an app's name does not hold Slack's own")
	}
	if r.PublicURL == "" {
		return r, nil
	}
	if err := bot.CheckPublic(r.PublicURL, "Slack"); err != nil {
		return r, fmt.Errorf("slack: %w; Socket Mode needs none", err)
	}
	return r, nil
}

// Page is Slack's form for a new app, filled in with the manifest.
func (r Registration) Page() (string, error) {
	manifest, err := r.Manifest()
	if err != nil {
		return "", err
	}
	var short bytes.Buffer
	if err := json.Compact(&short, manifest); err != nil {
		return "", fmt.Errorf("slack: shorten the manifest: %w", err)
	}
	return newAppPage + strings.ReplaceAll(url.QueryEscape(short.String()), "+", "%20"), nil // which nobody reads as a plus
}

// part of a manifest. What is false is said, for what is left out need not be
// false to Slack: people could not write to an app that does not say so.
type part = map[string]any

// Manifest is the app as Slack takes it, as indented JSON. Equal registrations
// make equal manifests.
func (r Registration) Manifest() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(part{
		"_metadata": part{"major_version": 1, "minor_version": 1},
		"display_information": part{
			"name": r.Name, "description": "Turns what people ask for into draft pull requests", "background_color": "#1f2937",
		},
		"features":     r.features(),
		"oauth_config": part{"scopes": part{"bot": scopeNames()}},
		"settings":     r.settings(),
	})
	if err != nil {
		return nil, fmt.Errorf("slack: write the manifest: %w", err)
	}
	return out.Bytes(), nil
}

// features are what people see of the app.
func (r Registration) features() part {
	prompt := func(title, message string) part { return part{"title": title, "message": message} }
	return part{
		// The only layout of conversations with it that new apps get.
		"agent_view": part{
			"agent_description": "Say what to do and in which repository: " + r.Name + " works on it, opens a draft pull request and reports back in the thread.",
			"suggested_prompts": []part{
				prompt("Fix a bug", "[repo=OWNER/NAME] Find out why … fails, and fix it"),
				prompt("Ask about the code", "[repo=OWNER/NAME] How does … work?"),
				prompt("What can you do?", "help"),
			},
		},
		"app_home": part{"home_tab_enabled": false, "messages_tab_enabled": true, "messages_tab_read_only_enabled": false},
		"bot_user": part{"display_name": r.Name, "always_online": true},
		"shortcuts": []part{{
			"name": "Ship this", "type": "message", "callback_id": callbackMessage,
			"description": "Has " + r.Name + " do what the message is about",
		}},
		"slash_commands": []part{r.delivered("url", part{
			"command": "/ship", "description": "Opens a thread and begins to work", "usage_hint": "fix the login [repo=OWNER/NAME]",
			// Mentions and links come with their ids, as in messages, and not as
			// the words that stand for them.
			"should_escape": true,
		})},
	}
}

func (r Registration) settings() part {
	return part{
		"event_subscriptions":    r.delivered("request_url", part{"bot_events": botEvents()}),
		"interactivity":          r.delivered("request_url", part{"is_enabled": true}),
		"org_deploy_enabled":     false,
		"socket_mode_enabled":    r.PublicURL == "",
		"token_rotation_enabled": false,
	}
}

// delivered adds where something is delivered to, if it is.
func (r Registration) delivered(key string, p part) part {
	if r.PublicURL != "" {
		p[key] = r.PublicURL + HookPath
	}
	return p
}

// botEvents are what the app subscribes to. Those that ship takes no notice of
// belong to the agent view.
func botEvents() []string {
	return []string{
		eventStopped, "agent_session_title_changed", "app_home_opened", eventMention, eventUninstalled,
		"message.channels", "message.groups", "message.im", "message.mpim", eventRevoked,
	}
}
