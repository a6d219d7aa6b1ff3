package lineartest_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"ship/graphql/linear"
	"ship/integrations/linear/lineartest"
)

const scopes = "read,write,app:assignable,app:mentionable"

type grant struct {
	status  int
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Expires int    `json:"expires_in"`
	Scope   string `json:"scope"`
	Error   string `json:"error"`
}

// post sends a form to one of the addresses of OAuth.
func (c *client) post(path string, form url.Values, basic ...string) grant {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), "POST", c.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if len(basic) == 2 {
		req.SetBasicAuth(basic[0], basic[1])
	}
	resp, err := c.wire.RoundTrip(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	g := grant{status: resp.StatusCode}
	if err := json.NewDecoder(resp.Body).Decode(&g); err != nil {
		c.t.Fatal(err)
	}
	return g
}

// ask asks for a token with the client's credentials and these pairs.
func (c *client) ask(pairs ...string) grant {
	c.t.Helper()
	form := url.Values{"client_id": {c.ClientID()}, "client_secret": {c.ClientSecret()}}
	for n := 0; n < len(pairs); n += 2 {
		form.Set(pairs[n], pairs[n+1])
	}
	return c.post("/oauth/token", form)
}

// works tells whether a token is good.
func (c *client) works(token string) bool {
	c.t.Helper()
	was := c.token
	defer func() { c.token = was }()
	c.token = token
	_, err := linear.ReadViewer(c.t.Context(), c)
	if err != nil && code(err) != "AUTHENTICATION_ERROR" {
		c.t.Fatal(err)
	}
	return err == nil
}

func (c *client) wantError(g grant, status int, name string) {
	c.t.Helper()
	if g.status != status || g.Error != name {
		c.t.Errorf("got %d %q, want %d %q", g.status, g.Error, status, name)
	}
}

func TestClientCredentials(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{})
	one := c.ask("grant_type", "client_credentials", "scope", scopes)
	if one.status != 200 || one.Expires != 2591999 || one.Refresh != "" || one.Scope != "app:assignable app:mentionable read write" {
		t.Errorf("granted %+v", one)
	}
	two := c.post("/oauth/token", url.Values{"grant_type": {"client_credentials"}, "scope": {"write read app:assignable app:mentionable"}}, c.ClientID(), c.ClientSecret())
	if !c.works(one.Access) || !c.works(two.Access) {
		t.Error("two tokens of the same scopes must live side by side")
	}
	c.wantError(c.ask("grant_type", "client_credentials", "scope", "read,admin"), 400, "invalid_scope")
	c.wantError(c.ask("grant_type", "client_credentials", "scope", scopes, "client_secret", "guess"), 401, "invalid_client")
	c.wantError(c.ask("grant_type", "password"), 400, "unsupported_grant_type")
	reader := c.ask("grant_type", "client_credentials", "scope", "read")
	if c.works(one.Access) || !c.works(reader.Access) {
		t.Error("a token of other scopes must end those before it")
	}
	c.token = reader.Access
	_, err := linear.MoveIssue(t.Context(), c, c.issue, c.id(1))
	c.mustFail(err, "FORBIDDEN")
	c.Advance(30 * 24 * hour)
	if c.works(reader.Access) {
		t.Error("the token did not expire")
	}
	last := c.ask("grant_type", "client_credentials", "scope", scopes)
	c.RotateSecret()
	if c.works(last.Access) {
		t.Error("the token outlived the secret")
	}
	again := c.ask("grant_type", "client_credentials", "scope", scopes)
	c.ExpireTokens()
	if again.status != 200 || c.works(again.Access) {
		t.Errorf("granted %+v", again)
	}
}

