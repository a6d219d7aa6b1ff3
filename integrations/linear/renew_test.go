package linear

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"ship/session/memory"
)

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
	v := &torn{vault: &memory.Vault{}}
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
			v := &torn{vault: &memory.Vault{}}
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
	o, v := newOAuth(t), &memory.Vault{}
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
	o, v := newOAuth(t), &memory.Vault{}
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
	o, v := newOAuth(t), &memory.Vault{}
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
	v := unlocked{&memory.Vault{}}
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
		o, v := newOAuth(t), &memory.Vault{}
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
