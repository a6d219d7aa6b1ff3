package main

import (
	"bufio"
	"context"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ship/integrations/github/githubtest"
)

// registering is a `ship setup github` that runs, and a browser.
type registering struct {
	t      *testing.T
	host   *githubtest.Server
	o      setupOptions
	link   string
	lines  *syncBuffer
	ended  chan error
	cancel context.CancelCauseFunc
}

var errTestOver = errors.New("the test is over")

func startSetup(t *testing.T, change func(*setupOptions)) *registering {
	t.Helper()
	host, err := githubtest.New(githubtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	r := &registering{t: t, host: host, lines: &syncBuffer{}, ended: make(chan error, 1)}
	out, in := io.Pipe()
	r.o = setupOptions{
		dir: t.TempDir(), publicURL: "https://ship.example.com", webURL: host.URL, apiURL: host.APIURL(),
		out: io.MultiWriter(in, r.lines),
	}
	if change != nil {
		change(&r.o)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	r.cancel = cancel
	t.Cleanup(func() { cancel(errTestOver) })
	go func() {
		err := setUpGitHub(ctx, r.o)
		_ = in.Close()
		r.ended <- err
	}()
	r.link = firstLink(out)
	return r
}

// firstLink reads until there is a link, and goes on reading beside.
func firstLink(out io.Reader) string {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if link := strings.TrimSpace(lines.Text()); strings.HasPrefix(link, "http://127.0.0.1:") {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return link
		}
	}
	return ""
}

// end waits for the command, which has to end by itself.
func (r *registering) end() error {
	r.t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(patience):
		r.t.Fatal("the set-up does not end")
		return nil
	}
}

