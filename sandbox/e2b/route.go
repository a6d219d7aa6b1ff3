package e2b

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"ship/sandbox/guest"
)

// sharedDomain is the one at which a single host serves all boxes.
const sharedDomain = "e2b.app"

// Where the two daemons of a box listen.
const (
	envdPort  = 49983
	guestPort = 4011
)

// door is the way to one port of a box.
type door struct {
	url    *url.URL
	header http.Header
}

// door leads through E2B's proxy. One host for all boxes is one pool of
// connections; elsewhere each port of each box has a name of its own.
func (p *Provider) door(box string, a access, port int) (door, error) {
	number := strconv.Itoa(port)
	domain := cmp.Or(a.Domain, p.cfg.Domain)
	address := "https://" + number + "-" + box + "." + domain
	if domain == sharedDomain {
		address = "https://sandbox." + sharedDomain
	}
	u, err := url.Parse(cmp.Or(p.cfg.SandboxURL, address))
	if err != nil {
		return door{}, err
	}
	d := door{url: u, header: http.Header{}}
	d.header.Set("E2b-Sandbox-Id", box)
	d.header.Set("E2b-Sandbox-Port", number)
	d.header.Set("User-Agent", userAgent)
	if a.Traffic != "" {
		d.header.Set("e2b-traffic-access-token", a.Traffic)
	}
	return d, nil
}

// guestClient is a handle on a box. It has no state but how to get there.
func (p *Provider) guestClient(box string, a access) (*guest.Client, error) {
	d, err := p.door(box, a, guestPort)
	if err != nil {
		return nil, err
	}
	return guest.NewClient(guest.Route{
		Secret: p.guestSecret(box), Framed: true,
		Host: d.url.Host, Header: d.header, URL: strings.TrimRight(d.url.String(), "/"), Transport: p.cfg.Transport,
		Dial: func(ctx context.Context) (net.Conn, error) { return d.dial(ctx, p.cfg.Transport.TLSClientConfig) },
		Explain: func(status int, header http.Header, body []byte) error {
			return proxyFault(status, header, body)
		},
	}), nil
}

// dialPatience is how long a connection to the proxy may take.
const dialPatience = 30 * time.Second

// dial connects to the proxy for something that is not HTTP once it is there.
func (d door) dial(ctx context.Context, config *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	port := cmp.Or(d.url.Port(), map[string]string{"https": "443", "http": "80"}[d.url.Scheme])
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(d.url.Hostname(), port))
	if err != nil || d.url.Scheme != "https" {
		return conn, err
	}
	if config = config.Clone(); config == nil {
		config = &tls.Config{}
	}
	config.ServerName, config.NextProtos = cmp.Or(config.ServerName, d.url.Hostname()), []string{"http/1.1"}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}
