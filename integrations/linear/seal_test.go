package linear

import (
	"bytes"
	"errors"
	"testing"
)

func ring(t testing.TB, secrets ...string) keyring {
	t.Helper()
	r, err := newKeyring(secrets)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSeal(t *testing.T) {
	t.Parallel()
	old, plain := ring(t, "old"), []byte("a token")
	sealed := old.seal("acme", plain)
	if bytes.Contains(sealed, plain) || bytes.Equal(sealed, old.seal("acme", plain)) {
		t.Errorf("sealed %q", sealed)
	}
	for name, tt := range map[string]struct {
		ring keyring
		name string
		ok   bool
	}{
		"same key":         {old, "acme", true},
		"rotated":          {ring(t, "new", "old"), "acme", true},
		"other key":        {ring(t, "new"), "acme", false},
		"of another":       {old, "acme2", false},
		"of nobody":        {old, "", false},
		"name and version": {old, "\x01acme", false},
	} {
		if got, err := tt.ring.open(tt.name, sealed); (err == nil) != tt.ok || tt.ok && !bytes.Equal(got, plain) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		if _, err := old.open("acme", bad); !errors.Is(err, errSealed) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if _, err := old.open("acme", sealed[:i]); !errors.Is(err, errSealed) {
			t.Errorf("cut to %d: %v", i, err)
		}
	}
}

func TestKeyringRefuses(t *testing.T) {
	t.Parallel()
	for _, secrets := range [][]string{nil, {""}, {"good", ""}} {
		if _, err := newKeyring(secrets); err == nil {
			t.Errorf("%q were accepted", secrets)
		}
	}
}

func FuzzOpen(f *testing.F) {
	r := ring(f, "new", "old")
	f.Add("acme", r.seal("acme", []byte("a token")))
	f.Add("", []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, name string, sealed []byte) {
		if plain, err := r.open(name, sealed); err == nil && string(plain) != "a token" {
			t.Errorf("opened %q", plain)
		}
	})
}
