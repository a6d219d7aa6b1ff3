package githubtest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// appManifest is what the page for new apps is posted.
type appManifest struct {
	Name  string `json:"name"`
	URL   string `json:"url"`
	Hooks struct {
		URL    string `json:"url"`
		Active bool   `json:"active"`
	} `json:"hook_attributes"`
	RedirectURL string            `json:"redirect_url"`
	Permissions map[string]string `json:"default_permissions"`
	Events      []string          `json:"default_events"`
}

// carriers are the permissions of which one is needed to be sent an event.
var carriers = map[string][]string{
	"issue_comment": {"issues", "pull_requests"}, "issues": {"issues"}, "pull_request": {"pull_requests"},
	"pull_request_review": {"pull_requests"}, "pull_request_review_comment": {"pull_requests"},
	"check_run": {"checks"}, "check_suite": {"checks"}, "workflow_run": {"actions"}, "push": {"contents"},
}

// complaint says what GitHub would not take about a manifest; empty: nothing.
func (m appManifest) complaint() string {
	for field, address := range map[string]string{"url": m.URL, "hook_attributes.url": m.Hooks.URL, "redirect_url": m.RedirectURL} {
		if u, err := url.Parse(address); err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") {
			return field + " must be a valid URL"
		}
	}
	if n := len([]rune(m.Name)); n == 0 || n > 34 {
		return "name is too long (maximum is 34 characters)"
	}
	for _, event := range m.Events {
		if !slices.ContainsFunc(carriers[event], func(p string) bool { return m.Permissions[p] != "" }) {
			return "default_events are not supported by permissions: " + event
		}
	}
	return ""
}

// newApp is the page for new apps, with a person before it who confirms at
// once: the browser is sent back with a code.
func (s *Server) newApp(w http.ResponseWriter, r *http.Request) {
	var m appManifest
	if err := json.Unmarshal([]byte(r.PostFormValue("manifest")), &m); err != nil {
		http.Error(w, "The manifest is not JSON", http.StatusUnprocessableEntity)
		return
	}
	if text := m.complaint(); text != "" {
		http.Error(w, text, http.StatusUnprocessableEntity)
		return
	}
	back, err := url.Parse(m.RedirectURL)
	if err != nil {
		http.Error(w, "redirect_url must be a valid URL", http.StatusUnprocessableEntity)
		return
	}
	code := random(40)
	s.mu.Lock()
	s.manifests[code] = m
	s.mu.Unlock()
	query := back.Query()
	query.Set("code", code)
	query.Set("state", r.URL.Query().Get("state"))
	back.RawQuery = query.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// convert hands out the secrets of an app that was just made, once. The one
// app of this server becomes as its manifest says.
func (s *Server) convert(w http.ResponseWriter, r *http.Request) {
	if s.Strike(w, r, "POST /app-manifests/{code}/conversions") {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m, known := s.manifests[r.PathValue("code")]
	if !known {
		writeJSON(w, errNotFound.status, errNotFound.body())
		return
	}
	delete(s.manifests, r.PathValue("code"))
	s.opts.Slug, s.opts.Permissions, s.opts.Events = slug(m.Name), m.Permissions, m.Events
	s.hook = Hook{URL: m.Hooks.URL, ContentType: "json"}
	s.secret = random(40)
	answer := s.renderApp()
	answer["client_id"], answer["client_secret"] = "Iv1."+random(16), random(40)
	answer["webhook_secret"], answer["pem"] = s.secret, s.PrivateKey()
	writeJSON(w, http.StatusCreated, answer)
}

// slug is an app's name as it appears in addresses.
func slug(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "-") }

// Hook is how the app's webhook is set up.
type Hook struct {
	URL string
	// ContentType is json or form.
	ContentType string
	// Insecure: certificates are not verified.
	Insecure bool
}

// SetHook sets the app's webhook up.
func (s *Server) SetHook(h Hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = h
}

// SetApp changes what the app itself asks for. Installations keep what they
// have, as on GitHub, until their owners accept.
func (s *Server) SetApp(permissions map[string]string, events []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Permissions, s.opts.Events = permissions, events
}

// WebhookSecret is the one that the last conversion handed out; empty before.
func (s *Server) WebhookSecret() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.secret
}

func (s *Server) getHook(*call) (int, any, error) {
	insecure := "0"
	if s.hook.Insecure {
		insecure = "1"
	}
	return http.StatusOK, object{
		"url": s.hook.URL, "content_type": s.hook.ContentType, "insecure_ssl": insecure, "secret": "********",
	}, nil
}
