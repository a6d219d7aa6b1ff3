package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
)

// parsePage reads the address of a plain http request, with the port written
// out.
func parsePage(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Scheme != "http", u.User != nil, u.Opaque != "", u.Host == "":
		return nil, refuse(http.StatusBadRequest, codeMalformed, "what is fetched without a tunnel is http://HOST/PATH")
	case u.Port() == "":
		u.Host = net.JoinHostPort(u.Hostname(), "80")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// fetchPage fetches without TLS: signed packages of Debian and the like. It
// writes the request anew, for the host that was checked, and only reads: what
// is sent in the clear is not for credentials either.
func (b *Broker) fetchPage(p *passage, conn net.Conn, page *url.URL) error {
	v := p.visit
	if v.r.Method != http.MethodGet && v.r.Method != http.MethodHead {
		return refuse(http.StatusMethodNotAllowed, codeMethod, "without https only GET and HEAD are let through")
	}
	v.tick()
	once := &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: only(conn)}
	resp, err := once.RoundTrip(pageRequest(p, page))
	if err != nil {
		return fmt.Errorf("fetch from %s: %w", p.to.host, err)
	}
	defer func() { _ = resp.Body.Close() }()
	passHeaders(v.w.Header(), resp.Header, answerHeaders(), "")
	v.w.WriteHeader(resp.StatusCode)
	err = v.relay(v.w, resp.Body)
	if no := asPolicy(err); no != nil {
		return no.because(errCut) // the answer has begun
	}
	return err
}

// only hands out one connection.
func only(conn net.Conn) func(context.Context, string, string) (net.Conn, error) {
	one := make(chan net.Conn, 1)
	one <- conn
	return func(context.Context, string, string) (net.Conn, error) {
		select {
		case c := <-one:
			return c, nil
		default:
			return nil, errors.New("there is one connection only")
		}
	}
}

func pageRequest(p *passage, page *url.URL) *http.Request {
	u := *page
	u.Host = p.to.String()
	req := (&http.Request{Method: p.visit.r.Method, URL: &u, Host: hostHeader(p.to), Header: http.Header{}}).
		WithContext(p.visit.r.Context())
	req.Header.Set("User-Agent", "") // unless the client has one
	passHeaders(req.Header, p.visit.r.Header, askHeaders(), "")
	if ua := p.visit.r.Header.Get("User-Agent"); ua != "" {
		req.Header.Set("User-Agent", ua)
	}
	return req
}

// hostHeader leaves the usual port out, as clients do.
func hostHeader(t target) string {
	if t.port != 80 {
		return t.String()
	}
	if t.addr.Is6() {
		return "[" + t.host + "]"
	}
	return t.host
}

// askHeaders of a client go to the host. Its Authorization is our token.
func askHeaders() []string {
	return []string{"Accept", "Accept-", "Cache-Control", "If-", "Pragma", "Range"}
}

// answerHeaders of a host are for the client.
func answerHeaders() []string {
	return []string{
		"Accept-Ranges", "Age", "Cache-Control", "Content-", "Date", "Etag", "Expires", "Last-Modified", "Location", "Retry-After", "Vary",
	}
}
