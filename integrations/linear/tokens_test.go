package linear

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"ship/config"
	"ship/session"
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
	g := o.gateway(&MemoryVault{})
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
		{"wrong secret", 401, `{"error":"invalid_client"}`, false, 0},
		{"redirect", 302, "", false, 0},
		{"not found", 404, clientSecret, false, 0},
		{"odd code", 400, `{"error":"` + clientSecret + `"}`, false, 0},
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
			g := o.gateway(&MemoryVault{})
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
	_, err := o.gateway(&MemoryVault{}).Token(t.Context(), org)
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
	o, v := newOAuth(t), &MemoryVault{}
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
	g := o.install(&MemoryVault{})
	_, err := g.Exchange(t.Context(), "good", "https://ship.example/linear")
	if problemOf(t, err).Again {
		t.Errorf("got %v", err)
	}
}

// TestSealedAtRest: nothing in the vault can be read without the key, and the
// key can be changed.
func TestSealedAtRest(t *testing.T) {
	t.Parallel()
	o, v := newOAuth(t), &MemoryVault{}
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
	if !errors.Is(err, errSealed) || problemOf(t, err).Again || !strings.Contains(err.Error(), "token_key") {
		t.Errorf("with the old key %v", err)
	}
}

// TestClientSecretChanged: by the client's credentials, what cannot be read is
// fetched anew.
func TestClientSecretChanged(t *testing.T) {
	t.Parallel()
	o, v := newOAuth(t), &MemoryVault{}
	o.token(o.gateway(v))
	other := o.gateway(v, func(c *TokensConfig) { c.Keys = config.NewSecrets("another key") })
	if o.asked(); o.token(other) == "" || o.asked() != 1 {
		t.Error("it was not fetched anew")
	}
}

// torn is a vault whose swaps are lost for a while.
type torn struct {
	vault
	mu  sync.Mutex
	err error
}

func (v *torn) tear(err error) { v.mu.Lock(); defer v.mu.Unlock(); v.err = err }

func (v *torn) Swap(ctx context.Context, name string, version int64, value []byte, ttl time.Duration) (bool, error) {
	v.mu.Lock()
	err := v.err
	v.mu.Unlock()
	if err != nil {
		return false, err
	}
	return v.vault.Swap(ctx, name, version, value, ttl)
}

// TestKeptBeforeUse: a token that could not be kept is not used, and is kept
// later, without asking Linear again.
func TestKeptBeforeUse(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	v := &torn{vault: &MemoryVault{}}
	g := o.install(v)
	first := o.token(g)
	o.advance(23*time.Hour + time.Minute)
	v.tear(errors.New("vault is down"))
	if token := o.token(g); token != first || o.asked() != 1 {
		t.Errorf("got %q, the old one still does", token)
	}
	o.advance(time.Hour)
	if _, err := g.Token(t.Context(), org); !problemOf(t, err).Again || o.asked() != 0 {
		t.Errorf("got %v", err)
	}
	v.tear(nil)
	if token := o.token(g); token == first || o.asked() != 0 {
		t.Errorf("got %q", token)
	}
	if token := o.token(o.gateway(v, installed)); token == first || o.asked() != 0 {
		t.Errorf("another gateway got %q", token)
	}
}

// TestGatewayDies between Linear's answer and the vault. The next one renews
// again while Linear allows it; after that the workspace is lost, and everybody
// hears of it without Linear being asked more than once.
func TestGatewayDies(t *testing.T) {
	for name, late := range map[string]time.Duration{"within the grace": 29 * time.Minute, "too late": 31 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOAuth(t)
			v := &torn{vault: &MemoryVault{}}
			dies := o.install(v)
			o.advance(25 * time.Hour)
			v.tear(errors.New("the gateway died"))
			if _, err := dies.Token(t.Context(), org); err == nil || o.asked() != 1 {
				t.Fatalf("got %v", err)
			}
			v.tear(nil)
			o.advance(late)
			var log bytes.Buffer
			next := o.gateway(v, installed, func(c *TokensConfig) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			token, err := next.Token(t.Context(), org)
			if late < grace {
				if err != nil || token == "" || o.asked() != 1 {
					t.Errorf("%q, %v", token, err)
				}
				return
			}
			for _, g := range []*Tokens{next, o.gateway(v, installed), next} {
				_, err := g.Token(t.Context(), org)
				if p := problemOf(t, err); !errors.Is(err, ErrReinstall) || p.Again || !strings.Contains(p.Say, "install") {
					t.Errorf("got %v", err)
				}
				o.advance(time.Hour)
			}
			if n := o.asked(); n != 1 {
				t.Errorf("asked %d times with a refused token", n)
			}
			if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), org) {
				t.Errorf("log:\n%s", log.String())
			}
			grant, err := next.Exchange(t.Context(), "good2", "https://ship.example/linear")
			if err != nil {
				t.Fatal(err)
			}
			if err := next.Keep(t.Context(), org, grant); err != nil {
				t.Fatal(err)
			}
			if got := o.token(dies); got != grant.Access.Reveal() {
				t.Errorf("installed again, got %q", got)
			}
		})
	}
}

