package linear

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"ship/session/memory"
)

// revoke tells a gateway of a revocation.
func (o *oauth) revoke(g *Tokens, at time.Time, want bool) {
	o.t.Helper()
	if done, err := g.Revoke(o.t.Context(), org, at); err != nil || done != want {
		o.t.Fatalf("revoked: %t, %v", done, err)
	}
}

// shut expects that a workspace has to install the app again, and that Linear
// is not asked.
func (o *oauth) shut(g *Tokens) {
	o.t.Helper()
	_, err := g.Token(o.t.Context(), org)
	if !errors.Is(err, ErrReinstall) || problemOf(o.t, err).Again || o.asked() != 0 {
		o.t.Errorf("got %v", err)
	}
}

// TestRevokedInstallation stays so for all gateways until the app is installed
// again, which a late word of it does not undo.
func TestRevokedInstallation(t *testing.T) {
	onBoth(t, func(t *testing.T, v vault) {
		o := newOAuth(t)
		g := o.install(v)
		o.advance(23*time.Hour + 30*time.Minute)
		o.token(g) // renewed: the installation is as old as it was
		o.asked()
		at := o.now().Add(-time.Hour)
		for range 2 {
			o.revoke(g, at, true)
			o.shut(g)
		}
		o.shut(o.gateway(v, installed))
		if all, err := g.Workspaces(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("workspaces %v, %v", all, err)
		}
		if err := g.Heard(t.Context(), org, o.now()); err != nil { // no installation follows from that
			t.Fatal(err)
		}
		o.shut(g)
		grant, err := g.Exchange(t.Context(), "good2", "https://ship.example/linear")
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Keep(t.Context(), org, grant); err != nil {
			t.Fatal(err)
		}
		o.revoke(g, at, false)
		if token := o.token(o.gateway(v, installed)); token != grant.Access.Reveal() {
			t.Errorf("installed again, and got %q", token)
		}
		if all, err := g.Workspaces(t.Context()); err != nil || !slices.Equal(all, []string{org}) {
			t.Errorf("workspaces %v, %v", all, err)
		}
	})
}

// TestRevokedHome: with the client's own credentials, a workspace is open again
// when it sends something later.
func TestRevokedHome(t *testing.T) {
	onBoth(t, func(t *testing.T, v vault) {
		o := newOAuth(t)
		g := o.gateway(v)
		first := o.token(g)
		o.asked()
		o.advance(time.Hour)
		at := o.now()
		heard := func(when time.Time) {
			t.Helper()
			if err := g.Heard(t.Context(), org, when); err != nil {
				t.Fatal(err)
			}
		}
		heard(at) // nothing to restore
		o.revoke(g, at, true)
		o.shut(g)
		o.advance(60 * 24 * time.Hour) // longer than any token lives
		o.shut(o.gateway(v))
		heard(at.Add(-time.Minute)) // late
		o.shut(g)
		if token, err := g.Token(t.Context(), "another"); err != nil || token == first {
			t.Errorf("another workspace got %q, %v", token, err)
		}
		o.asked()
		o.shut(g)
		heard(at.Add(time.Minute))
		o.token(g)
		o.revoke(g, at, false)
		o.token(g)
	})
}

// TestHeardBeforeAnyToken: what was heard since is proof enough that a
// revocation is told late.
func TestHeardBeforeAnyToken(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	g := o.gateway(&memory.Vault{})
	o.revoke(g, o.now(), true)
	if err := g.Heard(t.Context(), org, o.now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	o.revoke(g, o.now(), false)
	o.token(g)
}

// TestRevokedWhileRenewed: what the renewal brings is not kept.
func TestRevokedWhileRenewed(t *testing.T) {
	onBoth(t, func(t *testing.T, v vault) {
		o := newOAuth(t)
		g := o.install(v)
		o.advance(25 * time.Hour)
		o.answer = func(http.ResponseWriter, *http.Request) bool {
			o.revoke(g, o.now(), true)
			return false
		}
		if token, err := g.Token(t.Context(), org); err == nil {
			t.Errorf("got %q", token)
		}
		o.asked()
		o.shut(g)
	})
}

func TestRevokeRefuses(t *testing.T) {
	t.Parallel()
	o := newOAuth(t)
	for _, g := range []*Tokens{o.gateway(&memory.Vault{}), o.gateway(&memory.Vault{}, installed)} {
		for _, odd := range []string{"", "a/b", "all_workspaces"} {
			if _, err := g.Revoke(t.Context(), odd, now); !errors.Is(err, errKey) {
				t.Errorf("%q: %v", odd, err)
			}
		}
	}
}
