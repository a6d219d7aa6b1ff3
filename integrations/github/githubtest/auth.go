package githubtest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// token is an installation token: what it reaches, and how far.
type token struct {
	text        string
	in          *installation
	expires     time.Time
	permissions map[string]string
	// repos it is narrowed to; nil: all of the installation's.
	repos map[int64]bool
}

func (t *token) alive() bool { return time.Now().Before(t.expires) && !t.in.suspended }

// reaches tells whether the token may see a repository.
func (t *token) reaches(r *repository) bool {
	return r != nil && r.installed && r.owner == t.in.owner && (t.repos == nil || t.repos[r.id])
}

// allows tells whether the token has one of the permissions, written as
// "issues=write". Write includes read.
func (t *token) allows(any ...string) bool {
	for _, need := range any {
		name, level, _ := strings.Cut(need, "=")
		if got := t.permissions[name]; got == level || got == "write" {
			return true
		}
	}
	return len(any) == 0
}

// verifyApp checks a JSON web token as GitHub does: the app's own signature,
// its id as the issuer, and a life of ten minutes at most.
func (s *Server) verifyApp(r *http.Request) error {
	raw, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	parts := strings.Split(raw, ".")
	if !ok || len(parts) != 3 {
		return unauthorised("A JSON web token could not be decoded")
	}
	var header struct{ Alg string }
	var claims struct {
		Iss json.Number
		Iat int64
		Exp int64
	}
	if decodePart(parts[0], &header) != nil || decodePart(parts[1], &claims) != nil || header.Alg != "RS256" {
		return unauthorised("A JSON web token could not be decoded")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err != nil || rsa.VerifyPKCS1v15(&s.key.PublicKey, crypto.SHA256, sum[:], signature) != nil {
		return unauthorised("A JSON web token could not be decoded")
	}
	return s.checkClaims(claims.Iss.String(), time.Unix(claims.Iat, 0), time.Unix(claims.Exp, 0))
}

func unauthorised(message string) error {
	return refusal{status: http.StatusUnauthorized, message: message}
}

func decodePart(part string, into any) error {
	b, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

func (s *Server) checkClaims(issuer string, issued, expires time.Time) error {
	now := time.Now()
	switch {
	case issuer != strconv.FormatInt(s.opts.AppID, 10):
		return unauthorised("Integration must generate a public key")
	case issued.After(now.Add(time.Second)):
		return unauthorised("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	case !expires.After(now):
		return unauthorised("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	case expires.Sub(now) > 10*time.Minute:
		return unauthorised("'Expiration time' claim ('exp') is too far in the future")
	}
	return nil
}

// bearer returns the live installation token of a request, or nil. The caller
// holds mu.
func (s *Server) bearer(r *http.Request) *token {
	authorization := r.Header.Get("Authorization")
	for _, scheme := range []string{"token ", "Bearer ", "bearer "} {
		if text, ok := strings.CutPrefix(authorization, scheme); ok {
			return s.live(text)
		}
	}
	return nil
}

func (s *Server) live(text string) *token {
	if t := s.tokens[text]; t != nil && t.alive() {
		return t
	}
	return nil
}

// tokenRequest is the body of POST …/access_tokens.
type tokenRequest struct {
	Repositories  []string          `json:"repositories"`
	RepositoryIDs []int64           `json:"repository_ids"`
	Permissions   map[string]string `json:"permissions"`
}

// mint makes a token. It refuses what the installation itself does not have.
// The caller holds mu.
func (s *Server) mint(in *installation, want tokenRequest) (*token, error) {
	t := &token{in: in, expires: clock().Add(s.opts.TokenTTL), permissions: in.permissions}
	if want.Permissions != nil {
		t.permissions = want.Permissions
	}
	for name, level := range t.permissions {
		if got := in.permissions[name]; got == "" || (level == "write" && got != "write") {
			return nil, refusal{status: http.StatusUnprocessableEntity, message: "The permissions requested are not granted to this installation."}
		}
	}
	// A copy: what is granted later does not change tokens that live.
	t.permissions = cloneWith(t.permissions, "metadata", "read")
	if len(want.RepositoryIDs)+len(want.Repositories) > 0 {
		t.repos = map[int64]bool{}
	}
	for _, r := range s.repos {
		if r.owner == in.owner && r.installed && wanted(want, r) {
			t.repos[r.id] = true
		}
	}
	if len(t.repos) < len(want.RepositoryIDs)+len(want.Repositories) {
		return nil, refusal{status: http.StatusUnprocessableEntity, message: "There is at least one repository that does not exist or is not accessible to the parent installation."}
	}
	t.text = "ghs_" + random(36)
	s.tokens[t.text], s.minted = t, t
	return t, nil
}

func wanted(want tokenRequest, r *repository) bool {
	for _, id := range want.RepositoryIDs {
		if id == r.id {
			return true
		}
	}
	for _, name := range want.Repositories {
		if strings.EqualFold(name, r.name) {
			return true
		}
	}
	return false
}

func cloneWith(m map[string]string, key, value string) map[string]string {
	out := map[string]string{key: value}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// ExpireTokens ends all tokens that live, as an unsuspended or reinstalled app
// sees it.
func (s *Server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// Suspend suspends the app's installation on an account, or ends that.
func (s *Server) Suspend(owner string, suspended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.installed(owner).suspended = suspended
}

// LastToken returns the permissions of the token that was minted last.
func (s *Server) LastToken() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.minted == nil {
		return nil
	}
	return maps.Clone(s.minted.permissions)
}

func random(n int) string {
	b := make([]byte, n/2)
	if _, err := rand.Read(b); err != nil {
		panic(fmt.Sprintf("githubtest: no randomness: %v", err))
	}
	return hex.EncodeToString(b)
}
