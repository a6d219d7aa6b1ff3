// Package githubtest is a stand-in for GitHub: the part of its REST and
// GraphQL APIs that ship speaks, git over smart HTTP on real bare
// repositories, and webhooks signed as GitHub signs them.
//
// It checks what GitHub checks, for real: the app's signature on its JSON web
// tokens, that an installation token is alive and reaches this repository
// with this permission, and the limits on what may be posted. What it is told
// to do wrong (answers lost after the fact, rate limits, time-outs) it does
// too; see Fault. Its whole state lives in the process that made it, so that
// the program under test may be killed at any moment.
package githubtest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ship/bot/standin"
)

// Validator checks what goes in and out against a description of the API. The
// path of the request is as GitHub's description has it, without a prefix.
type Validator interface {
	Request(r *http.Request, body []byte) error
	Response(r *http.Request, status int, header http.Header, body []byte) error
}

// Options of a Server. The zero value is good.
type Options struct {
	// AppID of the one app; zero: 4242. Slug is its name; empty: "ship".
	AppID int64
	Slug  string
	// Key of the app; nil: a new one, which takes a while to find.
	Key *rsa.PrivateKey
	// Permissions of the app's installations; nil: those of ship's manifest.
	Permissions map[string]string
	// Events that the app is sent; nil: those of ship's manifest.
	Events []string
	// TokenTTL is how long an installation token lives; zero: one hour.
	TokenTTL time.Duration
	// Dir holds the repositories; empty: a temporary folder, removed by Close.
	Dir string
	// Validator sees every request and answer of the REST API; may be nil.
	// What it refuses is in Violations, and the request is answered with 422.
	Validator Validator
	// NoDrafts makes it refuse draft pull requests, as some plans do.
	NoDrafts bool
}

// Server is the stand-in. All its methods are safe for concurrent use.
type Server struct {
	// URL is where people and git find it; see APIURL for programs.
	URL string
	// Faults strike routes, and Calls counts those.
	standin.Faults
	// Notes are of routes that there are not, and of what the Validator refused.
	standin.Notes

	opts   Options
	key    *rsa.PrivateKey
	dir    string
	ownDir bool
	http   *http.Server
	served chan struct{}

	mu        sync.Mutex
	lastID    int64
	users     map[string]*user
	repos     map[string]*repository
	owners    map[string]*installation
	emails    map[string]*user // by verified address
	tokens    map[string]*token
	minted    *token // the last
	attempts  []attempt
	redeliver []Delivery
	// manifests by the code that they can be converted with.
	manifests map[string]appManifest
	hook      Hook
	secret    string
}

// New starts a stand-in on a loopback port.
func New(o Options) (*Server, error) {
	s, err := prepare(o)
	if err != nil {
		return nil, fmt.Errorf("start stand-in for github: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start stand-in for github: %w", err), s.removeDir())
	}
	s.URL = "http://" + listener.Addr().String()
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener) // ends with Close
	}()
	return s, nil
}

func prepare(o Options) (*Server, error) {
	if o.AppID == 0 {
		o.AppID = 4242
	}
	if o.Slug == "" {
		o.Slug = "ship"
	}
	if o.TokenTTL == 0 {
		o.TokenTTL = time.Hour
	}
	if o.Permissions == nil {
		o.Permissions = map[string]string{
			"metadata": "read", "contents": "write", "issues": "write",
			"pull_requests": "write", "checks": "write",
		}
	}
	if o.Events == nil {
		o.Events = []string{
			"issue_comment", "issues", "pull_request", "pull_request_review", "pull_request_review_comment", "check_run",
		}
	}
	var err error
	if o.Key == nil {
		if o.Key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			return nil, err
		}
	}
	s := &Server{
		opts: o, key: o.Key, dir: o.Dir, served: make(chan struct{}), lastID: 1000,
		users: map[string]*user{}, repos: map[string]*repository{}, owners: map[string]*installation{}, emails: map[string]*user{},
		tokens: map[string]*token{}, manifests: map[string]appManifest{},
	}
	if s.dir == "" {
		s.ownDir = true
		if s.dir, err = os.MkdirTemp("", "githubtest-"); err != nil {
			return nil, err
		}
	}
	return s, os.MkdirAll(filepath.Join(s.dir, "home"), 0o700)
}

// Close ends the server and removes its repositories, unless they lie in a
// folder that was given. Requests that hang are let go.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.served
	return errors.Join(err, s.removeDir())
}

func (s *Server) removeDir() error {
	if !s.ownDir {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// AppID of the one app.
func (s *Server) AppID() int64 { return s.opts.AppID }

// BotLogin is the name under which the app writes.
func (s *Server) BotLogin() string { return s.opts.Slug + "[bot]" }

// APIURL is the REST API's address, as github.api_url wants it. The GraphQL
// API is where GitHub Enterprise Server has it.
func (s *Server) APIURL() string { return s.URL + apiPrefix }

// PrivateKey is the app's key as PEM text.
func (s *Server) PrivateKey() string {
	der := x509.MarshalPKCS1PrivateKey(s.key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: der}))
}

// newID returns the next id of anything. The caller holds mu.
func (s *Server) newID() int64 {
	s.lastID++
	return s.lastID
}
