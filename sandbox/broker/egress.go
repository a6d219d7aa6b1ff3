package broker

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"
)

// The egress proxy: what a box may reach by name. The guest turns what clients
// of a proxy send into requests that any proxy in between understands:
//
//	GET /broker/egress/tunnel  Upgrade: ship-egress  Ship-Target: HOST:PORT
//	GET /broker/egress/http    Ship-Target: http://HOST/PATH
const (
	egressPrefix = "/broker/egress/"
	// TunnelPath and FetchPath are where the guest asks, with TargetHeader, and
	// for a tunnel with TunnelProtocol in Upgrade.
	TunnelPath     = egressPrefix + "tunnel"
	FetchPath      = egressPrefix + "http"
	TargetHeader   = "Ship-Target"
	TunnelProtocol = "ship-egress"
)

// The defaults of Egress.
const (
	DefaultEgressBytes = 4 << 30
	DefaultEgressConns = 100
	DefaultEgressIdle  = 2 * time.Minute
	DefaultEgressTime  = 30 * time.Minute
)

// Egress says what boxes may reach besides models and git.
type Egress struct {
	// Hosts that may be reached; empty: none.
	Hosts Hosts
	// MaxBytes that one turn may move, both ways together. Zero: the default.
	MaxBytes int64
	// MaxConns of one turn at the same time, in this process. Zero: the default.
	MaxConns int
	// IdleTimeout ends a connection on which nothing moves, MaxTime any. Zero:
	// the defaults.
	IdleTimeout, MaxTime time.Duration
	// Resolver looks names up; nil: the machine's own.
	Resolver Resolver
	// Dial connects to an address that was checked; nil: over TCP, directly.
	Dial func(context.Context, netip.AddrPort) (net.Conn, error)
	// Interfaces are the machine's own addresses, which are never reached; nil:
	// net.InterfaceAddrs.
	Interfaces func() ([]net.Addr, error)
	// Observer is told of every connection; may be nil.
	Observer EgressObserver
}

// ProxyEnvironment is what programs in a box have to be told to use a proxy,
// such as sandbox.BrokerURL: most read one spelling or the other, and newer
// versions of Node when they are asked to. What listens in the box itself, the
// broker among it, is reached directly.
func ProxyEnvironment(proxy string) []string {
	const direct = "localhost,127.0.0.1,::1"
	return []string{
		"HTTP_PROXY=" + proxy, "http_proxy=" + proxy, "HTTPS_PROXY=" + proxy, "https_proxy=" + proxy,
		"NO_PROXY=" + direct, "no_proxy=" + direct, "NODE_USE_ENV_PROXY=1",
	}
}

// EgressObserver counts for metrics. It must not block and may be called
// concurrently.
type EgressObserver interface {
	// Passed: a connection ended, or was refused.
	Passed(Passage)
}

// Passage describes a connection that ended or was refused.
type Passage struct {
	// Rule that let it through, as in the settings; "none" if there is none. So
	// it takes no more values than there are rules.
	Rule string
	// Outcome is "ok", "cut" or the code of a refusal.
	Outcome string
	// In and Out are the bytes that came from the host and went there.
	In, Out int64
	Took    time.Duration
}

// egress is an Egress that was checked.
type egress struct {
	hosts      Hosts
	resolver   Resolver
	connect    func(context.Context, netip.AddrPort) (net.Conn, error)
	interfaces func() ([]net.Addr, error)
	observer   EgressObserver
	roads      roads
	idle, life time.Duration
}

// newEgress takes the defaults for what is not set.
func newEgress(c Egress, t *till) *egress {
	e := &egress{
		hosts: c.Hosts, resolver: c.Resolver, connect: c.Dial, interfaces: c.Interfaces, observer: c.Observer,
		idle: orDefault(c.IdleTimeout, DefaultEgressIdle), life: orDefault(c.MaxTime, DefaultEgressTime),
		roads: roads{till: t, turns: map[string]*traffic{}, maxBytes: orDefault(c.MaxBytes, DefaultEgressBytes), maxConns: c.MaxConns},
	}
	if e.resolver == nil {
		e.resolver = net.DefaultResolver
	}
	if e.connect == nil {
		e.connect = connectTCP
	}
	if e.interfaces == nil {
		e.interfaces = net.InterfaceAddrs
	}
	if e.observer == nil {
		e.observer = blind{}
	}
	if e.roads.maxConns <= 0 {
		e.roads.maxConns = DefaultEgressConns
	}
	return e
}

// errTooLong ends a connection that has lived for Egress.MaxTime.
var errTooLong = errors.New("connection has lasted too long")

