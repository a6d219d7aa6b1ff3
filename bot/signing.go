package bot

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"strings"
)

// Signing holds the secrets that a platform signs its webhooks with. All of
// them are good, so that they can be rotated.
type Signing struct{ secrets [][]byte }

// NewSigning refuses to work without a secret, or with an empty one. The
// platform, and what it calls such a secret, are for the error.
func NewSigning(platform, kind string, secrets []string) (Signing, error) {
	if len(secrets) == 0 {
		return Signing{}, fmt.Errorf("%s: no %s", platform, kind)
	}
	s := Signing{}
	for _, secret := range secrets {
		if strings.TrimSpace(secret) == "" {
			return Signing{}, fmt.Errorf("%s: a %s is empty", platform, kind)
		}
		s.secrets = append(s.secrets, []byte(secret))
	}
	return s, nil
}

// Verify checks an HMAC-SHA256 over the parts, one behind the other. It returns
// ErrForged when none of the secrets made it. How long it takes does not depend
// on which secret fits, or how nearly.
func (s Signing) Verify(sum []byte, parts ...[]byte) error {
	genuine := false
	for _, secret := range s.secrets {
		mac := hmac.New(sha256.New, secret)
		for _, part := range parts {
			mac.Write(part)
		}
		if hmac.Equal(mac.Sum(nil), sum) {
			genuine = true
		}
	}
	if !genuine {
		return ErrForged
	}
	return nil
}
