package linear

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"ship/config"
)

const clientSecret = "hunter2-the-client-secret"

// grace is how long Linear takes a refresh token that was replaced.
const grace = 30 * time.Minute

// oauth is a token address that keeps Linear's rules: a refresh token is good
// for one renewal, and a while after it in case the answer was lost.
type oauth struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	clock    time.Time
	made     int
	refresh  map[string]time.Time // when it was replaced; zero: never
	codes    map[string]bool
	requests []string
	// answer, when set, is given instead of what is asked for. It may block.
	answer func(w http.ResponseWriter, r *http.Request) (answered bool)
	// after, when set, is called before a grant is sent.
	after func()
}

func newOAuth(t *testing.T) *oauth {
	o := &oauth{t: t, clock: now, refresh: map[string]time.Time{}, codes: map[string]bool{"good": true, "good2": true}}
	o.Server = httptest.NewServer(http.HandlerFunc(o.serve))
	t.Cleanup(o.Close)
	return o
}

func (o *oauth) now() time.Time { o.mu.Lock(); defer o.mu.Unlock(); return o.clock }

func (o *oauth) advance(d time.Duration) { o.mu.Lock(); defer o.mu.Unlock(); o.clock = o.clock.Add(d) }

// asked returns how often each grant was asked for since the last time.
func (o *oauth) asked() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.requests)
	o.requests = nil
	return n
}

func (o *oauth) serve(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		o.t.Error(err)
	}
	kind := r.PostForm.Get("grant_type")
	o.mu.Lock()
	o.requests = append(o.requests, kind)
	answer, after := o.answer, o.after
	o.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	if r.PostForm.Get("client_id") != "app" || r.PostForm.Get("client_secret") != clientSecret {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	grant := o.grant(r)
	if grant == nil {
		refuse(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	if after != nil {
		after()
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(grant); err != nil {
		o.t.Log(err)
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":%q,"error_description":"about %s"}`, code, clientSecret)
}

// grant does what the form asks for, or returns nil.
func (o *oauth) grant(r *http.Request) map[string]any {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.made++
	access := fmt.Sprintf("access-%d", o.made)
	switch r.PostForm.Get("grant_type") {
	case GrantClient:
		if r.PostForm.Get("scope") != scopes {
			return nil
		}
		return map[string]any{"access_token": access, "expires_in": 2591999}
	case GrantCode:
		code := r.PostForm.Get("code")
		if !o.codes[code] || r.PostForm.Get("redirect_uri") != "https://ship.example/linear" {
			return nil
		}
		delete(o.codes, code)
	case "refresh_token":
		old := r.PostForm.Get("refresh_token")
		replaced, known := o.refresh[old]
		if !known || !replaced.IsZero() && o.clock.Sub(replaced) > grace {
			return nil
		}
		if replaced.IsZero() {
			o.refresh[old] = o.clock
		}
	default:
		return nil
	}
	refresh := fmt.Sprintf("refresh-%d", o.made)
	o.refresh[refresh] = time.Time{}
	return map[string]any{"access_token": access, "refresh_token": refresh, "expires_in": 86399}
}

// gateway is one more process with the same settings.
func (o *oauth) gateway(v vault, changes ...func(*TokensConfig)) *Tokens {
	o.t.Helper()
	c := TokensConfig{
		ClientID: "app", ClientSecret: config.NewSecret(clientSecret), TokenURL: o.URL + "/token",
		Vault: v, Locker: v, Now: o.now, Transport: &http.Transport{DisableKeepAlives: true},
	}
	for _, change := range changes {
		change(&c)
	}
	t, err := NewTokens(c)
	if err != nil {
		o.t.Fatal(err)
	}
	return t
}

func installed(c *TokensConfig) {
	c.Grant, c.Keys = GrantCode, config.NewSecrets("0123456789abcdef0123456789abcdef")
}

// install makes a gateway and installs it in a workspace.
func (o *oauth) install(v vault, changes ...func(*TokensConfig)) *Tokens {
	o.t.Helper()
	g := o.gateway(v, append([]func(*TokensConfig){installed}, changes...)...)
	grant, err := g.Exchange(o.t.Context(), "good", "https://ship.example/linear")
	if err != nil {
		o.t.Fatal(err)
	}
	if err := g.Keep(o.t.Context(), org, grant); err != nil {
		o.t.Fatal(err)
	}
	o.asked()
	return g
}

func (o *oauth) token(g *Tokens) string {
	o.t.Helper()
	token, err := g.Token(o.t.Context(), org)
	if err != nil {
		o.t.Fatal(err)
	}
	return token
}
