package linear

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"ship/bot"
	"ship/config"
	"ship/integrations/linear/lineartest"
	"ship/session/memory"
)

const tokenKey = "0123456789abcdef0123456789abcdef-the-token-key"

// shelter is a ship with nothing but its pages, an admin's browser, and Linear.
type shelter struct {
	*lineartest.Server
	t      *testing.T
	home   *httptest.Server
	config Config
	log    *lockedBuffer

	mu    sync.Mutex
	clock time.Time
}

// lockedBuffer is a log that is read while others write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}
func (b *lockedBuffer) String() string { b.mu.Lock(); defer b.mu.Unlock(); return b.b.String() }

func (s *shelter) now() time.Time { s.mu.Lock(); defer s.mu.Unlock(); return s.clock }

func (s *shelter) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = s.clock.Add(d)
}

func newShelter(t *testing.T) *shelter {
	t.Helper()
	stand, err := lineartest.New(lineartest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &shelter{Server: stand, t: t, log: &lockedBuffer{}, clock: time.Now()}
	mux := http.NewServeMux()
	s.home = httptest.NewServer(mux)
	t.Cleanup(func() {
		s.home.Close()
		if v := stand.Violations(); v != nil {
			t.Errorf("not as Linear has it: %v", v)
		}
		_ = stand.Close()
	})
	vault := &memory.Vault{}
	s.config = Config{
		Settings: Settings{
			ClientID: stand.ClientID(), ClientSecret: config.NewSecret(stand.ClientSecret()), WebhookSecret: config.NewSecrets("w"),
			Grant: GrantCode, TokenKey: config.NewSecrets(tokenKey), APIURL: stand.APIURL(), TokenURL: stand.TokenURL(),
		},
		PublicURL: s.home.URL, Gate: &bot.Gate{}, Vault: vault, Locker: vault, Quota: &memory.Quota{},
		Transport: &http.Transport{DisableKeepAlives: true}, Logger: slog.New(slog.NewTextHandler(s.log, nil)),
	}
	for pattern, page := range s.pages() {
		mux.Handle(pattern, page)
	}
	return s
}

// pages are those of New, with a clock that can be turned.
func (s *shelter) pages() map[string]http.Handler {
	s.t.Helper()
	c := s.config.Tokens()
	c.Vault, c.Locker, c.Transport, c.Now = s.config.Vault, s.config.Locker, s.config.Transport, s.now
	tokens, err := NewTokens(c)
	if err != nil {
		s.t.Fatal(err)
	}
	pages, err := installPages(s.config, tokens)
	if err != nil {
		s.t.Fatal(err)
	}
	return pages
}

func (s *shelter) link() string {
	s.t.Helper()
	link, err := InstallLink(s.config.Settings, s.config.PublicURL, s.now())
	if err != nil {
		s.t.Fatal(err)
	}
	return link
}

// browser keeps cookies and follows no redirect by itself.
func (s *shelter) browser() *http.Client {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return &http.Client{
		Jar: jar, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// get opens a page. Whatever it is, it must not be kept, run or leak anything.
func (s *shelter) get(b *http.Client, address string) (status int, text string, next *url.URL) {
	s.t.Helper()
	resp, err := b.Get(address)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if strings.HasPrefix(address, s.home.URL) && resp.StatusCode != http.StatusNotFound {
		s.harmless(resp, string(body))
	}
	next, _ = resp.Location()
	return resp.StatusCode, string(body), next
}

func (s *shelter) harmless(resp *http.Response, body string) {
	s.t.Helper()
	h := resp.Header
	if h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "no-referrer" ||
		!strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'") {
		s.t.Errorf("headers: %v", h)
	}
	q := resp.Request.URL.Query()
	for _, secret := range []string{s.ClientSecret(), tokenKey, q.Get("state"), q.Get("code"), q.Get("ticket"), "lin_oauth_", "lin_refresh_"} {
		if len(secret) > 5 && strings.Contains(body+s.log.String(), secret) {
			s.t.Errorf("a secret is in the page or in the log:\n%s\n%s", body, s.log)
		}
	}
}

// agree goes from the link to Linear and to where Linear sends the browser.
func (s *shelter) agree(b *http.Client) *url.URL {
	s.t.Helper()
	status, text, authorize := s.get(b, s.link())
	if status != http.StatusSeeOther || authorize == nil {
		s.t.Fatalf("%d: %s", status, text)
	}
	status, text, back := s.get(b, authorize.String())
	if status != http.StatusFound || back == nil || !strings.HasPrefix(back.String(), s.home.URL+"/setup/linear/callback?") {
		s.t.Fatalf("%d, %v: %s", status, back, text)
	}
	return back
}

// token is one with which ship works in the workspace; empty: there is none.
func (s *shelter) token() string {
	s.t.Helper()
	c := s.config.Tokens()
	c.Vault, c.Locker, c.Transport, c.Now = s.config.Vault, s.config.Locker, s.config.Transport, s.now
	tokens, err := NewTokens(c)
	if err != nil {
		s.t.Fatal(err)
	}
	token, err := tokens.Token(s.t.Context(), s.OrganizationID())
	if err != nil {
		return ""
	}
	return token
}
