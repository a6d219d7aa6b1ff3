package broker

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func testSigner(t testing.TB, fill byte) *Signer {
	t.Helper()
	s, err := NewSigner(bytes.Repeat([]byte{fill}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSignAndVerify(t *testing.T) {
	t.Parallel()
	want := testGrant()
	token, err := testSigner(t, 1).Sign(want)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(token, " \r\n") || !strings.HasPrefix(token, tokenPrefix) {
		t.Errorf("token %q", token)
	}
	// Another Signer with the same key: a gateway that was restarted.
	got, err := testSigner(t, 1).Verify(token, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := testSigner(t, 1).Verify(token, want.Expires); !errors.Is(err, ErrExpired) {
		t.Errorf("at its expiry: %v", err)
	}
	if _, err := testSigner(t, 2).Verify(token, time.Now()); !errors.Is(err, ErrToken) {
		t.Errorf("with another key: %v", err)
	}
}

// No single character of a token can be changed, added or left out.
func TestTokenIsTamperProof(t *testing.T) {
	t.Parallel()
	s := testSigner(t, 1)
	token, err := s.Sign(testGrant())
	if err != nil {
		t.Fatal(err)
	}
	for i := range token {
		for _, bad := range []string{
			token[:i] + string(token[i]^1) + token[i+1:], token[:i] + token[i+1:],
			token[:i] + "A" + token[i:], token[:i], token[:i] + "\n" + token[i:],
		} {
			if bad == token {
				continue
			}
			if _, err := s.Verify(bad, time.Now()); !errors.Is(err, ErrToken) {
				t.Fatalf("changed at %d: %v", i, err)
			}
		}
	}
}

func TestSignRefuses(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*Grant){
		"no session":      func(g *Grant) { g.Session = "" },
		"no turn":         func(g *Grant) { g.Turn = "" },
		"no expiry":       func(g *Grant) { g.Expires = time.Time{} },
		"negative calls":  func(g *Grant) { g.Calls = -1 },
		"negative budget": func(g *Grant) { g.BudgetUSD = -1 },
		"no number":       func(g *Grant) { g.BudgetUSD = math.NaN() },
		"half a repo":     func(g *Grant) { g.Repo = "widgets" },
		"repo with path":  func(g *Grant) { g.Repo = "a/b/c" },
		"repo with dots":  func(g *Grant) { g.Repo = "a/.." },
		"tag":             func(g *Grant) { g.Push = "refs/tags/v1" },
		"short ref":       func(g *Grant) { g.Push = "main" },
		"ref with space":  func(g *Grant) { g.Push = "refs/heads/a b" },
		"ref with dots":   func(g *Grant) { g.Push = "refs/heads/a..b" },
		"no checkpoint":   func(g *Grant) { g.Push = Checkpoints },
		"below one":       func(g *Grant) { g.Push = Checkpoints + "gh.1/2" },
		"dots in one":     func(g *Grant) { g.Push = Checkpoints + "gh..2" },
		"beside them":     func(g *Grant) { g.Push = "refs/ship/other" },
		"pattern":         func(g *Grant) { g.Push = "refs/heads/*" },
		"too long":        func(g *Grant) { g.RepoKey = strings.Repeat("k", maxToken) },
	} {
		g := testGrant()
		spoil(&g)
		if token, err := testSigner(t, 1).Sign(g); err == nil {
			t.Errorf("%s: signed as %s", name, token)
		}
	}
	if _, err := NewSigner(nil); err == nil {
		t.Error("a signer without a key")
	}
}

// A release that knows a restriction which this one does not must not be
// understood by half.
func TestVerifyRefusesUnknownClaims(t *testing.T) {
	t.Parallel()
	s := testSigner(t, 1)
	claims := `{"s":"a","t":"1","x":"2999-01-01T00:00:00Z","only":"reading"}`
	signed := tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(claims))
	token := signed + "." + s.key.Sign(signed)
	if _, err := s.Verify(token, time.Now()); !errors.Is(err, ErrToken) {
		t.Errorf("got %v", err)
	}
}

func TestLoadKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "broker.key")
	keys := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = LoadKey(path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if len(k) != KeySize || !bytes.Equal(k, keys[0]) || bytes.Equal(k, make([]byte, KeySize)) {
			t.Fatalf("keys differ: %x and %x", k, keys[0])
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("files left: %v, %v", left, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKey(path); err == nil {
		t.Error("a key that others can read was taken")
	}
}

func TestLoadKeyRefusesHalfAKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "broker.key")
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKey(path); err == nil {
		t.Error("taken")
	}
	if _, err := LoadKey(filepath.Join(t.TempDir(), "no", "such", "folder")); err == nil {
		t.Error("made a key in no folder")
	}
}

// Whatever is sent, only what was signed is granted.
func FuzzVerify(f *testing.F) {
	s := testSigner(f, 1)
	g := testGrant()
	g.Expires = time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)
	token, err := s.Sign(g)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{token, token[:20], "ship1..", "ship1.", "", "ship2" + token[5:], token + "=", token + "."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := s.Verify(in, time.Unix(1e9, 0))
		if in == token {
			if diff := cmp.Diff(g, got); diff != "" || err != nil {
				t.Fatal(diff, err)
			}
		} else if err == nil {
			t.Fatalf("%q is good for %+v", in, got)
		}
	})
}

func FuzzDecodeGrant(f *testing.F) {
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(`{"s":"a","t":"1","x":"2999-01-01T00:00:00Z"}`)))
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(`{"s":"a","t":"1","r":"a/..","x":"2999-01-01T00:00:00Z"}`)))
	f.Fuzz(func(t *testing.T, in string) {
		if g, err := decodeGrant(in); err == nil && g.validate() != nil {
			t.Fatalf("%+v", g)
		}
	})
}
