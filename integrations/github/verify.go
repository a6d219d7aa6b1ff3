package github

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"ship/bot"
)

// signaturePrefix of X-Hub-Signature-256. The SHA-1 header is never looked at.
const signaturePrefix = "sha256="

// verifier holds the webhook secrets, all of which are good.
type verifier struct{ secrets [][]byte }

func newVerifier(secrets []string) (verifier, error) {
	if len(secrets) == 0 {
		return verifier{}, errors.New("github: no webhook secret")
	}
	v := verifier{}
	for _, s := range secrets {
		if strings.TrimSpace(s) == "" {
			return verifier{}, errors.New("github: a webhook secret is empty")
		}
		v.secrets = append(v.secrets, []byte(s))
	}
	return v, nil
}

// verify checks the header's value over the raw body. How long it takes does
// not depend on which secret fits, or how nearly.
func (v verifier) verify(signature string, body []byte) error {
	claimed, ok := strings.CutPrefix(signature, signaturePrefix)
	if !ok {
		return fmt.Errorf("no sha256 signature: %w", bot.ErrForged)
	}
	got, err := hex.DecodeString(claimed)
	if err != nil || len(got) != sha256.Size {
		return fmt.Errorf("signature is not a sha256 sum: %w", bot.ErrForged)
	}
	genuine := false
	for _, secret := range v.secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write(body)
		if hmac.Equal(mac.Sum(nil), got) {
			genuine = true
		}
	}
	if !genuine {
		return bot.ErrForged
	}
	return nil
}
