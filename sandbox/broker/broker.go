// Package broker is the only door out of a box: an http.Handler that adds
// credentials outside, so that none has to be inside.
//
//	/broker/model/PROVIDER/chat/completions   the model proxy
//	/broker/model/PROVIDER/models
//	/broker/git/OWNER/NAME.git/…              the git proxy (smart HTTP)
//	/broker/egress/…                          the egress proxy, to hosts by name
//
// Whoever comes shows a token that holds a Grant: which models, how many calls,
// how much money, which repository, which one branch, until when. A box is
// expected to be hostile: the code in it has read the token and sends what it
// likes. Therefore what goes upstream is written anew from what was understood
// here, and never is the bytes that were checked beside it.
//
// What a turn spent is kept in a Ledger that survives this process, under the
// account SESSION:TURN. A second account, SESSION:TURN!ended, holds one call or
// more when the turn is over. What a person and all spend on a day has accounts
// of its own; see SpentAccount.
package broker

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// The defaults of Config.
const (
	// DefaultHeaderTimeout is long because a model that does not stream sends
	// its headers with the whole answer.
	DefaultHeaderTimeout = 5 * time.Minute
	// DefaultIdleTimeout is long because a model that thinks is silent.
	DefaultIdleTimeout = 5 * time.Minute
	// DefaultMaxBody holds a long conversation with images.
	DefaultMaxBody = 32 << 20
)

// Config is what a Broker needs. Signer and Ledger are required.
type Config struct {
	// Signer verifies tokens. It has the key of the one that signed them.
	Signer *Signer
	Ledger Ledger
	// Providers by the name that stands in the path and before the slash in
	// Grant.Models. None: no model can be called.
	Providers map[string]Provider
	// GitURL is the code host's web address, such as https://github.com. Plain
	// http is accepted for loopback only. Empty: no git.
	GitURL string
	// BoxUSDPerHour is what an hour of a box costs; zero: nothing.
	BoxUSDPerHour float64
	// Credentials is required with GitURL.
	Credentials Credentials
	// Egress is what else boxes may reach. The zero value: nothing.
	Egress Egress
	// Observer is told what happened; may be nil.
	Observer Observer
	// Log may be nil.
	Log *slog.Logger
	// Transport speaks with the upstreams; nil: one of our own. It must not
	// follow redirects, which no http.Transport does.
	Transport http.RoundTripper
	// HeaderTimeout is how long an upstream may take to begin its answer, and
	// IdleTimeout how long anyone may be silent in the middle. Zero: defaults.
	// HeaderTimeout applies to our own Transport only.
	HeaderTimeout, IdleTimeout time.Duration
	// MaxBody of a model request in bytes; zero: the default.
	MaxBody int64
}

// Observer counts for metrics. Its methods must not block and may be called
// concurrently.
type Observer interface {
	// Called: a model call ended, however it ended.
	Called(Call)
	// Pushed: a push was let through and answered with this HTTP status.
	// Whether the code host took the ref is in the body, for the client only.
	Pushed(repo string, status int)
	// Refused: a request was turned away or failed, with one of the codes.
	Refused(code string)
}

// Call describes a model call that ended.
type Call struct {
	Provider, Model string
	// Status that the upstream answered with; zero when it did not.
	Status int
	Usage  Usage
	// Estimated: the upstream did not say what it used.
	Estimated bool
	Took      time.Duration
}

// Broker serves boxes. Several may serve the same turn at the same time, also
// in different processes.
type Broker struct {
	signer    *Signer
	till      *till
	providers map[string]*provider
	git       *gitHost
	egress    *egress
	observer  Observer
	log       *slog.Logger
	transport http.RoundTripper
	idle      time.Duration
	maxBody   int64
	// boxUSDPerHour makes money of box time.
	boxUSDPerHour float64
}

