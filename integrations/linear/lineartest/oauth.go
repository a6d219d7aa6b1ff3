package lineartest

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"ship/bot/standin"
)

// oauthError is one of RFC 6749's.
type oauthError struct{ code, text string }

func (e oauthError) Error() string { return e.code + ": " + e.text }

func writeOAuthError(w http.ResponseWriter, err error) {
	var known oauthError
	if !errors.As(err, &known) {
		known = oauthError{code: "server_error", text: err.Error()}
	}
	status := http.StatusBadRequest
	if known.code == "invalid_client" {
		status = http.StatusUnauthorized
	}
	standin.WriteJSON(w, status, mustJSON(object{"error": known.code, "error_description": known.text}))
}

// form reads a request's form, which must be sent as one.
func form(r *http.Request) (url.Values, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, oauthError{code: "invalid_request", text: "the body must be a form"}
	}
	if err := r.ParseForm(); err != nil {
		return nil, oauthError{code: "invalid_request", text: err.Error()}
	}
	return r.PostForm, nil
}

func (s *Server) serveToken(w http.ResponseWriter, r *http.Request) {
	if s.Strike(w, r, "token") {
		return
	}
	in, err := form(r)
	var answer object
	if err == nil {
		id, secret, basic := r.BasicAuth()
		if !basic {
			id, secret = in.Get("client_id"), in.Get("client_secret")
		}
		answer, err = s.grant(id, secret, in)
	}
	if err != nil {
		writeOAuthError(w, err)
		return
	}
	standin.WriteJSON(w, http.StatusOK, mustJSON(answer))
}

func (s *Server) grant(id, secret string, in url.Values) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != s.opts.ClientID || secret != s.secret {
		return nil, oauthError{code: "invalid_client", text: "the client is not known by these credentials"}
	}
	switch in.Get("grant_type") {
	case "client_credentials":
		return s.grantClient(in)
	case "authorization_code":
		return s.grantCode(in)
	case "refresh_token":
		return s.grantRefresh(in)
	}
	return nil, oauthError{code: "unsupported_grant_type", text: "not supported: " + in.Get("grant_type")}
}

func (s *Server) grantClient(in url.Values) (object, error) {
	scopes := parseScopes(in.Get("scope"))
	if err := checkScopes(scopes); err != nil {
		return nil, err
	}
	if s.uninstalled { // assumed
		return nil, oauthError{code: "invalid_grant", text: "the app is not installed"}
	}
	s.dropOthers(scopes)
	t, lives := s.mint(scopes, true)
	return issued(t, lives), nil
}

func issued(t *token, lives time.Duration) object {
	return object{
		"access_token": t.text, "token_type": "Bearer", "expires_in": int(lives.Seconds()),
		"scope": strings.Join(t.scopes, " "),
	}
}

// withRefresh makes an access token and what renews it.
func (s *Server) withRefresh(scopes []string) object {
	t, lives := s.mint(scopes, false)
	answer := issued(t, lives)
	text := "lin_refresh_" + random(32)
	s.refreshes[text] = &refresh{scopes: scopes}
	answer["refresh_token"] = text
	return answer
}

func (s *Server) grantCode(in url.Values) (object, error) {
	text := in.Get("code")
	c := s.codes[text]
	delete(s.codes, text) // good for one attempt
	switch {
	case c == nil || !s.now().Before(c.expires):
		return nil, oauthError{code: "invalid_grant", text: "the code is not good, or no longer"}
	case in.Get("redirect_uri") != c.redirect:
		return nil, oauthError{code: "invalid_grant", text: "redirect_uri is not that of the authorization"}
	case c.challenge != "" && challenge(in.Get("code_verifier")) != c.challenge:
		return nil, oauthError{code: "invalid_grant", text: "code_verifier does not fit"}
	}
	s.uninstalled = false
	return s.withRefresh(c.scopes), nil
}

// challenge is what RFC 7636 makes of a verifier by S256.
func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func (s *Server) grantRefresh(in url.Values) (object, error) {
	r := s.refreshes[in.Get("refresh_token")]
	now := s.now()
	if r == nil || (!r.used.IsZero() && !now.Before(r.used.Add(s.opts.RefreshGrace))) {
		return nil, oauthError{code: "invalid_grant", text: "the refresh token is not good, or no longer"}
	}
	if r.used.IsZero() {
		r.used = now
	}
	return s.withRefresh(r.scopes), nil
}

func (s *Server) serveRevoke(w http.ResponseWriter, r *http.Request) {
	if s.Strike(w, r, "revoke") {
		return
	}
	in, err := form(r)
	if err != nil {
		writeOAuthError(w, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, in.Get("token"))
	delete(s.refreshes, in.Get("token"))
	standin.WriteJSON(w, http.StatusOK, []byte(`{}`))
}

// serveAuthorize is the page on which an administrator agrees to the app; here
// they always do.
func (s *Server) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	back, err := s.authorize(r.URL.Query())
	if err != nil {
		writeOAuthError(w, err)
		return
	}
	http.Redirect(w, r, back, http.StatusFound)
}

func (s *Server) authorize(in url.Values) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	scopes := parseScopes(in.Get("scope"))
	back, err := url.Parse(in.Get("redirect_uri"))
	switch {
	case in.Get("client_id") != s.opts.ClientID:
		return "", oauthError{code: "invalid_client", text: "the client is not known"}
	case in.Get("response_type") != "code" || in.Get("actor") != "app":
		return "", oauthError{code: "invalid_request", text: "an app asks for response_type=code and actor=app"}
	case err != nil || !back.IsAbs() || (s.opts.RedirectURIs != nil && !slices.Contains(s.opts.RedirectURIs, back.String())):
		return "", oauthError{code: "invalid_request", text: "redirect_uri is not registered"}
	case in.Get("code_challenge") != "" && in.Get("code_challenge_method") != "S256":
		return "", oauthError{code: "invalid_request", text: "only S256 is known"}
	}
	if err := checkScopes(scopes); err != nil {
		return "", err
	}
	text := random(16)
	s.codes[text] = &code{redirect: back.String(), challenge: in.Get("code_challenge"), scopes: scopes, expires: s.now().Add(codeTTL)}
	query := back.Query()
	query.Set("code", text)
	query.Set("state", in.Get("state"))
	back.RawQuery = query.Encode()
	return back.String(), nil
}
