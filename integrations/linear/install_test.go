package linear

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"ship/config"
	"ship/integrations/linear/lineartest"
)

// TestInstall goes the whole road.
func TestInstall(t *testing.T) {
	t.Parallel()
	s := newShelter(t)
	b := s.browser()
	back := s.agree(b)
	status, text, _ := s.get(b, back.String())
	if status != http.StatusOK || !strings.Contains(text, "ship is in ") || !strings.Contains(text, "delegate an issue") {
		t.Fatalf("%d: %s", status, text)
	}
	if s.token() == "" {
		t.Error("nothing was kept")
	}
	if said := s.log.String(); !strings.Contains(said, "organization="+s.OrganizationID()) {
		t.Errorf("the log: %s", said)
	}
	// The same page once more, and then the same link for the same workspace.
	if status, text, _ := s.get(b, back.String()); status != http.StatusForbidden {
		t.Errorf("again: %d %s", status, text)
	}
	before := s.token()
	if status, text, _ := s.get(b, s.agree(b).String()); status != http.StatusOK || s.token() == before {
		t.Errorf("the link again: %d %s", status, text)
	}
}

// TestAuthorizeAddress is what Linear needs to be told.
func TestAuthorizeAddress(t *testing.T) {
	t.Parallel()
	s := newShelter(t)
	_, _, u := s.get(s.browser(), s.link())
	q := u.Query()
	for name, want := range map[string]string{
		"client_id": s.ClientID(), "actor": "app", "response_type": "code", "scope": scopes, "prompt": "consent",
		"redirect_uri": s.home.URL + "/setup/linear/callback",
	} {
		if q.Get(name) != want {
			t.Errorf("%s is %q", name, q.Get(name))
		}
	}
	if got := authorizeURL(DefaultTokenURL); got != "https://linear.app/oauth/authorize" {
		t.Errorf("Linear's own is %s", got)
	}
}

// TestInstallRefusesStrangers: what does not lead to Linear, with what is
// said. Linear is not asked once.
func TestInstallRefusesStrangers(t *testing.T) {
	t.Parallel()
	s := newShelter(t)
	good := s.link()
	other := s.config.Settings
	other.TokenKey = config.NewSecrets(strings.Repeat("x", 40))
	forged, err := InstallLink(other, s.home.URL, s.now())
	if err != nil {
		t.Fatal(err)
	}
	// What is signed as a state is no ticket.
	_, _, authorize := s.get(s.browser(), good)
	for name, address := range map[string]string{
		"no ticket": s.home.URL + InstallPath, "cut": good[:len(good)-1], "longer": good + "A", "another key's": forged,
		"a state": s.home.URL + InstallPath + "?ticket=" + url.QueryEscape(authorize.Query().Get("state")),
		"no text": s.home.URL + InstallPath + "?ticket=.", "huge": s.home.URL + InstallPath + "?ticket=" + strings.Repeat("a", 5000) + ".aaaa",
	} {
		status, text, next := s.get(s.browser(), address)
		if status != http.StatusForbidden || next != nil || !strings.Contains(text, "not a link that this ship gave out") {
			t.Errorf("%s: %d %v %s", name, status, next, text)
		}
	}
	s.advance(ticketTime)
	if status, text, _ := s.get(s.browser(), good); status != http.StatusForbidden || !strings.Contains(text, "good for a day") {
		t.Errorf("a day later: %d %s", status, text)
	}
	if n := s.Calls("token"); n != 0 {
		t.Errorf("Linear was asked for %d tokens", n)
	}
}

// TestCallbackRefuses: a code counts with the state of this browser, within an
// hour, once.
func TestCallbackRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		want   string
		status int
		visit  visit
	}{
		"nothing": {"does not come from the page", 403, func(s *shelter, b *http.Client, _ *url.URL) (*http.Client, string) {
			return b, s.home.URL + callbackPath
		}},
		"no state":     {"does not come from the page", 403, changing("state", "")},
		"forged state": {"does not come from the page", 403, changing("state", "eyJpIjoiYSIsInUiOjk5OTk5OTk5OTk5OX0.AAAA")},
		"a ticket for a state": {"does not come from the page", 403, func(s *shelter, b *http.Client, back *url.URL) (*http.Client, string) {
			link, err := url.Parse(s.link())
			if err != nil {
				s.t.Fatal(err)
			}
			return changing("state", link.Query().Get("ticket"))(s, b, back)
		}},
		"another browser": {"does not come from the page", 403, func(s *shelter, _ *http.Client, back *url.URL) (*http.Client, string) {
			return s.browser(), back.String()
		}},
		"another's cookie": {"does not come from the page", 403, func(s *shelter, _ *http.Client, back *url.URL) (*http.Client, string) {
			b := s.browser()
			s.agree(b)
			return b, back.String()
		}},
		"an hour later": {"more than an hour", 403, func(s *shelter, b *http.Client, back *url.URL) (*http.Client, string) {
			s.advance(stateTime)
			return b, back.String()
		}},
		"declined":     {"nobody agreed", 403, changing("code", "")},
		"a huge code":  {"nobody agreed", 403, changing("code", strings.Repeat("x", maxCode+1))},
		"a wrong code": {"does not take this code", 403, changing("code", "guess")},
		"Linear down": {"Something went wrong", 502, func(s *shelter, b *http.Client, back *url.URL) (*http.Client, string) {
			s.Inject(lineartest.Fault{On: "token", Status: 503})
			return b, back.String()
		}},
		"no viewer": {"did not say which workspace", 502, func(s *shelter, b *http.Client, back *url.URL) (*http.Client, string) {
			s.Inject(lineartest.Fault{On: "ReadViewer", Status: 500})
			return b, back.String()
		}},
		"a secret that was rotated": {"Something went wrong", 502, func(s *shelter, b *http.Client, back *url.URL) (*http.Client, string) {
			s.RotateSecret()
			return b, back.String()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelter(t)
			b := s.browser()
			b, address := c.visit(s, b, s.agree(b))
			status, text, _ := s.get(b, address)
			if status != c.status || !strings.Contains(text, c.want) || !strings.Contains(text, "was not installed") {
				t.Errorf("%d, want %d and %q:\n%s", status, c.status, c.want, text)
			}
			if s.token() != "" {
				t.Error("something was kept")
			}
		})
	}
}

