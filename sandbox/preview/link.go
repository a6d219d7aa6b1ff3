// Package preview shows what a server in a box answers to people outside of it,
// by a link of ours that expires. The box stays as private as it was: nothing in
// it can be reached but the one port that the link was signed for.
//
// What is shown is foreign: it comes from a repository, and may mean harm. It
// is therefore served on a host name of its own, on which there is nothing else
// of ship's. All previews share that host; they are told apart by their links,
// which none of them knows of another.
package preview

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ship/config/signature"
)

// What a link is refused for.
var (
	// ErrLink: nobody with our key signed this.
	ErrLink = errors.New("preview link is not valid")
	// ErrExpired: it was good once.
	ErrExpired = errors.New("preview link has expired")
)

// Target is what a link leads to.
type Target struct {
	Session string `json:"s"`
	// Box that the server runs in. One that takes its place is not meant.
	Box  string `json:"b"`
	Port int    `json:"p"`
	// Expires is in seconds since 1970.
	Expires int64 `json:"x"`
}

// Longest is how long a link may be good for.
const Longest = 24 * time.Hour

// reserved are ports of what a box has of ours: the bridge to the broker, the
// guest at E2B, the agent's own server, and E2B's daemon.
var reserved = []int{4010, 4011, 4096, 49983}

// Allowed tells whether a port of a box may be shown.
func Allowed(port int) bool {
	return port >= 1024 && port <= 65535 && !slices.Contains(reserved, port)
}

// Links signs links and checks them. What it holds is derived from a key, so
// that any process with the key can check them, also after a restart.
type Links struct {
	base string
	key  signature.Key
}

// NewLinks returns links that begin with base, an address without a path. The
// key is at least 16 random bytes, which may serve other ends too.
func NewLinks(base string, key []byte) (*Links, error) {
	if len(key) < 16 {
		return nil, errors.New("preview links need a key of at least 16 bytes")
	}
	own, err := signature.Derive(key, "ship preview links")
	if err != nil {
		return nil, fmt.Errorf("derive the key of preview links: %w", err)
	}
	return &Links{base: strings.TrimRight(base, "/"), key: own}, nil
}

// pathPrefix is what every path begins with that leads to a box.
const pathPrefix = "/preview/"

// URL is the link to a target until some time, at most Longest from now.
// The same target and time make the same link.
func (l *Links) URL(t Target, now, until time.Time) (string, error) {
	if !Allowed(t.Port) {
		return "", fmt.Errorf("port %d of a box is not shown", t.Port)
	}
	if latest := now.Add(Longest); until.After(latest) {
		until = latest
	}
	t.Expires = until.Unix()
	claims, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("sign a preview link: %w", err)
	}
	signed := base64.RawURLEncoding.EncodeToString(claims)
	return l.base + pathPrefix + signed + "." + l.key.Sign(signed) + "/", nil
}

// maxToken is far more than a target needs; a longer one is not looked at.
const maxToken = 1 << 10

// Verify returns the target of a link's token: ErrLink, ErrExpired.
func (l *Links) Verify(token string, now time.Time) (Target, error) {
	signed, mac, ok := strings.Cut(token, ".")
	if len(token) > maxToken || !ok || !l.key.Signed(signed, mac) {
		return Target{}, ErrLink
	}
	claims, err := base64.RawURLEncoding.DecodeString(signed)
	if err != nil {
		return Target{}, ErrLink
	}
	var t Target
	if err := json.Unmarshal(claims, &t); err != nil || t.Box == "" || !Allowed(t.Port) {
		return Target{}, ErrLink
	}
	if now.Unix() >= t.Expires {
		return Target{}, ErrExpired
	}
	return t, nil
}
