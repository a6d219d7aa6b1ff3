package github

import (
	_ "embed" // for the manifest
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// manifestJSON is what a GitHub App for ship is like. It is the same as
// deploy/github/manifest.json, which Go cannot embed from there.
//
//go:embed manifest.json
var manifestJSON []byte

// placeholder stands for ship's own address in the manifest.
const placeholder = "https://SHIP_HOST"

// maxName of an app, in characters, on github.com.
const maxName = 34

// validOrg is what GitHub allows as the name of an organisation.
var validOrg = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})$`)

// Needs are the permissions and events that ship's features rest on.
type Needs struct {
	// Permissions by name: read or write.
	Permissions map[string]string `json:"default_permissions"`
	Events      []string          `json:"default_events"`
}

// Needed returns what the manifest asks for.
func Needed() (Needs, error) {
	var n Needs
	if err := json.Unmarshal(manifestJSON, &n); err != nil {
		return Needs{}, fmt.Errorf("github: read the manifest: %w", err)
	}
	return n, nil
}

// Lacking returns what of the needs is not granted, as "checks: write", sorted.
func (n Needs) Lacking(granted map[string]string) []string {
	var out []string
	for name, level := range n.Permissions {
		if got := granted[name]; got == "" || level == "write" && got == "read" {
			out = append(out, name+": "+level)
		}
	}
	slices.Sort(out)
	return out
}

// Unheard returns the events of the needs that are not among those that are
// sent, sorted.
func (n Needs) Unheard(sent []string) []string {
	out := slices.DeleteFunc(slices.Clone(n.Events), func(event string) bool { return slices.Contains(sent, event) })
	slices.Sort(out)
	return out
}

// Registration describes an app that is about to be made from the manifest: a
// person's browser posts it to GitHub, GitHub sends the browser back with a
// code, and the code is good for the app's secrets, once and for an hour.
type Registration struct {
	// Name that is proposed. Names are taken world-wide; GitHub lets the person
	// choose another.
	Name string
	// Org that will own the app; empty: the person who confirms it.
	Org string
	// PublicURL is where GitHub will deliver webhooks to, RedirectURL where the
	// browser comes back to.
	PublicURL, RedirectURL string
	// APIURL and WebURL are as in Config.
	APIURL, WebURL string
	// Transport carries the exchange; nil: http.DefaultTransport.
	Transport http.RoundTripper
}

// Check returns the registration with its defaults, or says what is wrong.
func (r Registration) Check() (Registration, error) {
	var err error
	if r.APIURL, err = baseURL("api_url", r.APIURL, DefaultAPIURL); err != nil {
		return r, err
	}
	if r.WebURL, err = baseURL("web_url", r.WebURL, DefaultWebURL); err != nil {
		return r, err
	}
	u, err := url.Parse(r.PublicURL)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http" {
		return r, errors.New("github: the public address is not one like https://ship.example.com")
	}
	r.PublicURL = strings.TrimRight(r.PublicURL, "/")
	if r.Transport == nil {
		r.Transport = http.DefaultTransport
	}
	if r.Org != "" && !validOrg.MatchString(r.Org) {
		return r, fmt.Errorf("github: %q cannot be an organisation's name", r.Org)
	}
	if n := len([]rune(r.Name)); n == 0 || n > maxName {
		return r, fmt.Errorf("github: an app's name has 1 to %d characters, this one %d", maxName, n)
	}
	return r, nil
}

// Manifest is the text that is posted to Page, in a form's field "manifest".
func (r Registration) Manifest() ([]byte, error) {
	var m map[string]any
	if err := json.Unmarshal(manifestJSON, &m); err != nil {
		return nil, fmt.Errorf("github: read the manifest: %w", err)
	}
	settle(m, r.PublicURL)
	m["name"], m["redirect_url"] = r.Name, r.RedirectURL
	return json.Marshal(m)
}

// settle puts ship's address in the place of the placeholder, at any depth.
func settle(m map[string]any, address string) {
	for key, value := range m {
		switch v := value.(type) {
		case string:
			m[key] = strings.Replace(v, placeholder, address, 1)
		case map[string]any:
			settle(v, address)
		}
	}
}

// Page is where the manifest is posted to. GitHub hands the state back.
func (r Registration) Page(state string) string {
	owner := "/settings"
	if r.Org != "" {
		owner = "/organizations/" + r.Org + "/settings"
	}
	return r.WebURL + owner + "/apps/new?state=" + url.QueryEscape(state)
}
