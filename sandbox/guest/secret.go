package guest

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"ship/sandbox"
)

// SecretVariable is the variable that a guest takes its secret from. It is not
// an argument, as those can be read by every process of the box; nor does any
// process that the guest starts inherit it.
const SecretVariable = "SHIP_GUEST_SECRET"

// errOpen is why a guest refuses to serve everybody: the loopback of a box is
// not private, neither to its processes nor to whoever forwards its ports.
var errOpen = errors.New("a guest that listens on TCP needs a secret, in the variable " + SecretVariable)

// takeSecret reads the secret and removes it from the environment.
func takeSecret() string {
	secret := os.Getenv(SecretVariable)
	_ = os.Unsetenv(SecretVariable)
	return secret
}

func checkSecret(cfg Config) error {
	if strings.HasPrefix(cfg.Listen, "tcp:") && cfg.Secret == "" {
		return errOpen
	}
	return nil
}

// guarded lets only those through who show the secret. Without one, the socket
// itself is what protects the guest.
func guarded(secret string, next http.Handler) http.Handler {
	if secret == "" {
		return next
	}
	want := []byte(bearer(secret))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			refuse(w, fmt.Errorf("the guest's secret is wrong or missing: %w", sandbox.ErrAuth))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func bearer(secret string) string { return "Bearer " + secret }
