package linear

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"ship/config"
	"ship/session"
	"ship/session/memory"
)

// everyone asks for a token at once, through every gateway.
func everyone(t *testing.T, gateways []*Tokens) string {
	t.Helper()
	var mu sync.Mutex
	seen := map[string]int{}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			token, err := gateways[i%len(gateways)].Token(t.Context(), org)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[token]++
		})
	}
	all.Wait()
	if len(seen) != 1 {
		t.Errorf("tokens %v", seen)
	}
	for token := range seen {
		return token
	}
	return ""
}

// TestClientGrant: all gateways share one token, also after a restart, until
// Linear refuses it or its end is near.
func TestClientGrant(t *testing.T) {
	onBoth(t, func(t *testing.T, v vault) {
		o := newOAuth(t)
		gateways := []*Tokens{o.gateway(v), o.gateway(v), o.gateway(v)}
		first := everyone(t, gateways)
		if n := o.asked(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		restarted := o.gateway(v)
		if token := o.token(restarted); token != first || o.asked() != 0 {
			t.Errorf("after a restart %q", token)
		}
		for _, g := range gateways { // all were refused at once
			if err := g.Invalidate(t.Context(), org, first); err != nil {
				t.Error(err)
			}
		}
		o.advance(restAfter)
		second := everyone(t, gateways)
		if n := o.asked(); n != 1 || second == first {
			t.Errorf("asked %d times for %q", n, second)
		}
		if err := restarted.Invalidate(t.Context(), org, first); err != nil { // late
			t.Error(err)
		}
		o.advance(30*24*time.Hour - time.Minute)
		if token := o.token(restarted); token == second || o.asked() != 1 {
			t.Errorf("at its end still %q", token)
		}
	})
}

// TestNewTokenRefused: a token that is refused as soon as it is new is not
// replaced again and again.
func TestNewTokenRefused(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	g := o.gateway(&memory.Vault{})
	for range 5 {
		token, err := g.Token(t.Context(), org)
		if err == nil {
			err = g.Invalidate(t.Context(), org, token)
		} else if !errors.Is(err, errSoon) || !problemOf(t, err).Again {
			t.Errorf("got %v", err)
		}
		if err != nil && !errors.Is(err, errSoon) {
			t.Fatal(err)
		}
	}
	if n := o.asked(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	o.advance(restAfter)
	o.token(g)
}

func problemOf(t *testing.T, err error) *session.Problem {
	t.Helper()
	var p *session.Problem
	if !errors.As(err, &p) || p.Say == "" {
		t.Fatalf("got %v", err)
	}
	for _, secret := range []string{clientSecret, "refresh-", "access-"} {
		if strings.Contains(err.Error()+p.Say, secret) {
			t.Errorf("a secret is in %q", err)
		}
	}
	return p
}

// TestRefusals: what Linear may answer, and what becomes of it.
func TestRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		again  bool
		after  time.Duration
	}{
		{"wrong secret", 401, `{"error":"invalid_client"}`, true, misconfigured},
		{"redirect", 302, "", true, misconfigured},
		{"not found", 404, clientSecret, true, misconfigured},
		{"odd code", 400, `{"error":"` + clientSecret + `"}`, true, misconfigured},
		{"broken", 503, "<html>", true, 7 * time.Second},
		{"too many", 429, "", true, 7 * time.Second},
		{"not JSON", 200, clientSecret, true, 0},
		{"no token", 200, `{"access_token":""}`, true, 0},
		{"a token of another shape", 200, `{"access_token":["access-1"]}`, true, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOAuth(t)
			o.answer = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Location", "/elsewhere")
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
				return true
			}
			g := o.gateway(&memory.Vault{})
			for range 3 {
				_, err := g.Token(t.Context(), org)
				if p := problemOf(t, err); p.Again != tt.again || tt.again && p.After != tt.after {
					t.Errorf("%+v", p)
				}
			}
			if n := o.asked(); n != 1 {
				t.Errorf("asked %d times within a moment", n)
			}
			o.advance(restAfter)
			o.answer = nil
			o.token(g)
		})
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	o.Close()
	_, err := o.gateway(&memory.Vault{}).Token(t.Context(), org)
	if !problemOf(t, err).Again {
		t.Errorf("got %v", err)
	}
}

