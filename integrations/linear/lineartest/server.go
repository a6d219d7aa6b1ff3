// Package lineartest is a stand-in for Linear: the operations of
// graphql/linear, OAuth, and webhooks signed as Linear signs them.
//
// It derives the status of a session from its activities as Linear does, and
// refuses what Linear refuses: ids that are used, empty bodies, tokens that
// have expired, more requests than are allowed. Where Linear does not say what
// it does, the stand-in takes the view that is harder on its callers; those
// places are marked "assumed". What it is told to do wrong (answers lost after
// the fact, time-outs) it does too; see Fault. Its whole state lives in the
// process that made it, so that the program under test may be killed at any
// moment.
package lineartest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"ship/bot/standin"
	"ship/graphql/linear"
)

// Validator checks what goes in and out against Linear's schema.
type Validator interface {
	Request(document, operation string, variables json.RawMessage) error
	Response(document, operation string, data json.RawMessage) error
	// Payload checks a webhook's body; the event is as in Linear-Event.
	Payload(event string, body []byte) error
}

// Options of a Server. The zero value is good.
type Options struct {
	// ClientID and ClientSecret of the one app; empty: made up.
	ClientID, ClientSecret string
	// Name of the app; empty: "ship".
	Name string
	// RedirectURIs that may be used to install it; nil: any.
	RedirectURIs []string
	// TokenTTL is how long an access token lives; zero: a day, or thirty for
	// client credentials.
	TokenTTL time.Duration
	// RefreshGrace is how long a refresh token is good after its first use, for
	// which Linear grants half an hour; zero: not at all.
	RefreshGrace time.Duration
	// Requests and Complexity are the app's allowance per hour; zero: 5,000
	// and 2,000,000.
	Requests   int
	Complexity float64
	// InputStatus is the HTTP status of refused inputs: 200 (also for zero) or
	// 400. Linear has been seen to use both.
	InputStatus int
	// Validator sees every request, answer and webhook; may be nil. What it
	// refuses is in Violations.
	Validator Validator
}

// Server is the stand-in, for one workspace. All its methods are safe for
// concurrent use.
type Server struct {
	// URL is where it is found; see APIURL and TokenURL.
	URL string
	// Faults strike operations, and Calls counts those.
	standin.Faults
	// Notes are of operations and routes that there are not, nulls that were
	// sent, and what the Validator refused.
	standin.Notes

	opts   Options
	http   *http.Server
	served chan struct{}
	known  map[string]operation

	mu     sync.Mutex
	skew   time.Duration
	secret string // the client's, which may be rotated

	app        *user
	orgID      string
	webhookID  string
	guidance   string
	users      []*user
	teams      []*team
	projects   []*project
	labels     []*label
	issues     []*issue
	comments   []*comment
	sessions   []*session
	confidence map[string]float64

	uninstalled bool
	tokens      map[string]*token
	refreshes   map[string]*refresh
	codes       map[string]*code
	used        usage
}

// New starts a stand-in on a loopback port. Close ends it.
func New(o Options) (*Server, error) {
	s := prepare(o)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start stand-in for linear: %w", err)
	}
	s.URL = "http://" + listener.Addr().String()
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener) // ends with Close
	}()
	return s, nil
}

func prepare(o Options) *Server {
	if o.ClientID == "" {
		o.ClientID = newID()
	}
	if o.ClientSecret == "" {
		o.ClientSecret = random(16)
	}
	if o.Name == "" {
		o.Name = "ship"
	}
	if o.Requests == 0 {
		o.Requests = 5000
	}
	if o.Complexity == 0 {
		o.Complexity = 2_000_000
	}
	if o.InputStatus == 0 {
		o.InputStatus = http.StatusOK
	}
	app := &user{id: newID(), handle: o.Name, name: o.Name, email: newID() + "@oauthapp.linear.app", app: true}
	return &Server{
		opts: o, secret: o.ClientSecret, served: make(chan struct{}),
		known: operations(), app: app, users: []*user{app}, orgID: newID(), webhookID: newID(),
		confidence: map[string]float64{}, tokens: map[string]*token{}, refreshes: map[string]*refresh{},
		codes: map[string]*code{},
	}
}

// Close ends the server. Requests that hang are let go.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.served
	return err
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /graphql", s.serveGraphQL)
	mux.HandleFunc("POST /oauth/token", s.serveToken)
	mux.HandleFunc("POST /oauth/revoke", s.serveRevoke)
	mux.HandleFunc("GET /oauth/authorize", s.serveAuthorize)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.Note("no such route: %s %s", r.Method, r.URL.Path)
		http.NotFound(w, r)
	})
	return standin.Handler(mux)
}

// APIURL is where GraphQL is spoken, as linear.api_url wants it.
func (s *Server) APIURL() string { return s.URL + "/graphql" }

// TokenURL is where tokens are had, as linear.token_url wants it.
func (s *Server) TokenURL() string { return s.URL + "/oauth/token" }

// ClientID of the app.
func (s *Server) ClientID() string { return s.opts.ClientID }

// ClientSecret of the app, as rotated last.
func (s *Server) ClientSecret() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.secret
}

// AppUserID is the id under which the app acts in the workspace.
func (s *Server) AppUserID() string { return s.app.id }

// OrganizationID is the id of the workspace.
func (s *Server) OrganizationID() string { return s.orgID }

// Advance turns the clock: sessions go stale, tokens expire and webhooks are
// stamped by it.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew += d
}

// now has the resolution of Linear's timestamps. The caller holds mu.
func (s *Server) now() time.Time { return time.Now().Add(s.skew).UTC().Truncate(time.Millisecond) }

// urlKey is the workspace's part of addresses.
const urlKey = "acme"

// page cuts one page out of a list that has the newest last. Assumed: Linear
// lists the newest first, everywhere.
func page[T any](all []T, after string, id func(T) string) ([]T, linear.Page, error) {
	newest := slices.Clone(all)
	slices.Reverse(newest)
	if after != "" {
		at := slices.IndexFunc(newest, func(item T) bool { return id(item) == after })
		if at < 0 {
			return nil, linear.Page{}, invalid("after is not a cursor")
		}
		newest = newest[at+1:]
	}
	const size = 50
	if len(newest) <= size {
		return newest, linear.Page{}, nil
	}
	newest = newest[:size]
	return newest, linear.Page{HasNextPage: true, EndCursor: id(newest[size-1])}, nil
}
