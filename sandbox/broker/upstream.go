package broker

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// newTransport speaks with the upstreams. Requests go through it directly and
// not through an http.Client, so that nothing follows a redirect and carries a
// credential elsewhere, and nothing keeps a cookie.
func newTransport(headerTimeout time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: headerTimeout,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   16,
		ForceAttemptHTTP2:     true,
		// Compressed, a stream is neither flushed in time nor readable here.
		DisableCompression: true,
	}
}

// parseBase checks an upstream's base address.
func parseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		// The parser's error repeats the address, which may hold a password.
		return nil, errors.New("address cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, errors.New("address must begin with http:// or https://")
	case u.User != nil || u.Fragment != "":
		return nil, errors.New("address must have no user, password or fragment")
	}
	if u.Path == "" {
		u.Path = "/" // JoinPath keeps a relative path relative
	}
	return u, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// isRedirect: following one would hand our credential to whoever is named.
func isRedirect(status int) bool { return status >= 300 && status < 400 }

// passHeaders copies what is listed and nothing else. Names that end in a dash
// stand for all that begin so. A value that holds a secret is left out.
func passHeaders(dst, src http.Header, names []string, secret string) {
	for name, values := range src {
		if !listed(name, names) {
			continue
		}
		for _, v := range values {
			if secret == "" || !strings.Contains(v, secret) {
				dst.Add(name, v)
			}
		}
	}
}

func listed(name string, names []string) bool {
	for _, n := range names {
		if name == n || strings.HasSuffix(n, "-") && strings.HasPrefix(name, n) {
			return true
		}
	}
	return false
}

// redacted stands where a secret stood.
const redacted = "[redacted]"

// scrub passes bytes on with every occurrence of a secret replaced, also of one
// that is cut in two by the writes. It holds back only what may be a secret's
// beginning.
type scrub struct {
	write  func([]byte) (int, error)
	secret []byte
	tail   []byte
}

func (s *scrub) Write(p []byte) (int, error) {
	if len(s.secret) == 0 {
		return s.write(p)
	}
	all := bytes.ReplaceAll(append(s.tail, p...), s.secret, []byte(redacted))
	keep := beginning(all, s.secret)
	_, err := s.write(all[:len(all)-keep])
	s.tail = bytes.Clone(all[len(all)-keep:])
	return len(p), err
}

// Close passes on what was held back.
func (s *scrub) Close() error {
	if len(s.tail) == 0 {
		return nil
	}
	_, err := s.write(s.tail)
	s.tail = nil
	return err
}

// beginning is how many bytes at the end of p are the beginning of secret.
func beginning(p, secret []byte) int {
	for n := min(len(secret)-1, len(p)); n > 0; n-- {
		if bytes.HasSuffix(p, secret[:n]) {
			return n
		}
	}
	return 0
}

// unreachable keeps the transport's error for the log only: it may name hosts.
func unreachable(who string, err error) error {
	return fmt.Errorf("call %s: %w", who, err)
}
