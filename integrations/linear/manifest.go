package linear

import (
	"cmp"
	_ "embed" // for the manifest
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"ship/bot"
)

// manifestJSON is what an OAuth app for ship is like. It is the same as
// deploy/linear/manifest.json, which Go cannot embed from there.
//
//go:embed manifest.json
var manifestJSON []byte

const (
	// placeholder stands for ship's own address in the manifest.
	placeholder = "https://SHIP_HOST"
	// newAppPage is Linear's form for a new app, in the workspace that the
	// person's browser is signed in to.
	newAppPage = "https://linear.app/settings/api/applications/new"
	// minAppName and maxAppName bound an app's name, in characters.
	minAppName, maxAppName = 2, 80
)

// Paths below the public address that Linear, and browsers that come from
// there, are led to.
const (
	HookPath     = "/webhooks/linear"
	InstallPath  = "/setup/linear"
	callbackPath = InstallPath + "/callback"
)

// Registration describes an OAuth app that is about to be made from the
// manifest. Nothing makes one but a person: Page is Linear's form, filled in,
// and what the form gives out is copied by hand.
type Registration struct {
	// Name is how people see and mention the app; empty: "ship".
	Name string
	// Developer is who is named as its maker; empty: as the manifest has it.
	Developer string
	// PublicURL is where Linear delivers webhooks to, over https.
	PublicURL string
	// Public apps can be installed in other workspaces than their own.
	Public bool
}

// Check returns the registration with its defaults, or says what Linear would
// refuse.
func (r Registration) Check() (Registration, error) {
	r.Name = cmp.Or(r.Name, "ship")
	r.PublicURL = strings.TrimRight(r.PublicURL, "/")
	if n := len([]rune(r.Name)); n < minAppName || n > maxAppName {
		return r, fmt.Errorf("linear: an app's name has %d to %d characters, this one %d", minAppName, maxAppName, n)
	}
	if lower := strings.ToLower(r.Name); strings.Contains(lower, "linear") || strings.Contains(lower, "://") {
		return r, errors.New("linear: an app's name holds neither Linear's own nor an address")
	}
	if err := bot.CheckPublic(r.PublicURL, "Linear"); err != nil {
		return r, fmt.Errorf("linear: %w; for a trial, the address of a tunnel will do", err)
	}
	return r, nil
}

// Manifest is what Page hands to the form.
func (r Registration) Manifest() ([]byte, error) {
	var m map[string]any
	if err := json.Unmarshal(manifestJSON, &m); err != nil {
		return nil, fmt.Errorf("linear: read the manifest: %w", err)
	}
	m, _ = settle(m, r.PublicURL).(map[string]any)
	oauth, _ := m["oauth"].(map[string]any)
	developer, _ := m["developer"].(map[string]any)
	if oauth == nil || developer == nil {
		return nil, errors.New("linear: the manifest is not one")
	}
	oauth["client_name"] = r.Name
	if r.Developer != "" {
		developer["name"] = r.Developer
	}
	if r.Public {
		m["distribution"] = "public"
	}
	return json.Marshal(m)
}

// settle puts ship's address in the place of the placeholder, at any depth.
func settle(part any, address string) any {
	switch v := part.(type) {
	case string:
		return strings.Replace(v, placeholder, address, 1)
	case []any:
		for i := range v {
			v[i] = settle(v[i], address)
		}
	case map[string]any:
		for key := range v {
			v[key] = settle(v[key], address)
		}
	}
	return part
}

// Page is Linear's form for a new app, filled in with the manifest.
func (r Registration) Page() (string, error) {
	manifest, err := r.Manifest()
	if err != nil {
		return "", err
	}
	return newAppPage + "?" + url.Values{"manifest": {string(manifest)}}.Encode(), nil
}