// TestOldTokenOutlivesRefusal: Linear refuses the refresh token while the
// access token is still good.
func TestOldTokenOutlivesRefusal(t *testing.T) {
	t.Parallel()
	o, v := newOAuth(t), &MemoryVault{}
	g := o.install(v)
	first := o.token(g)
	o.refresh = map[string]time.Time{}
	o.advance(23*time.Hour + time.Minute)
	for range 3 {
		if token := o.token(g); token != first {
			t.Errorf("got %q", token)
		}
	}
	if n := o.asked(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	o.advance(time.Hour)
	if _, err := g.Token(t.Context(), org); !errors.Is(err, ErrReinstall) || o.asked() != 0 {
		t.Errorf("got %v", err)
	}
}

// TestAskerLeaves while Linear answers: what came is kept all the same.
func TestAskerLeaves(t *testing.T) {
	t.Parallel()
	o, v := newOAuth(t), &MemoryVault{}
	g := o.install(v)
	o.advance(25 * time.Hour)
	ctx, cancel := context.WithCancelCause(t.Context())
	o.after = func() { cancel(errors.New("the asker left")) }
	token, err := g.Token(ctx, org)
	if err != nil {
		t.Fatal(err)
	}
	o.after = nil
	if got := o.token(o.gateway(v, installed)); got != token || o.asked() != 1 {
		t.Errorf("kept %q, granted %q", got, token)
	}
}

// TestWaiterLeaves: who waits for another's renewal can go.
func TestWaiterLeaves(t *testing.T) {
	t.Parallel()
	o, v := newOAuth(t), &MemoryVault{}
	g := o.gateway(v)
	begun, done := make(chan struct{}), make(chan struct{})
	o.answer = func(http.ResponseWriter, *http.Request) bool { close(begun); <-done; return false }
	var all sync.WaitGroup
	all.Go(func() { o.token(g) })
	<-begun
	left := errors.New("left")
	for name, waiter := range map[string]*Tokens{"same process": g, "another": o.gateway(v)} {
		ctx, cancel := context.WithCancelCause(t.Context())
		timer := time.AfterFunc(20*time.Millisecond, func() { cancel(left) })
		if _, err := waiter.Token(ctx, org); !errors.Is(err, left) {
			t.Errorf("%s: %v", name, err)
		}
		timer.Stop()
	}
	close(done)
	all.Wait()
}

// TestTwoRenewAtOnce: a lock that lapsed lets a second one in. One of them is
// kept, and both use that.
func TestTwoRenewAtOnce(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	v := unlocked{&MemoryVault{}}
	gateways := []*Tokens{o.install(v), o.gateway(v, installed)}
	o.advance(25 * time.Hour)
	var both sync.WaitGroup
	both.Add(2)
	o.after = func() { both.Done(); both.Wait() }
	everyone(t, gateways)
	if n := o.asked(); n != 2 {
		t.Errorf("asked %d times", n)
	}
	o.after = nil
	o.advance(25 * time.Hour)
	o.token(gateways[0]) // with the one that was kept
}

// unlocked gives every lock to everybody.
type unlocked struct{ vault }

func (unlocked) Lock(context.Context, string, string, time.Duration) (bool, error) { return true, nil }

// TestInstalledWhileRenewing: the new installation counts.
func TestInstalledWhileRenewing(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{false, true} {
		o, v := newOAuth(t), &MemoryVault{}
		g := o.install(v)
		grant, err := g.Exchange(t.Context(), "good2", "https://ship.example/linear")
		if err != nil {
			t.Fatal(err)
		}
		o.advance(25 * time.Hour)
		o.answer = func(w http.ResponseWriter, _ *http.Request) bool {
			if err := g.Keep(t.Context(), org, grant); err != nil {
				t.Error(err)
			}
			if refused {
				refuse(w, http.StatusBadRequest, "invalid_grant")
			}
			return refused
		}
		token, err := g.Token(t.Context(), org)
		if refused {
			if !problemOf(t, err).Again {
				t.Errorf("got %v", err)
			}
			token, err = g.Token(t.Context(), org)
		}
		if err != nil || token != grant.Access.Reveal() {
			t.Errorf("refused %t: %q, %v", refused, token, err)
		}
	}
}

func TestTokensRefuse(t *testing.T) {
	t.Parallel()
	good := TokensConfig{ClientID: "app", ClientSecret: config.NewSecret(clientSecret), Vault: &MemoryVault{}, Locker: &MemoryVault{}}
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
