// Package slacktest is a stand-in for one Slack workspace: the part of the Web
// API that ship speaks, response URLs, Socket Mode over real WebSockets, and
// deliveries signed as Slack signs them.
//
// It refuses what Slack refuses: blocks and texts that are too long, channels
// that the app is not in, tokens that were revoked, scopes that are missing,
// messages that come too fast. Where Slack does not say what it does, the
// stand-in takes the view that is harder on its callers; those places are
// marked "assumed". What it is told to do wrong (answers lost after the fact,
// time-outs) it does too; see Fault. Its whole state lives in the process that
// made it, so that the program under test may be killed at any moment.
package slacktest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"ship/bot/standin"
)

// Validator checks blocks against Slack's own description of them.
type Validator interface {
	// Blocks checks the blocks of a message or a view, a JSON array.
	Blocks(blocks json.RawMessage) error
}

// Options of a Server. The zero value is good.
type Options struct {
	// BotToken, AppToken and SigningSecret of the one app; empty: made up.
	BotToken, AppToken, SigningSecret string
	// Name of the app, its bot user and its command; empty: "ship".
	Name string
	// Scopes of the bot token; nil: DefaultScopes.
	Scopes []string
	// Events that the app subscribed to, as in its manifest; nil: DefaultEvents.
	Events []string
	// Limits on how fast the app may be.
	Limits Limits
	// AckTimeout is how long an envelope of Socket Mode waits to be
	// acknowledged, and a delivery over HTTP to be answered; zero: 3 s.
	AckTimeout time.Duration
	// Validator sees the blocks of every message and view; may be nil. What it
	// refuses is answered with invalid_blocks, and is in Violations.
	Validator Validator
}

// DefaultScopes are those that an app like ship asks for.
func DefaultScopes() []string {
	return []string{
		"app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands", "files:read",
		"groups:history", "groups:read", "im:history", "im:read", "mpim:history", "mpim:read", "reactions:write",
		"usergroups:read", "users:read", "users:read.email",
	}
}

// DefaultEvents are those that an app like ship subscribes to.
func DefaultEvents() []string {
	return []string{
		"agent_session_stopped", "agent_session_title_changed", "app_home_opened", "app_mention", "app_uninstalled",
		"message.channels", "message.groups", "message.im", "message.mpim", "tokens_revoked",
	}
}

// Server is the stand-in. All its methods are safe for concurrent use.
type Server struct {
	// URL is where it is found; see APIURL.
	URL string
	// Faults strike methods, and Calls counts those.
	standin.Faults
	// Notes are of methods, arguments and routes that there are not, and of what
	// the Validator refused.
	standin.Notes

	opts    Options
	http    *http.Server
	served  chan struct{}
	closed  chan struct{}
	methods map[string]method
	links   links

	mu        sync.Mutex
	changed   chan struct{}
	skew      time.Duration
	lastTS    int64
	token     string // the bot's, which may change
	tokenGone string // why it is no good; empty: it is

	teamID, appID string
	bot           *user
	users         []*user
	groups        []*group
	channels      []*channel
	files         []*file
	ephemerals    []*ephemeral
	sessions      []*session
	views         []*view
	triggers      map[string]*trigger
	responders    map[string]*responder

	pace pace
}

// New starts a stand-in on a loopback port. Close ends it.
func New(o Options) (*Server, error) {
	s := prepare(o)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start stand-in for slack: %w", err)
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
	o = o.withDefaults()
	s := &Server{
		opts: o, served: make(chan struct{}), closed: make(chan struct{}), methods: methods(), links: newLinks(),
		changed: make(chan struct{}), token: o.BotToken, teamID: newID("T"), appID: newID("A"),
		triggers: map[string]*trigger{}, responders: map[string]*responder{}, pace: newPace(o.Limits),
	}
	s.bot = &user{id: newID("U"), handle: o.Name, name: o.Name, bot: true, botID: newID("B"), team: s.teamID}
	s.users = []*user{s.bot}
	return s
}

func (o Options) withDefaults() Options {
	o.BotToken = cmp.Or(o.BotToken, "xoxb-"+random(16))
	o.AppToken = cmp.Or(o.AppToken, "xapp-1-"+random(16))
	o.SigningSecret = cmp.Or(o.SigningSecret, random(16))
	o.Name = cmp.Or(o.Name, "ship")
	o.AckTimeout = cmp.Or(o.AckTimeout, 3*time.Second)
	if o.Scopes == nil {
		o.Scopes = DefaultScopes()
	}
	if o.Events == nil {
		o.Events = DefaultEvents()
	}
	o.Limits = o.Limits.withDefaults()
	return o
}

// Close ends the server and its sockets. Requests that hang are let go.
func (s *Server) Close() error {
	close(s.closed)
	err := s.http.Close()
	<-s.served
	s.links.close()
	return err
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", s.serveAPI)
	mux.HandleFunc("POST "+responsePath+"{key}", s.serveResponse)
	mux.HandleFunc("GET "+filesPath+"{id}/{name}", s.serveFile)
	mux.HandleFunc("GET /link/", s.serveSocket)
	mux.HandleFunc("GET /{$}", serveSignIn)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.Note("no such route: %s %s", r.Method, r.URL.Path)
		http.NotFound(w, r)
	})
	return standin.Handler(mux)
}

// APIURL is where the Web API is, as slack.api_url wants it, with a slash at
// the end.
func (s *Server) APIURL() string { return s.URL + "/api/" }

// BotToken of the app, as it was issued last.
func (s *Server) BotToken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

// AppToken is the app's token for Socket Mode.
func (s *Server) AppToken() string { return s.opts.AppToken }

// SigningSecret of the app.
func (s *Server) SigningSecret() string { return s.opts.SigningSecret }

// BotUserID is the id under which the app acts.
func (s *Server) BotUserID() string { return s.bot.id }

// TeamID is the id of the workspace.
func (s *Server) TeamID() string { return s.teamID }

// AppID is the id of the app.
func (s *Server) AppID() string { return s.appID }

// Changed returns a channel that is closed when the app has next called
// anything. Take it before looking, so that nothing is missed.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// touch closes what Changed returned.
func (s *Server) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Advance turns the clock: allowances are renewed, statuses lapse, triggers
// and response URLs expire, and deliveries are stamped by it.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew += d
}

// now is the clock. The caller holds mu.
func (s *Server) now() time.Time { return time.Now().Add(s.skew) }

// domain is the workspace's part of addresses.
const domain = "acme"
