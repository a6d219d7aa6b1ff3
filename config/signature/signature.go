// Package signature signs texts with the secrets that settings hold, for what
// others carry for us and bring back: links, tokens, slips.
package signature

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
)

// Key signs texts. Whoever has it can sign as well as check.
type Key []byte

// Derive makes a key of a secret, which is random already, for one purpose. What
// is signed for one is not signed for another, and no key tells anything of the
// secret or of another key. The same secret and purpose make the same key. The
// only error is that of a build which allows no secret as short as this one.
func Derive(secret []byte, purpose string) (Key, error) {
	return hkdf.Key(sha256.New, secret, nil, purpose, sha256.Size)
}

// Sign returns the signature of a text: its HMAC-SHA256 in 43 characters that an
// address may have, none of which is a dot. The same text has the same one.
func (k Key) Sign(text string) string {
	h := hmac.New(sha256.New, k)
	h.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// Signed tells whether a signature is that of a text, in a time that does not
// tell how nearly. They are compared as they are written: decoding would take
// line ends, and other ways to write the same.
func (k Key) Signed(text, signature string) bool {
	return hmac.Equal([]byte(k.Sign(text)), []byte(signature))
}