func browse(t *testing.T, client *http.Client, address string) (status int, body string) {
	t.Helper()
	resp, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// form reads the page as a browser does.
func (r *registering) form(client *http.Client) (action string, fields url.Values) {
	r.t.Helper()
	status, page := browse(r.t, client, r.link)
	form := regexp.MustCompile(`<form action="([^"]*)" method="post">`).FindStringSubmatch(page)
	field := regexp.MustCompile(`<input type="hidden" name="manifest" value="([^"]*)">`).FindStringSubmatch(page)
	if status != http.StatusOK || form == nil || field == nil {
		r.t.Fatalf("%d, a page without a form:\n%s", status, page)
	}
	return html.UnescapeString(form[1]), url.Values{"manifest": {html.UnescapeString(field[1])}}
}

func (r *registering) read(name string) string {
	r.t.Helper()
	path := filepath.Join(r.o.dir, name)
	info, err := os.Stat(path)
	if err != nil {
		r.t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		r.t.Errorf("%s has mode %s", name, info.Mode())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// TestSetupGitHub goes the whole way with a plain client as the browser.
func TestSetupGitHub(t *testing.T) {
	t.Parallel()
	r := startSetup(t, func(o *setupOptions) { o.org = "acme" })
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	action, fields := r.form(client)
	if !strings.HasPrefix(action, r.host.URL+"/organizations/acme/settings/apps/new?state=") {
		t.Errorf("the form leads to %s", action)
	}
	resp, err := client.PostForm(action, fields) // and back, by a redirect
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(page), `href="`+r.host.URL+`/apps/ship-acme/installations/new"`) {
		t.Errorf("%d, %v:\n%s", resp.StatusCode, err, page)
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	key, secret := r.read(keyFile), r.read(secretFile)
	if key != r.host.PrivateKey() || strings.TrimSpace(secret) != r.host.WebhookSecret() {
		t.Error("other secrets were written")
	}
	r.read(settingsFile)
	s, err := readSettings(filepath.Join(r.o.dir, settingsFile), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.PublicURL != r.o.publicURL || s.GitHub.AppID != r.host.AppID() || s.GitHub.APIURL != r.host.APIURL() || s.GitHub.PrivateKey.Reveal() == "" {
		t.Errorf("settings: %+v", s)
	}
	said := r.lines.String()
	for _, want := range []string{"/apps/ship-acme/installations/new", "ship doctor --config " + filepath.Join(r.o.dir, settingsFile), "The app ship-acme exists, with id 4242"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q was not said:\n%s", want, said)
		}
	}
	for _, secret := range []string{strings.TrimSpace(secret), strings.Split(key, "\n")[1]} {
		if strings.Contains(said+string(page), secret) {
			t.Errorf("a secret was shown:\n%s\n%s", said, page)
		}
	}
}

// TestSetupRefusesStrangers: a code counts only with the state of the page
// that was opened here, and the page is where nobody can guess it.
func TestSetupRefusesStrangers(t *testing.T) {
	t.Parallel()
	r := startSetup(t, nil)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	u, err := url.Parse(r.link)
	if err != nil {
		t.Fatal(err)
	}
	home := u.Scheme + "://" + u.Host
	action, _ := r.form(client)
	state := action[strings.LastIndex(action, "=")+1:]
	for path, want := range map[string]int{
		"/":                                      http.StatusNotFound,
		"/created":                               http.StatusForbidden,
		"/created?code=abc":                      http.StatusForbidden,
		"/created?code=abc&state=" + state[1:]:   http.StatusForbidden,
		"/created?code=abc&state=" + state + "x": http.StatusForbidden,
	} {
		if status, page := browse(t, client, home+path); status != want || strings.Contains(page, state) {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
	if n := r.host.Calls("POST /app-manifests/{code}/conversions"); n != 0 {
		t.Errorf("GitHub was asked %d times", n)
	}
	if status, page := browse(t, client, home+"/created?code=guess&state="+state); status != http.StatusBadGateway || !strings.Contains(page, "start again") {
		t.Errorf("a code of nobody's: %d\n%s", status, page)
	}
	r.cancel(errTestOver)
	if err := r.end(); !errors.Is(err, errTestOver) {
		t.Errorf("ended with %v", err)
	}
	if entries, _ := os.ReadDir(r.o.dir); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

// TestSetupSurvivesGitHubsHiccup: the code is still good when the browser
// reloads.
func TestSetupSurvivesGitHubsHiccup(t *testing.T) {
	t.Parallel()
	r := startSetup(t, nil)
	r.host.Inject(githubtest.Fault{On: "POST /app-manifests/{code}/conversions", Status: http.StatusBadGateway})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.PostForm(r.form(client))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusBadGateway {
		t.Fatalf("answered %d", resp.StatusCode)
	}
	if status, page := browse(t, client, resp.Request.URL.String()); status != http.StatusOK || !strings.Contains(page, "install it") {
		t.Errorf("the reload: %d\n%s", status, page)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

// TestSetupDestroysNothing: settings that are there are left alone, and so are
// secrets without --force.
func TestSetupDestroysNothing(t *testing.T) {
	t.Parallel()
	const mine = "# mine\nlisten: 127.0.0.1:1\n"
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(settingsFile, mine)
	write(secretFile, "old\n")
	err := setUpGitHub(t.Context(), setupOptions{dir: dir, publicURL: "https://ship.example.com", out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "--force") {
		t.Fatalf("a secret that is there: %v", err)
	}
	r := startSetup(t, func(o *setupOptions) { o.dir, o.force = dir, true })
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.PostForm(r.form(client))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if r.read(settingsFile) != mine || r.read(secretFile) == "old\n" {
		t.Error("the settings were touched, or the secret was not")
	}
	for _, want := range []string{"is left as it is", "app_id: 4242", "private_key_file: github.pem", "public_url: https://ship.example.com"} {
		if !strings.Contains(r.lines.String(), want) {
			t.Errorf("%q was not said:\n%s", want, r.lines)
		}
	}
}

func TestSetupCompletesItsOptions(t *testing.T) {
	t.Parallel()
	if _, err := (setupOptions{}).complete(); err == nil || !strings.Contains(err.Error(), "--public-url") {
		t.Errorf("no address: %v", err)
	}
	o, err := setupOptions{webURL: "https://git.example.com/", environ: []string{"SHIP_PUBLIC_URL=https://ship.example.com"}}.complete()
	if err != nil || o.apiURL != "https://git.example.com/api/v3" || o.publicURL != "https://ship.example.com" {
		t.Errorf("%+v, %v", o, err)
	}
	if !strings.HasPrefix(o.name, "ship-") || !filepath.IsAbs(o.dir) {
		t.Errorf("%+v", o)
	}
	o, err = setupOptions{org: strings.Repeat("a", 39), publicURL: "https://ship.example.com"}.complete()
	if err != nil || len(o.name) != 34 {
		t.Errorf("%+v, %v", o, err)
	}
}
