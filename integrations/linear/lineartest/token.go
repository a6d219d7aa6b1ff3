package lineartest

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	dayTTL   = 24*time.Hour - time.Second
	monthTTL = 30*24*time.Hour - time.Second
	codeTTL  = 10 * time.Minute // assumed
)

// token is an access token of the app.
type token struct {
	text    string
	scopes  []string
	expires time.Time
	// client: from client credentials, which end when the secret is rotated.
	client bool
}

// refresh is a refresh token. Used once, it is followed by another.
type refresh struct {
	scopes []string
	used   time.Time
}

// code is what a person who installed the app brings back.
type code struct {
	redirect  string
	challenge string
	scopes    []string
	expires   time.Time
}

// bearer returns the live token of a header, or nil. The caller holds mu.
func (s *Server) bearer(authorization string) *token {
	text, ok := strings.CutPrefix(authorization, "Bearer ")
	if !ok {
		return nil
	}
	t := s.tokens[text]
	if t == nil || !s.now().Before(t.expires) {
		return nil
	}
	return t
}

// mint makes an access token. The caller holds mu.
func (s *Server) mint(scopes []string, client bool) (t *token, lives time.Duration) {
	lives = s.opts.TokenTTL
	switch {
	case lives != 0:
	case client:
		lives = monthTTL
	default:
		lives = dayTTL
	}
	t = &token{text: "lin_oauth_" + random(32), scopes: scopes, expires: s.now().Add(lives), client: client}
	s.tokens[t.text] = t
	return t, lives
}

// dropOthers ends the client's tokens of other scopes, as a new one does.
func (s *Server) dropOthers(scopes []string) {
	for text, t := range s.tokens {
		if t.client && !slices.Equal(t.scopes, scopes) {
			delete(s.tokens, text)
		}
	}
}

// Token makes an access token without any ado, for tests that are not about
// how it is had.
func (s *Server) Token() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, _ := s.mint(parseScopes("read,write,app:assignable,app:mentionable"), false)
	return t.text
}

// ExpireTokens ends all access tokens that live. Refresh tokens stay good.
func (s *Server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// RotateSecret changes the client's secret, which ends the tokens that its
// credentials brought. See ClientSecret.
func (s *Server) RotateSecret() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secret = random(16)
	for text, t := range s.tokens {
		if t.client {
			delete(s.tokens, text)
		}
	}
}

// parseScopes reads scopes in either of the ways in which they are written.
func parseScopes(text string) []string {
	scopes := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// checkScopes refuses what an app may not have.
func checkScopes(scopes []string) error {
	known := []string{
		"read", "write", "issues:create", "comments:create", "timeSchedule:write", "app:assignable", "app:mentionable",
		"customer:read", "customer:write", "initiative:read", "initiative:write",
	}
	for _, scope := range scopes {
		if !slices.Contains(known, scope) {
			return oauthError{code: "invalid_scope", text: "an app may not have the scope " + scope}
		}
	}
	if !slices.Contains(scopes, "read") {
		return oauthError{code: "invalid_scope", text: "read is always needed"}
	}
	return nil
}

// newID makes a UUID of version 4.
func newID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// random makes so many random bytes, in hexadecimal.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}