// visit is what a browser does in the place of what Linear told it to.
type visit func(s *shelter, b *http.Client, back *url.URL) (*http.Client, string)

// changing visits where Linear sent the browser, but for one part.
func changing(name, value string) visit {
	return func(_ *shelter, b *http.Client, back *url.URL) (*http.Client, string) {
		return b, changed(back, name, value)
	}
}

// changed is an address with another value of one part.
func changed(u *url.URL, name, value string) string {
	other, q := *u, u.Query()
	q.Set(name, value)
	other.RawQuery = q.Encode()
	return other.String()
}

// TestStateIsGoodOnce even where the browser kept its cookie.
func TestStateIsGoodOnce(t *testing.T) {
	t.Parallel()
	s := newShelter(t)
	b := s.browser()
	back := s.agree(b)
	home, err := url.Parse(s.home.URL)
	if err != nil {
		t.Fatal(err)
	}
	cookies := b.Jar.Cookies(home)
	s.get(b, changed(back, "code", "guess"))
	b.Jar.SetCookies(home, cookies)
	if status, text, _ := s.get(b, back.String()); status != http.StatusForbidden || !strings.Contains(text, "opened before") {
		t.Errorf("%d: %s", status, text)
	}
	if s.token() != "" {
		t.Error("something was kept")
	}
}

// TestTicketIsForOneWorkspace: whoever comes with the same link from another
// one is sent away.
func TestTicketIsForOneWorkspace(t *testing.T) {
	t.Parallel()
	s := newShelter(t)
	b := s.browser()
	link := s.link()
	ticket, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	n, err := newNotary([]string{tokenKey})
	if err != nil {
		t.Fatal(err)
	}
	slip, err := n.read(kindTicket, ticket.Query().Get("ticket"), "", s.now())
	if err != nil {
		t.Fatal(err)
	}
	name := "linear." + s.ClientID() + ".ticket." + slip.ID
	if ok, err := s.config.Vault.Swap(t.Context(), name, 0, []byte("another-workspace"), time.Hour); !ok || err != nil {
		t.Fatal(ok, err)
	}
	_, _, authorize := s.get(b, link)
	_, _, back := s.get(b, authorize.String())
	if status, text, _ := s.get(b, back.String()); status != http.StatusForbidden || !strings.Contains(text, "another workspace already") {
		t.Errorf("%d: %s", status, text)
	}
	if s.token() != "" {
		t.Error("something was kept")
	}
}

// TestKeysRotate: a ticket of before the rotation is good after it.
func TestKeysRotate(t *testing.T) {
	t.Parallel()
	s := newShelter(t)
	link := s.link()
	s.config.TokenKey = config.NewSecrets(strings.Repeat("n", 40), tokenKey)
	w := httptest.NewRecorder()
	s.pages()["GET "+InstallPath].ServeHTTP(w, httptest.NewRequest(http.MethodGet, link, nil))
	if w.Code != http.StatusSeeOther {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}

// TestSecureCookie: over https the cookie is for this host alone.
func TestSecureCookie(t *testing.T) {
	t.Parallel()
	s := newShelter(t)
	s.config.PublicURL = "https://ship.example.com/"
	w := httptest.NewRecorder()
	s.pages()["GET "+InstallPath].ServeHTTP(w, httptest.NewRequest(http.MethodGet, s.link(), nil))
	got := w.Result().Cookies()
	if len(got) != 1 || got[0].Name != "__Host-ship-linear" || !got[0].Secure || !got[0].HttpOnly || got[0].SameSite != http.SameSiteLaxMode || got[0].Path != "/" {
		t.Errorf("%+v", got)
	}
	if !strings.HasPrefix(s.link(), "https://ship.example.com/setup/linear?ticket=") {
		t.Error(s.link())
	}
}

// TestPagesAreThereOnlyWhenNeeded, and links too.
func TestPagesAreThereOnlyWhenNeeded(t *testing.T) {
	t.Parallel()
	s := newShelter(t)
	whole, err := New(s.config)
	if err != nil || len(whole.Pages) != 2 {
		t.Fatalf("%v, %v", whole, err)
	}
	for _, change := range []func(*Config){
		func(c *Config) { c.Grant = GrantClient }, func(c *Config) { c.Grant = "" }, func(c *Config) { c.PublicURL = "" },
	} {
		c := s.config
		change(&c)
		l, err := New(c)
		if err != nil || l.Pages != nil {
			t.Errorf("%v, %v", l.Pages, err)
		}
		if link, err := InstallLink(c.Settings, c.PublicURL, s.now()); err == nil {
			t.Errorf("a link: %s", link)
		}
	}
}
