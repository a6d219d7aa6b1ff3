package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	api "github.com/slack-go/slack"

	"ship/config"
	"ship/session"
)

const (
	// steady is how long a connection lasts at least that was worth having.
	steady = 10 * time.Second
	// maxBackoff is the longest pause between two tries, and the one after
	// Slack said that it does not want us.
	maxBackoff = 5 * time.Minute
	// openTimeout is for asking for a connection, and for making it.
	openTimeout = 15 * time.Second
	// maxEnvelope is the longest one that is read.
	maxEnvelope = 4 << 20
)

// socketConfig is what a Socket is made from.
type socketConfig struct {
	// AppToken is the app-level token.
	AppToken config.Secret
	// APIURL is the API's address; empty: DefaultAPIURL.
	APIURL string
	// Connections to keep open; zero: 2.
	Connections int
	// OpenThreads as in ReceiverConfig.
	OpenThreads bool
	// Inbox takes what comes.
	Inbox session.Inbox
	// Append is how long the inbox may take; zero: 2 s, as Slack waits for 3.
	Append time.Duration
	// Heard is told what became of each envelope, for the metrics; may be nil.
	Heard func(event, outcome string, took time.Duration)
	// Reconnected is called when there is a connection again after there was
	// none, and told since when that may have been. Run waits for it; may be nil.
	Reconnected func(ctx context.Context, since time.Time)
	// Transport carries the requests for connections, not the connections;
	// nil: http.DefaultTransport.
	Transport http.RoundTripper
	Logger    *slog.Logger
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Socket is the way in over Socket Mode, for a ship that Slack cannot reach.
// Slack gives each envelope to one connection, and again when it is not
// acknowledged within three seconds; it is acknowledged when it is in the inbox.
type Socket struct {
	cfg    socketConfig
	reader reader
	client *api.Client
	dialer websocket.Dialer
	// plain: the API is spoken with in the clear, so connections may be too.
	plain bool
	// backoff is the pause after so many failures in a row.
	backoff  func(failures int) time.Duration
	presence presence
	// silence is how long a connection may be silent: Slack pings all the time.
	silence time.Duration
}

// newSocket returns a Socket that connects when it is run.
func newSocket(c socketConfig) (*Socket, error) {
	if c.AppToken.Empty() || c.Inbox == nil {
		return nil, errors.New("slack: no app-level token, or no inbox")
	}
	if c.APIURL == "" {
		c.APIURL = DefaultAPIURL
	}
	if c.Connections <= 0 {
		c.Connections = 2
	}
	if c.Append <= 0 {
		c.Append = 2 * time.Second
	}
	if c.Heard == nil {
		c.Heard = func(string, string, time.Duration) {}
	}
	s := &Socket{cfg: c, reader: newReader(c.Logger, c.Now), backoff: backoff, silence: 30 * time.Second}
	s.reader.open = c.OpenThreads
	s.plain = strings.HasPrefix(c.APIURL, "http://")
	s.client = api.New("", api.OptionAppLevelToken(c.AppToken.Reveal()),
		api.OptionAPIURL(strings.TrimRight(c.APIURL, "/")+"/"),
		api.OptionHTTPClient(&http.Client{Transport: c.Transport, Timeout: openTimeout, CheckRedirect: stay}))
	s.dialer = websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: openTimeout}
	return s, nil
}

// Run keeps the connections open until ctx ends, and returns nil when
// everything that was read until then is in the inbox and acknowledged, or
// given up. What fails is logged and tried again, for ever: whoever runs ship
// may be about to mend it.
func (s *Socket) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for range s.cfg.Connections {
		all.Go(func() { s.lane(ctx, &all) })
	}
	all.Wait()
	return nil
}

// lane keeps one connection open. When Slack says that it is about to close
// one, the next is opened before that happens.
func (s *Socket) lane(ctx context.Context, all *sync.WaitGroup) {
	failures := 0
	for ctx.Err() == nil {
		began := time.Now()
		err := s.once(ctx, all)
		if ctx.Err() != nil {
			return
		}
		failures++
		if time.Since(began) >= steady {
			failures = 0
		}
		pause := s.pause(failures, err)
		s.report(ctx, err, pause)
		_ = session.Sleep(ctx, pause) // the loop finds out
	}
}

// once makes a connection and returns when another one is needed.
func (s *Socket) once(ctx context.Context, all *sync.WaitGroup) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	l := newLine(s, conn)
	l.greeted = func() {
		if since, gap := s.presence.begin(); gap && s.cfg.Reconnected != nil {
			all.Go(func() { s.cfg.Reconnected(ctx, since) })
		}
	}
	all.Go(func() { l.run(ctx) })
	select {
	case <-l.leaving:
		return nil
	case <-l.ended:
		return l.err
	}
}

// connect asks for the address of a connection, which is good once, and dials.
func (s *Socket) connect(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	_, address, err := s.client.StartSocketModeContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for a socket mode connection: %w", err)
	}
	to, err := url.Parse(address)
	if err != nil || to.Scheme != "wss" && !(s.plain && to.Scheme == "ws") {
		// The address has a ticket in it.
		return nil, errors.New("socket mode connection: slack gave no wss address")
	}
	conn, resp, err := s.dialer.DialContext(ctx, address, nil)
	if err != nil && resp != nil {
		return nil, fmt.Errorf("open socket mode connection: %s: %w", resp.Status, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open socket mode connection: %w", err)
	}
	conn.SetReadLimit(maxEnvelope)
	return conn, nil
}

// errUnwanted: Slack says no, and asking often does not change that.
var errUnwanted = errors.New("slack does not want this connection")

// pause is how long to wait before the next try.
func (s *Socket) pause(failures int, err error) time.Duration {
	var limited *api.RateLimitedError
	switch {
	case errors.As(err, &limited):
		return max(limited.RetryAfter, s.backoff(failures))
	case unwanted(err):
		return s.backoff(1 << 10)
	case failures == 0 && err == nil:
		return 0
	}
	return s.backoff(failures)
}

func unwanted(err error) bool {
	var said api.SlackErrorResponse
	if !errors.As(err, &said) {
		return errors.Is(err, errUnwanted)
	}
	switch said.Err {
	case "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type",
		"missing_scope", "no_permission", "access_denied", "forbidden_team":
		return true
	}
	return false
}

// backoff doubles from a second on, and is spread by a quarter to each side.
func backoff(failures int) time.Duration {
	d := min(time.Second<<min(max(failures-1, 0), 20), maxBackoff)
	return d - d/4 + rand.N(d/2)
}

// report logs why a connection is made anew. That Slack closes them now and
// then is how it should be.
func (s *Socket) report(ctx context.Context, err error, pause time.Duration) {
	switch {
	case err == nil:
		s.reader.log.DebugContext(ctx, "socket mode connection is replaced")
	case unwanted(err):
		s.reader.log.ErrorContext(ctx, "slack refuses socket mode: check slack.app_token, its scope connections:write, and that socket mode is on",
			"err", err, "again", pause.Round(time.Second))
	default:
		s.reader.log.WarnContext(ctx, "socket mode connection failed", "err", err, "again", pause.Round(time.Second))
	}
}
