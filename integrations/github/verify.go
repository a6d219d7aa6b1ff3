package github

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"ship/bot"
)

// signaturePrefix of X-Hub-Signature-256. The SHA-1 header is never looked at.
const signaturePrefix = "sha256="

// verifier knows the secrets of the webhooks.
type verifier struct{ bot.Signing }

func newVerifier(secrets []string) (verifier, error) {
	signing, err := bot.NewSigning(Platform, "webhook secret", secrets)
	return verifier{signing}, err
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
	return v.Verify(got, body)
}
