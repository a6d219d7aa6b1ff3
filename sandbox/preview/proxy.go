package preview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"

	"ship/sandbox"
)

// Boxes finds the box that a link leads to.
type Boxes interface {
	// Peek returns a handle on a box that runs, and changes nothing about it: it
	// neither wakes the box nor makes it live longer. ErrGone, or ErrBusy when it
	// is paused.
	Peek(ctx context.Context, id string) (sandbox.Box, error)
}

// Proxy answers for the servers in boxes, and for nothing else: it is the whole
// of the previews' host.
type Proxy struct {
	links     *Links
	transport *http.Transport
	proxy     *httputil.ReverseProxy
}

// dialPatience is how long connecting to a box may take, and answerPatience how
// long its server may think before the head of its answer.
const (
	dialPatience   = 10 * time.Second
	answerPatience = 2 * time.Minute
)

var errSlow = errors.New("the box did not let us in within time")

// NewProxy returns a Proxy. It keeps a few connections open between requests,
// each for half a minute at most.
func NewProxy(links *Links, boxes Boxes) *Proxy {
	transport := &http.Transport{
		DialContext:        dialer{boxes}.dial,
		DisableCompression: true, MaxIdleConns: 64, MaxIdleConnsPerHost: 8,
		IdleConnTimeout: 30 * time.Second, ResponseHeaderTimeout: answerPatience,
	}
	return &Proxy{links: links, transport: transport, proxy: &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: rewrite, ModifyResponse: modify, ErrorHandler: unreachable,
		ErrorLog: log.New(io.Discard, "", 0),
	}}
}

// Close lets go of the connections that nobody uses just now.
func (p *Proxy) Close() { p.transport.CloseIdleConnections() }

// dialer connects to "BOX:PORT".
type dialer struct{ boxes Boxes }

func (d dialer) dial(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, dialPatience, errSlow)
	defer cancel()
	id, number, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(number)
	if err != nil {
		return nil, err
	}
	box, err := d.boxes.Peek(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("look for the box: %w", err)
	}
	return box.Dial(ctx, port)
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A proxy may be about to look whether the request has ended when the answer
	// begins; closed to it then, it would cut the answer off.
	_ = http.NewResponseController(w).EnableFullDuplex()
	token, prefix, rest := split(r.URL.EscapedPath())
	if token == "" {
		p.stray(w, r)
		return
	}
	target, err := p.links.Verify(token, time.Now())
	switch {
	case errors.Is(err, ErrExpired):
		say(w, http.StatusGone, "This preview has ended", "Its link has expired.")
	case err != nil:
		say(w, http.StatusNotFound, "There is no such preview", "Its link is not whole, or not from here.")
	case rest == "": // what is relative would lose its way
		confine(w.Header())
		http.Redirect(w, r, withQuery(prefix+"/", r), http.StatusTemporaryRedirect)
	case r.Header.Get("Service-Worker") != "": // one could outlive the link
		say(w, http.StatusForbidden, "Not in a preview", "A preview installs no service worker.")
	default:
		p.show(w, r, visit{target, prefix, rest})
	}
}

// split takes a path apart: "/preview/TOKEN" and what follows it.
func split(path string) (token, prefix, rest string) {
	token, ok := strings.CutPrefix(path, pathPrefix)
	if !ok {
		return "", "", ""
	}
	if i := strings.IndexByte(token, '/'); i >= 0 {
		token, rest = token[:i], token[i:]
	}
	return token, pathPrefix + token, rest
}

// stray leads what a page asked for by a path from the root to where that is in
// the page's own preview, which the browser names as the referrer: our answers
// let it do so on this host and nowhere else. There is no cookie for that,
// since every preview could use it.
func (p *Proxy) stray(w http.ResponseWriter, r *http.Request) {
	_, after, _ := strings.Cut(r.Referer(), "://")
	host, path, _ := strings.Cut(after, "/")
	path, _, _ = strings.Cut(path, "?")
	token, prefix, _ := split("/" + path)
	if _, err := p.links.Verify(token, time.Now()); err != nil || host != r.Host {
		say(w, http.StatusNotFound, "There is nothing here", "A preview is reached by its whole link.")
		return
	}
	confine(w.Header())
	http.Redirect(w, r, withQuery(prefix+r.URL.EscapedPath(), r), http.StatusTemporaryRedirect)
}

func withQuery(path string, r *http.Request) string {
	if r.URL.RawQuery == "" {
		return path
	}
	return path + "?" + r.URL.RawQuery
}

// visit is one request with a good link.
type visit struct {
	target Target
	// prefix is the path of the link, without a slash at its end, and rest what
	// the box is asked for, escaped.
	prefix, rest string
}

type visitKey struct{}

func visitOf(ctx context.Context) visit {
	v, _ := ctx.Value(visitKey{}).(visit)
	return v
}

// show passes a request on, and ends it with the link.
func (p *Proxy) show(w http.ResponseWriter, r *http.Request, v visit) {
	ctx, cancel := context.WithDeadlineCause(r.Context(), time.Unix(v.target.Expires, 0), ErrExpired)
	defer cancel()
	p.proxy.ServeHTTP(w, r.WithContext(context.WithValue(ctx, visitKey{}, v)))
}

// unreachable says why a box did not answer.
func unreachable(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, sandbox.ErrGone):
		say(w, http.StatusGone, "This preview has ended", "The sandbox that it ran in is gone. Ask for the work to go on, and there will be another.")
	case errors.Is(err, sandbox.ErrBusy):
		say(w, http.StatusGone, "This preview rests", "The sandbox that it ran in is paused, and looking at it does not wake it.")
	case errors.Is(context.Cause(r.Context()), ErrExpired):
		say(w, http.StatusGone, "This preview has ended", "Its link has expired.")
	default:
		say(w, http.StatusBadGateway, "This preview does not answer", "The server in the sandbox has ended, or is busy. Try again in a moment.")
	}
}