// passage is one connection of a box to a host.
type passage struct {
	visit   *visit
	to      target
	traffic *traffic
	began   time.Time
	in, out atomic.Int64
}

// moved counts bytes, and errs when there were too many.
func (p *passage) moved(in, out int) error {
	p.in.Add(int64(in))
	p.out.Add(int64(out))
	p.visit.tick()
	return p.traffic.add(p.visit.r.Context(), in, out)
}

// serveEgress answers /broker/egress/….
func (b *Broker) serveEgress(v *visit) error {
	v.idle = b.egress.idle
	end := time.AfterFunc(b.egress.life, func() { v.cancel(errTooLong) })
	defer end.Stop()
	p := &passage{visit: v, began: time.Now()}
	err := b.travel(p)
	b.tell(p, err)
	if errors.Is(err, errEndOfTunnel) {
		return nil // the connection is the server's no more
	}
	return err
}

// travel finds out where the box wants to go, and takes it there.
func (b *Broker) travel(p *passage) error {
	r := p.visit.r
	address, serve := r.Header.Get(TargetHeader), b.tunnel
	switch r.URL.Path {
	case TunnelPath:
	case FetchPath:
		page, err := parsePage(address)
		if err != nil {
			return err
		}
		address = page.Host
		serve = func(p *passage, conn net.Conn) error { return b.fetchPage(p, conn, page) }
	default:
		return refuse(http.StatusNotFound, codeNotFound, "there is nothing here")
	}
	if err := b.egress.aim(p, address); err != nil {
		return err
	}
	return b.connected(p, serve)
}

// aim checks where a passage leads.
func (e *egress) aim(p *passage, address string) error {
	to, err := parseTarget(address)
	if err != nil {
		return refuse(http.StatusBadRequest, codeMalformed, "%s %v", clip(address), err)
	}
	p.to = to
	rule, ok := e.hosts.allow(to)
	switch {
	case e.hosts.Empty():
		return refuse(http.StatusForbidden, codeEgress, "boxes have no network here, so %s cannot be reached", to)
	case !ok:
		return refuse(http.StatusForbidden, codeEgress, "%s is not among the hosts that boxes may reach", to)
	}
	p.to.rule = rule
	return nil
}

// connected serves a passage with a connection that is counted.
func (b *Broker) connected(p *passage, serve func(*passage, net.Conn) error) (err error) {
	e, ctx := b.egress, p.visit.r.Context()
	if p.traffic, err = e.roads.enter(ctx, p.visit.grant.account()); err != nil {
		return err
	}
	defer func() {
		if err := e.roads.leave(ctx, p.traffic); err != nil {
			b.log.WarnContext(ctx, "traffic was not booked", "session", p.visit.grant.Session, "turn", p.visit.grant.Turn, "error", err)
		}
	}()
	conn, err := e.dial(ctx, p.to)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return serve(p, &metered{Conn: conn, p: p})
}

// tell reports a passage: to the log without anything but the host, since paths
// and queries may hold what is private.
func (b *Broker) tell(p *passage, err error) {
	done := Passage{Rule: "none", Outcome: outcome(p.visit, err), In: p.in.Load(), Out: p.out.Load(), Took: time.Since(p.began)}
	if p.to.rule != "" {
		done.Rule = p.to.rule
	}
	attrs := []any{
		"session", p.visit.grant.Session, "turn", p.visit.grant.Turn, "host", p.to.host, "port", p.to.port,
		"rule", done.Rule, "outcome", done.Outcome, "in", done.In, "out", done.Out, "took", done.Took,
	}
	if done.Outcome != outcomeOK {
		attrs = append(attrs, "error", err)
	}
	b.log.InfoContext(p.visit.r.Context(), "a box went out by name", attrs...)
	b.egress.observer.Passed(done)
}

// The outcomes that are no refusals.
const (
	outcomeOK  = "ok"
	outcomeCut = "cut"
)

func outcome(v *visit, err error) string {
	var no *refusal
	cause := context.Cause(v.r.Context())
	switch {
	case errors.As(err, &no):
		return no.code
	case err == nil:
		return outcomeOK
	case errors.Is(cause, context.Canceled):
		return outcomeCut // the client left
	case cause != nil:
		return asRefusal(cause).code
	case errors.Is(err, errEndOfTunnel):
		return outcomeOK
	}
	return outcomeCut
}

// clip shortens and quotes what a box wrote before it is repeated.
func clip(s string) string {
	const most = 100
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strconv.QuoteToASCII(s)
}