// New checks the configuration. It opens no connection and starts nothing.
func New(c Config) (*Broker, error) {
	if c.Signer == nil || c.Ledger == nil {
		return nil, errors.New("broker: a signer and a ledger are required")
	}
	providers, err := newProviders(c.Providers)
	if err != nil {
		return nil, err
	}
	git, err := newGitHost(c.GitURL, c.Credentials)
	if err != nil {
		return nil, err
	}
	b := &Broker{
		signer: c.Signer, till: newTill(c.Ledger), providers: providers, git: git,
		observer: c.Observer, log: c.Log, transport: c.Transport,
		idle: orDefault(c.IdleTimeout, DefaultIdleTimeout), maxBody: orDefault(c.MaxBody, DefaultMaxBody),
		boxUSDPerHour: c.BoxUSDPerHour,
	}
	b.egress = newEgress(c.Egress, b.till)
	if b.observer == nil {
		b.observer = blind{}
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if b.transport == nil {
		b.transport = newTransport(orDefault(c.HeaderTimeout, DefaultHeaderTimeout))
	}
	return b, nil
}

func orDefault[T time.Duration | int64](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// blind is the observer of those who want none.
type blind struct{}

func (blind) Called(Call)        {}
func (blind) Pushed(string, int) {}
func (blind) Refused(string)     {}
func (blind) Passed(Passage)     {}

// End ends a turn for good: none of its tokens opens anything from now on, in
// no process and after no restart, and what it has under way in this process is
// cut. Ending a turn twice is ending it once.
func (b *Broker) End(ctx context.Context, session, turn string) error {
	return b.till.end(ctx, account(session, turn))
}

// A door is one kind of service: how it serves, and how it says no.
type door struct {
	serve  func(*visit) error
	refuse func(http.ResponseWriter, *refusal)
}

// ServeHTTP answers everything below /broker/. It panics with
// http.ErrAbortHandler when an answer breaks off in the middle, so that the
// client sees a cut connection and not a complete answer; whoever wraps it must
// let that panic through.
func (b *Broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d := b.door(r.URL.Path)
	err := b.admit(w, r, d)
	if err == nil {
		return
	}
	no := asRefusal(err)
	b.report(r.Context(), no)
	if errors.Is(err, errCut) {
		panic(http.ErrAbortHandler)
	}
	d.refuse(w, no)
}

func (b *Broker) door(path string) door {
	switch {
	case strings.HasPrefix(path, gitPrefix):
		return door{serve: b.serveGit, refuse: refuseText}
	case strings.HasPrefix(path, egressPrefix):
		return door{serve: b.serveEgress, refuse: refusePlain}
	case strings.HasPrefix(path, modelPrefix):
		return door{serve: b.serveModel, refuse: refuseJSON}
	}
	return door{refuse: refuseJSON, serve: func(*visit) error {
		return refuse(http.StatusNotFound, codeNotFound, "there is nothing here")
	}}
}

// admit lets a request with a good token through a door.
func (b *Broker) admit(w http.ResponseWriter, r *http.Request, d door) error {
	// What we serve needs no escapes and no tricks: whatever has them is not for
	// us, and nothing is decoded twice.
	if strings.Contains(r.URL.EscapedPath(), "%") {
		return refuse(http.StatusBadRequest, codeNotFound, "a path here has no escapes")
	}
	g, err := b.signer.Verify(bearer(r), time.Now())
	if err != nil {
		return err
	}
	v, done := newVisit(g, w, r, b.idle)
	defer done()
	// Registered first and looked up second, so that End misses nobody.
	v.tab = b.till.enter(v)
	defer b.till.leave(v)
	ended, err := b.till.ended(v.r.Context(), g.account())
	switch {
	case err != nil:
		return v.explain(err)
	case ended:
		return v.explain(errEnded)
	}
	return v.explain(d.serve(v))
}

func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// report tells the operator. The refused are many and no fault of ours; what
// failed is a warning.
func (b *Broker) report(ctx context.Context, no *refusal) {
	level := slog.LevelInfo
	if no.status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	b.log.Log(ctx, level, "broker refused a request",
		"session", no.session, "turn", no.turn, "code", no.code, "status", no.status, "error", no.Error())
	b.observer.Refused(no.code)
}