// install goes through the page that an administrator sees.
func (c *client) install(changed ...string) (code string, status int) {
	c.t.Helper()
	query := url.Values{
		"client_id": {c.ClientID()}, "redirect_uri": {"https://ship.example/linear/oauth/callback"}, "response_type": {"code"},
		"scope": {scopes}, "actor": {"app"}, "state": {"s t"}, "prompt": {"consent"},
		"code_challenge_method": {"S256"}, "code_challenge": {s256("verifier")},
	}
	for n := 0; n < len(changed); n += 2 {
		query.Set(changed[n], changed[n+1])
	}
	req, err := http.NewRequestWithContext(c.t.Context(), "GET", c.URL+"/oauth/authorize?"+query.Encode(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := c.wire.RoundTrip(req)
	if err != nil {
		c.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		return "", resp.StatusCode
	}
	back, err := resp.Location()
	if err != nil || back.Host != "ship.example" || back.Query().Get("state") != "s t" {
		c.t.Errorf("sent to %s, %v", back, err)
	}
	return back.Query().Get("code"), resp.StatusCode
}

func s256(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func (c *client) exchange(code, verifier string) grant {
	c.t.Helper()
	return c.ask("grant_type", "authorization_code", "code", code, "redirect_uri", "https://ship.example/linear/oauth/callback", "code_verifier", verifier)
}

func TestAuthorizationCode(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{RedirectURIs: []string{"https://ship.example/linear/oauth/callback"}})
	for _, changed := range [][]string{
		{"client_id", "x"}, {"redirect_uri", "https://evil.example/"}, {"actor", "user"}, {"response_type", "token"},
		{"scope", "read,admin"}, {"code_challenge_method", "plain"},
	} {
		if _, status := c.install(changed...); status < 400 {
			t.Errorf("%v: %d", changed, status)
		}
	}
	stolen, _ := c.install()
	c.wantError(c.exchange(stolen, "guess"), 400, "invalid_grant")
	c.wantError(c.exchange(stolen, "verifier"), 400, "invalid_grant") // it was tried
	late, _ := c.install()
	c.Advance(hour)
	c.wantError(c.exchange(late, "verifier"), 400, "invalid_grant")
	good, _ := c.install()
	got := c.exchange(good, "verifier")
	if got.status != 200 || got.Expires != 86399 || got.Refresh == "" || !c.works(got.Access) {
		t.Errorf("granted %+v", got)
	}
	c.wantError(c.exchange(good, "verifier"), 400, "invalid_grant")
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	for _, grace := range []time.Duration{0, 30 * time.Minute} {
		c := newClient(t, lineartest.Options{RefreshGrace: grace})
		authorised, _ := c.install()
		first := c.exchange(authorised, "verifier")
		second := c.ask("grant_type", "refresh_token", "refresh_token", first.Refresh)
		if second.status != 200 || second.Refresh == first.Refresh || !c.works(second.Access) {
			t.Errorf("granted %+v", second)
		}
		if grace > 0 {
			c.Advance(grace - time.Minute)
			if again := c.ask("grant_type", "refresh_token", "refresh_token", first.Refresh); again.status != 200 {
				t.Errorf("within its grace: %+v", again)
			}
			c.Advance(2 * time.Minute)
		}
		c.wantError(c.ask("grant_type", "refresh_token", "refresh_token", first.Refresh), 400, "invalid_grant")
		c.Advance(24 * hour)
		if c.works(second.Access) {
			t.Error("the token did not expire")
		}
		third := c.ask("grant_type", "refresh_token", "refresh_token", second.Refresh)
		if !c.works(third.Access) {
			t.Errorf("granted %+v", third)
		}
		c.post("/oauth/revoke", url.Values{"token": {third.Access}})
		if c.works(third.Access) {
			t.Error("a revoked token works")
		}
	}
}

func TestRevokedApp(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{})
	authorised, _ := c.install()
	had := c.exchange(authorised, "verifier")
	c.Revoke()
	if c.works(had.Access) {
		t.Error("a token outlived the app")
	}
	c.wantError(c.ask("grant_type", "refresh_token", "refresh_token", had.Refresh), 400, "invalid_grant")
	c.wantError(c.ask("grant_type", "client_credentials", "scope", scopes), 400, "invalid_grant")
	again, _ := c.install()
	if got := c.exchange(again, "verifier"); !c.works(got.Access) {
		t.Errorf("granted %+v", got)
	}
}

func TestBearer(t *testing.T) {
	t.Parallel()
	c := newClient(t, lineartest.Options{TokenTTL: time.Minute})
	good := c.Token()
	for _, tt := range []struct {
		token string
		works bool
	}{{good, true}, {"guess", false}, {"", false}, {" " + good, false}} {
		if got := c.works(tt.token); got != tt.works {
			t.Errorf("%q works: %t", tt.token, got)
		}
	}
	c.Advance(time.Minute)
	if c.works(good) {
		t.Error("the token did not expire")
	}
}