// TestRenewal: a day of a workspace in which the app was installed.
func TestRenewal(t *testing.T) {
	onBoth(t, func(t *testing.T, v vault) {
		o := newOAuth(t)
		gateways := []*Tokens{o.install(v), o.gateway(v, installed), o.gateway(v, installed)}
		first := everyone(t, gateways)
		if o.asked() != 0 {
			t.Error("it was fresh")
		}
		o.advance(23*time.Hour + time.Minute)
		begun, done := make(chan struct{}), make(chan struct{})
		o.answer = func(http.ResponseWriter, *http.Request) bool { close(begun); <-done; return false }
		var renewing sync.WaitGroup
		renewing.Go(func() { o.token(gateways[0]) })
		<-begun
		if token := everyone(t, gateways); token != first {
			t.Errorf("while it is renewed %q", token)
		}
		close(done)
		renewing.Wait()
		o.answer = nil
		if token := everyone(t, gateways); token == first {
			t.Errorf("renewed, and still %q", token)
		}
		if n := o.asked(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		o.advance(24 * time.Hour) // nobody asked in time
		everyone(t, gateways)
		if n := o.asked(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

func TestWorkspacesAreApart(t *testing.T) {
	t.Parallel()
	o, v := newOAuth(t), &memory.Vault{}
	g := o.install(v)
	grant, err := g.Exchange(t.Context(), "good2", "https://ship.example/linear")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // keeping it twice changes nothing
		if err := g.Keep(t.Context(), "other", grant); err != nil {
			t.Fatal(err)
		}
	}
	mine := o.token(g)
	theirs, err := g.Token(t.Context(), "other")
	if err != nil || theirs == mine || theirs != grant.Access.Reveal() {
		t.Errorf("%q and %q, %v", mine, theirs, err)
	}
	for range 2 {
		if err := g.Forget(t.Context(), org); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Token(t.Context(), org); !errors.Is(err, ErrNotInstalled) || problemOf(t, err).Again {
		t.Errorf("got %v", err)
	}
	if token, err := g.Token(t.Context(), "other"); err != nil || token != theirs {
		t.Errorf("%q, %v", token, err)
	}
	for _, odd := range []string{"", "../x"} {
		if _, err := g.Token(t.Context(), odd); problemOf(t, err).Again {
			t.Errorf("got %v", err)
		}
	}
}

func TestCodeIsGoodOnce(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	g := o.install(&memory.Vault{})
	_, err := g.Exchange(t.Context(), "good", "https://ship.example/linear")
	if problemOf(t, err).Again {
		t.Errorf("got %v", err)
	}
}

// TestSealedAtRest: nothing in the vault can be read without the key, and the
// key can be changed.
func TestSealedAtRest(t *testing.T) {
	t.Parallel()
	o, v := newOAuth(t), &memory.Vault{}
	old := o.install(v)
	token := o.token(old)
	raw, _, err := v.Load(t.Context(), "linear.app."+org)
	if err != nil || len(raw) == 0 || bytes.Contains(raw, []byte("ess-")) || bytes.Contains(raw, []byte("refresh-")) {
		t.Fatalf("kept %q, %v", raw, err)
	}
	const newer = "fedcba9876543210fedcba9876543210"
	both := o.gateway(v, installed, func(c *TokensConfig) { c.Keys = append(config.NewSecrets(newer), c.Keys...) })
	if got := o.token(both); got != token {
		t.Errorf("with both keys %q", got)
	}
	o.advance(24 * time.Hour)
	renewed := o.token(both)
	alone := o.gateway(v, installed, func(c *TokensConfig) { c.Keys = config.NewSecrets(newer) })
	if got := o.token(alone); got != renewed {
		t.Errorf("with the new key %q", got)
	}
	_, err = old.Token(t.Context(), org)
	if !errors.Is(err, errSealed) || !problemOf(t, err).Again || !strings.Contains(err.Error(), "token_key") {
		t.Errorf("with the old key %v", err)
	}
}

// TestClientSecretChanged: by the client's credentials, what cannot be read is
// fetched anew.
func TestClientSecretChanged(t *testing.T) {
	t.Parallel()
	o, v := newOAuth(t), &memory.Vault{}
	o.token(o.gateway(v))
	other := o.gateway(v, func(c *TokensConfig) { c.Keys = config.NewSecrets("another key") })
	if o.asked(); o.token(other) == "" || o.asked() != 1 {
		t.Error("it was not fetched anew")
	}
}

func TestTokensRefuse(t *testing.T) {
	t.Parallel()
	good := TokensConfig{ClientID: "app", ClientSecret: config.NewSecret(clientSecret), Vault: &memory.Vault{}, Locker: &memory.Vault{}}
	if _, err := NewTokens(good); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*TokensConfig){
		func(c *TokensConfig) { c.ClientID = "" },
		func(c *TokensConfig) { c.ClientID = "a b" },
		func(c *TokensConfig) { c.ClientSecret = config.Secret{} },
		func(c *TokensConfig) { c.Grant = "password" },
		func(c *TokensConfig) { c.Keys = config.NewSecrets("") },
		func(c *TokensConfig) { c.Vault = nil },
		func(c *TokensConfig) { c.Locker = nil },
	} {
		c := good
		change(&c)
		if _, err := NewTokens(c); err == nil || strings.Contains(err.Error(), clientSecret) {
			t.Errorf("got %v", err)
		}
	}
}
