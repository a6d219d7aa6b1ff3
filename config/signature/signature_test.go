package signature

import (
	"encoding/hex"
	"testing"
)

// TestForm holds what is out in the world already: a signature that changed its
// form would end every link at once. The values are those that OpenSSL computes.
func TestForm(t *testing.T) {
	t.Parallel()
	key, err := Derive([]byte("0123456789abcdef"), "a purpose")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := hex.EncodeToString(key), "001325416d145158b5006ead0340da052d529e1247593e3d82664d8ffe085e64"; got != want {
		t.Errorf("key %s, want %s", got, want)
	}
	if got, want := key.Sign("a text"), "bKNUhwRkQEb329VIQ_BZra0p0w8LsarNh856r3V9QZ8"; got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
}

func TestSigned(t *testing.T) {
	t.Parallel()
	key := Key("one key")
	good := key.Sign("a text")
	for name, c := range map[string]struct {
		key             Key
		text, signature string
		want            bool
	}{
		"genuine":           {key, "a text", good, true},
		"another text":      {key, "a text.", good, false},
		"another key":       {Key("another"), "a text", good, false},
		"none":              {key, "a text", "", false},
		"a part":            {key, "a text", good[:42], false},
		"with a line end":   {key, "a text", good + "\n", false},
		"with padding":      {key, "a text", good + "=", false},
		"of a derived key":  {derived(t, "one"), "a text", derived(t, "one").Sign("a text"), true},
		"of a neighbour's":  {derived(t, "one"), "a text", derived(t, "two").Sign("a text"), false},
		"of the secret":     {derived(t, "one"), "a text", Key("0123456789abcdef").Sign("a text"), false},
		"nothing is signed": {key, "", key.Sign(""), true},
	} {
		if got := c.key.Signed(c.text, c.signature); got != c.want {
			t.Errorf("%s: signed %t, want %t", name, got, c.want)
		}
	}
}

func derived(t *testing.T, purpose string) Key {
	t.Helper()
	key, err := Derive([]byte("0123456789abcdef"), purpose)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
