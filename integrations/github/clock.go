package github

import (
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/golang-jwt/jwt/v4"
)

// maxDrift is how far this machine's clock may be from GitHub's before that is
// reckoned with. GitHub refuses what an app signs in its future, and says the
// time in whole seconds.
const maxDrift = 20 * time.Second

// errClock: an app's signature was refused, and this machine's clock is wrong.
// The next signature goes by GitHub's.
var errClock = errors.New("github does not accept our time, so we go by its own")

// clock is GitHub's, as far as its answers tell. The zero value goes by this
// machine's. It is safe for concurrent use.
type clock struct{ ahead atomic.Int64 }

// heed learns from an answer how far GitHub's clock is ahead of this machine's,
// and tells whether that is news.
func (c *clock) heed(resp *http.Response, now time.Time) (news bool) {
	theirs, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return false
	}
	ahead := theirs.Sub(now)
	if ahead.Abs() < maxDrift {
		ahead = 0
	}
	change := ahead - time.Duration(c.ahead.Load())
	if change.Abs() < maxDrift {
		return false
	}
	c.ahead.Store(int64(ahead))
	return true
}

// punctual signs by GitHub's clock.
type punctual struct {
	ghinstallation.Signer
	clock *clock
}

// Sign shifts the times of the claims of an app.
func (p punctual) Sign(claims jwt.Claims) (string, error) {
	ahead := time.Duration(p.clock.ahead.Load())
	if c, ok := claims.(*jwt.RegisteredClaims); ok && ahead != 0 {
		c.IssuedAt = jwt.NewNumericDate(c.IssuedAt.Add(ahead).Truncate(time.Second))
		c.ExpiresAt = jwt.NewNumericDate(c.ExpiresAt.Add(ahead).Truncate(time.Second))
	}
	return p.Signer.Sign(claims)
}
